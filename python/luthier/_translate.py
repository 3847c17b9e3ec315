"""Translation with a model directory, and training of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from . import _check, _luthier
from ._metrics import _texts
from ._progress import ProgressLike, reporting
from ._weights import Weights, WeightsLike, pairs_of


@dataclass(frozen=True)
class Translation:
    """An entry of an n-best list: text, model score and features by name."""

    text: str
    score: float
    features: dict[str, float]


class Translator:
    """A translation model with weights."""

    def __init__(self, model: str | os.PathLike[str], weights: WeightsLike | None = None) -> None:
        """Opens a model directory, as `train` or the command line writes it, with its own weights or with others."""
        self._translator = _luthier.Translator(_check.path("model", model), None if weights is None else pairs_of(weights))

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
        """Translates tokenised sentences; with `nbest` returns a list of the best translations of each."""
        sentences, threads = _texts("sentences", sentences), _check.at_least("threads", threads, 1)
        k = _check.at_least("nbest", nbest, 1)
        with reporting(progress) as call:
            if k is None:
                return self._translator.translate(sentences, threads, call)
            found = self._translator.nbest(sentences, k, threads, call)
        return [[Translation(text, score, dict(features)) for text, score, features in entry] for entry in found]


def train(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    hiero: bool = False,
    order: int | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Translator:
    """Trains a model from two files of parallel text, tokenised, one sentence per line, and opens it.

    `hiero` makes a hierarchical model instead of a phrase-based one; `order` is the order of the language model [default: 5].
    An interrupted call with the same arguments resumes.
    """
    files = _check.path("source", source), _check.path("target", target), _check.path("model", model)
    hiero, order, threads = _check.flag("hiero", hiero), _check.at_least("order", order, 1, 6), _check.at_least("threads", threads, 1)
    with reporting(progress) as call:
        _luthier.train(*files, hiero=hiero, order=order, threads=threads, progress=call)
    return Translator(model)
