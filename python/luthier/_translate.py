"""Translation with a model directory, and training of one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from . import _check, _luthier
from ._luthier import Error
from ._metrics import _texts
from ._progress import ProgressLike, reporting
from ._weights import Weights, WeightsLike, pairs_of


@dataclass(frozen=True)
class Translation:
    """An entry of an n-best list: text, model score and features by name."""

    text: str
    score: float
    features: dict[str, float]


@dataclass(frozen=True)
class Option:
    """A translation of the words of a phrase: its text, and its score without context and the features of that score."""

    text: str
    score: float
    chosen: bool
    features: dict[str, float]


@dataclass(frozen=True)
class Phrase:
    """A phrase of a translation with its places on both sides, as ranges (start, end) of characters.

    A rule with gaps has several ranges. `unknown` tells that the model has no translation of the word.
    """

    source: list[tuple[int, int]]
    target: list[tuple[int, int]]
    unknown: bool
    options: list[Option]


@dataclass(frozen=True)
class Explanation:
    """A sentence as the model reads it, its translation, and the phrases of the translation in the order of the source."""

    source: str
    text: str
    phrases: list[Phrase]


class Translator:
    """A translation model with weights.

    A model that was trained on raw text takes and gives raw text; other models take and give tokens separated by blanks.
    """

    def __init__(self, model: str | os.PathLike[str], weights: WeightsLike | None = None) -> None:
        """Opens a model directory, as `train` or the command line writes it, with its own weights or with others."""
        self._translator = _luthier.Translator(_check.path("model", model), None if weights is None else pairs_of(weights))

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
        sentences, threads = _texts("sentences", sentences), _check.at_least("threads", threads, 1)
        k = _check.at_least("nbest", nbest, 1)
        with reporting(progress) as call:
            if k is None:
                return self._translator.translate(sentences, threads, call)
            found = self._translator.nbest(sentences, k, threads, call)
        return [[Translation(text, score, dict(features)) for text, score, features in entry] for entry in found]

    def explain(self, sentence: str, *, options: int = 5, progress: ProgressLike = False) -> Explanation:
        """Translates a sentence and returns the phrases of the translation, each with the best of its `options` translations."""
        options = _check.at_least("options", options, 1) or 1
        with reporting(progress) as call:
            source, text, phrases = self._translator.explain(_check.text("sentence", sentence), options, call)

        def places(ranges: list[list[int]]) -> list[tuple[int, int]]:
            return [(start, end) for start, end in ranges]

        return Explanation(source, text, [
            Phrase(places(f), places(e), unknown, [Option(*option[:3], dict(option[3])) for option in found])
            for f, e, unknown, found in phrases
        ])


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
    most_words = _check.at_least("max_words", max_words, 1, 1000)
    if most_words is None:
        raise Error("max_words is None, expected a whole number from 1 to 1000")
    with reporting(progress) as call:
        figures = _luthier.train(
            None if source is None else _check.path("source", source),
            None if target is None else _check.path("target", target),
            _check.path("model", model),
            corpus=None if corpus is None else _check.path("corpus", corpus),
            raw=_check.flag("raw", raw),
            source_lang=_check.optional_text("source_lang", source_lang),
            target_lang=_check.optional_text("target_lang", target_lang),
            max_words=most_words,
            hiero=_check.flag("hiero", hiero),
            order=_check.at_least("order", order, 1, 6),
            threads=_check.at_least("threads", threads, 1),
            progress=call,
        )
    translator = Translator(model)
    translator.training = {stage.pop("stage"): stage for stage in json.loads(figures)["stages"]}
    return translator
