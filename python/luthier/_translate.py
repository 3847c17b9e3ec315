"""Translation with a model directory, and training of one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from . import _luthier
from ._luthier import Error
from ._metrics import _texts
from ._progress import ProgressLike, callback, finish
from ._weights import Weights, WeightsLike, pairs_of


@dataclass(frozen=True)
class Translation:
    """An entry of an n-best list: text, model score and features by name."""

    text: str
    score: float
    features: dict[str, float]


class Translator:
    """A translation model with weights.

    A model that was trained on raw text takes and gives raw text; other models take and give tokens separated by blanks.
    """

    def __init__(self, model: str | os.PathLike[str], weights: WeightsLike | None = None) -> None:
        """Opens a model directory, as `train` or the command line writes it, with its own weights or with others."""
        self._translator = _luthier.Translator(os.fspath(model), None if weights is None else pairs_of(weights))

        self.training: Mapping[str, Any] | None = None
        """Figures of the stages of training, if `train` returned this object: sentence pairs kept, left out and why, sizes and times."""

    @classmethod
    def load(cls, model: str | os.PathLike[str], weights: WeightsLike | None = None) -> Translator:
        """Opens a model directory, as `Translator(model)` does."""
        return cls(model, weights)

    @property
    def weights(self) -> Weights:
        """The weights of the model's features."""
        return Weights(self._translator.weights())

    @overload
    def translate(
        self, sentences: Sequence[str], *, nbest: None = ..., threads: int | None = ..., progress: ProgressLike = ...
    ) -> list[str]: ...
    @overload
    def translate(
        self, sentences: Sequence[str], *, nbest: int, threads: int | None = ..., progress: ProgressLike = ...
    ) -> list[list[Translation]]: ...

    def translate(self, sentences, *, nbest=None, threads=None, progress=False):  # type: ignore[no-untyped-def]
        """Translates sentences; with `nbest` returns a list of the best translations of each."""
        sentences, call = _texts("sentences", sentences), callback(progress)
        if nbest is None:
            found = self._translator.translate(sentences, threads, call)
            finish(call)
            return found
        if not isinstance(nbest, int) or nbest < 1:
            raise Error(f"nbest is {nbest!r}, expected a whole number of at least 1")
        found = self._translator.nbest(sentences, nbest, threads, call)
        finish(call)
        return [[Translation(text, score, dict(features)) for text, score, features in entry] for entry in found]


def train(
    source: str | os.PathLike[str] | None = None,
    target: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    *,
    corpus: str | os.PathLike[str] | None = None,
    raw: bool = False,
    source_lang: str | None = None,
    target_lang: str | None = None,
    max_words: int = 100,
    hiero: bool = False,
    order: int | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Translator:
    """Trains a model from parallel text and opens it.

    The text is in two files, one sentence per line, `source` and `target`: tokenised, or with `raw=True` as people write it.
    Raw text is cleaned and tokenised, and the model translates raw text. Its languages are `source_lang` and `target_lang`,
    such as "en" or "pt-BR", or else those that the extensions of the files name. One bilingual file of raw text is `corpus`:
    tab-separated columns, TMX, XLIFF or PO.

    `model` is the directory of the model. Sentence pairs with more than `max_words` words on a side are left out. `hiero`
    makes a hierarchical model instead of a phrase-based one; `order` is the order of the language model [default: 5].
    An interrupted call with the same arguments resumes.

        model = lt.train(corpus="strings.po", model="model", source_lang="en", target_lang="es")
        model.training["text"]["cleaning"]
    """
    if model is None:
        raise Error("model is missing, expected the directory of the new model; give model=")
    if not isinstance(max_words, int) or not 1 <= max_words <= 1000:
        raise Error(f"max_words is {max_words!r}, expected a whole number from 1 to 1000")
    call = callback(progress)
    figures = _luthier.train(
        *(None if path is None else os.fspath(path) for path in (source, target)),
        os.fspath(model),
        corpus=None if corpus is None else os.fspath(corpus),
        raw=raw,
        source_lang=source_lang,
        target_lang=target_lang,
        max_words=max_words,
        hiero=hiero,
        order=order,
        threads=threads,
        progress=call,
    )
    finish(call)
    translator = Translator(model)
    translator.training = json.loads(figures)
    return translator
