"""Weights of features."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _check, _luthier


class Weights(Mapping[str, float]):
    """Weights by the names of features, in a fixed order.

    >>> weights = Weights({"lm": 0.75, "tm": 0.25})
    >>> weights["lm"], weights.names
    (0.75, ['lm', 'tm'])
    >>> weights.array
    array([0.75, 0.25])
    """

    def __init__(self, weights: Mapping[str, float] | Sequence[tuple[str, float]] = ()) -> None:
        expected = "a mapping of names to numbers, or pairs of them"
        pairs = weights.items() if isinstance(weights, Mapping) else _check.listed("weights", weights, expected)
        self._weights: dict[str, float] = {}
        self._array: np.ndarray | None = None
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise _luthier.Error(f"weights has {_check.shown(pair)}, expected {expected}")
            name = _check.text("the name of a weight", pair[0])
            self._weights[name] = _check.finite(f"the weight of {name}", pair[1])

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Weights:
        """Reads a weights file, as `Weights.write` and the command line write it, or a Moses configuration."""
        return cls(_luthier.read_weights(_check.path("path", path)))

    def write(self, path: str | os.PathLike[str], comments: Sequence[str] = ()) -> None:
        """Writes a weights file, one `name value` per line, which the command line reads."""
        _luthier.write_weights(_check.path("path", path), self._pairs(), _check.names("comments", comments))

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return list(self._weights)

    @property
    def array(self) -> np.ndarray:
        """The values, in the order of `names`: one read-only array, not a copy per call."""
        if self._array is None:
            self._array = np.array(list(self._weights.values()), dtype=np.float64)
            self._array.setflags(write=False)
        return self._array

    def _pairs(self) -> list[tuple[str, float]]:
        return list(self._weights.items())

    def __getitem__(self, name: str) -> float:
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        return f"Weights({self._weights!r})"

    def _repr_html_(self) -> str:
        from ._html import weights

        return weights(self._weights)


#: What is accepted as weights: a `Weights`, a mapping of names, a path of a weights file.
WeightsLike = Union[Weights, Mapping[str, float], str, "os.PathLike[str]"]


def pairs_of(weights: WeightsLike | Any) -> list[tuple[str, float]]:
    """Returns names and values of anything that is accepted as weights."""
    pairs = _pairs_of(weights)
    if not pairs:
        raise _luthier.Error("there are no weights; give at least one")
    return pairs


def _pairs_of(weights: WeightsLike | Any) -> list[tuple[str, float]]:
    if hasattr(weights, "weights"):  # a fit
        weights = weights.weights
    if isinstance(weights, Weights):
        return weights._pairs()
    if isinstance(weights, Mapping):
        return Weights(weights)._pairs()
    if isinstance(weights, (str, os.PathLike)):
        return Weights.read(weights)._pairs()
    raise _luthier.Error(
        f"the weights are of type {type(weights).__name__}, expected a mapping of names to numbers, or the path of a weights file"
    )
