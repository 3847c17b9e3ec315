"""Tuning, and questions about lists and weights."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _luthier
from ._frame import Frame
from ._luthier import Error
from ._metrics import Metric, Signature, metric_of
from ._nbest import NBest
from ._progress import ProgressLike, callback, finish
from ._recipes import Recipe, recipe_of
from ._weights import Weights, WeightsLike, pairs_of


class HeldOut:
    """Scores on segments that the weights were not learned from."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: Corpus score of the held-out output with learned weights.
        self.score: float = found["score"]
        #: Corpus score of the held-out output with initial weights.
        self.initial: float = found["initial"]
        #: Half the width of the 95 % confidence interval of `score`.
        self.interval: float = found["interval"]
        #: P-value of the difference between `score` and `initial`, by the paired bootstrap.
        self.p_value: float = found["p_value"]
        #: Number of held-out segments.
        self.segments: int = found["segments"]
        #: Scores of each part: number of segments, tuning score, initial and held-out score.
        self.parts = Frame({k: np.array([p[k] for p in found["parts"]]) for k in ("segments", "tuning", "initial", "score")})

    @property
    def mean(self) -> float:
        """Mean score of the parts."""
        return float(np.mean(self.parts["score"]))

    @property
    def spread(self) -> float:
        """Standard deviation of the scores of the parts; no standard error of their mean."""
        return float(np.std(self.parts["score"], ddof=1)) if len(self.parts) > 1 else 0.0

    def __repr__(self) -> str:
        return f"HeldOut({self.score:.2f} ± {self.interval:.2f}, initial {self.initial:.2f}, p {self.p_value:.3f})"


class Stability:
    """How much weights and score vary between resamples of the segments."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: Number of resamples.
        self.samples: int = found["samples"]
        #: Whether the intervals are confidence intervals; for MERT they only show how stable the answer is.
        self.confidence: bool = found["confidence"]
        #: Feature whose absolute weight is 1 in `features`.
        self.anchor: str = found["anchor"]
        #: 95 % interval of the score.
        self.score: tuple[float, float] = tuple(found["score"])
        rows = found["features"]
        #: Weights relative to the anchor's, with 95 % intervals, and how often each sign holds.
        self.features = Frame(
            {
                "name": [r["name"] for r in rows],
                **{k: np.array([r[k] for r in rows], dtype=float) for k in ("weight", "relative", "low", "high", "same_sign")},
            }
        )

    @property
    def undetermined(self) -> list[str]:
        """Features whose intervals contain 0."""
        f = self.features
        return [n for n, low, high in zip(f["name"], f["low"], f["high"]) if low <= 0 <= high]

    def __repr__(self) -> str:
        return f"Stability({self.samples} resamples)\n{self.features}"


class Fit:
    """Result of tuning.

    `fit.weights` are the weights; `fit.score` is their score on the lists that they were tuned on, and `fit.held_out` (alias
    `fit.cv`) their scores on held-out segments. `fit.rerank(lists)` chooses candidates.
    """

    def __init__(self, found: Mapping[str, Any], lists: NBest, metric: str, recipe: Recipe, run: str | None, selected: bool = False) -> None:
        #: Tuned weights.
        self.weights = Weights([(n, v) for n, v in found["weights"]])
        #: Score of the tuned weights: on the selection set if there is one, else on the tuning lists (a training score).
        self.score: float = found["score"]
        #: Lists that `score` and `initial` are of: "tuning", a training score, or "selection".
        self.score_of: str = "selection" if selected else "tuning"
        #: Score of the initial weights on the same lists.
        self.initial: float = found["initial"]
        #: Score of the tuned weights on the test lists; None without them.
        self.test: float | None = found["test"]
        #: Score of the initial weights on the test lists; None without them.
        self.initial_test: float | None = found["initial_test"]
        #: Scores on held-out segments; None without `folds` and `holdout`.
        self.held_out: HeldOut | None = HeldOut(found["held_out"]) if found["held_out"] else None
        #: Variation of the weights between resamples; None without `bootstrap`.
        self.stability: Stability | None = Stability(found["stability"]) if found["stability"] else None
        #: Length of the output divided by the length of the references; None for metrics without lengths.
        self.length_ratio: float | None = found["length_ratio"]
        #: Iteration that the weights come from.
        self.iteration: int = found["iteration"]
        #: Why the run ended.
        self.stop: str = found["stop"]
        #: What `Mert(certify=True)` has proved; None without it.
        self.certificate: dict[str, Any] | None = found["certificate"]
        #: Name of the metric.
        self.metric: str = found["metric"]
        #: Settings of the metric.
        self.signature = Signature(found["signature"])
        #: The algorithm, as it was given.
        self.recipe = recipe
        #: All settings of the algorithm, with the values that were used.
        self.settings: dict[str, Any] = found["recipe"]
        self._lists: NBest | None = lists
        self._spec, self._events, self._run = metric, found["history"], run

    @property
    def cv(self) -> HeldOut | None:
        """The same as `held_out`."""
        return self.held_out

    @property
    def history(self) -> Frame:
        """Scores of all iterations."""
        names = [n for n in ("iteration", "score", "select", "test", "length_ratio", "candidates", "seconds")]
        names = [n for n in names if any(e.get(n) is not None for e in self._events)]
        number = lambda e, n: float("nan") if e.get(n) is None else e[n]
        return Frame({n: np.array([number(e, n) for e in self._events]) for n in names})

    def rerank(self, lists: NBest, what: str = "text", *, threads: int | None = None) -> Any:
        """Chooses the best candidates of lists, as `luthier.rerank` does."""
        return rerank(lists, self.weights, what, threads=threads)

    def surface(self, direction: str | Mapping[str, float], lists: NBest | None = None, **settings: Any) -> Surface:
        """Returns the score along a line through the weights, as `luthier.surface` does; on the tuning lists by default."""
        lists = lists if lists is not None else self._lists
        if lists is None:
            raise Error("this result was pickled, and has no lists since; give them with lists=")
        return surface(lists, self.weights, direction, metric=self._spec, **settings)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns a page in HTML with weights, scores and curves, and writes it to a file if a path is given."""
        from ._html import page

        text = page(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def __getstate__(self) -> dict[str, Any]:
        """A pickled result is without the lists that it was tuned on."""
        return {**self.__dict__, "_lists": None}

    def __repr__(self) -> str:
        held = "" if self.held_out is None else f", held out {self.held_out.score:.2f}"
        return f"<luthier.Fit of {self.recipe!r}: {self.metric} {self.initial:.2f} -> {self.score:.2f} on the {self.score_of} lists{held}>"

    def _repr_html_(self) -> str:
        from ._html import fit

        return fit(self)


def tune(
    lists: NBest,
    algorithm: str | Recipe | type[Recipe] = "mert",
    *,
    metric: str | Metric = "bleu",
    seed: int = 1,
    initial: WeightsLike | None = None,
    select: NBest | None = None,
    test: NBest | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    bootstrap: int | None = None,
    run: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
    **settings: Any,
) -> Fit:
    """Tunes the weights of the features of n-best lists for a metric.

    `algorithm` is a name or a recipe: `"mert"`, `Mert(restarts=20)`; further arguments are its settings. `metric` is `bleu`,
    `chrf`, `ter`, `wer`, `column:comet` for a score of the lists, or a sum such as `0.5*bleu+0.5*chrf`; BLEU does not tokenise
    unless it is given as `BLEU()` or as `bleu:tokenize=13a`. `initial` are weights to begin with. `holdout=0.3` scores the
    weights on three tenths of the segments, from which nothing is learned; `folds=5` cross-validates. `bootstrap=200` learns
    from as many resamples to see how much each weight varies. `select` chooses the iteration, `test` is scored with the result.
    `run` is a directory for the run, in which an interrupted call with the same arguments resumes. The weights do not depend on
    `threads`, and are those of the command line.

    >>> dev = NBest(features=np.array([[[1.0, 0.2], [0.5, 0.9]]]), names=["lm", "qe"], scores={"comet": [[0.1, 0.8]]})
    >>> tune(dev, "mert", metric="column:comet").rerank(dev, "index")
    array([1])
    """
    _check_lists(lists, "lists")
    recipe = recipe_of(algorithm, settings)
    if folds is not None and holdout is not None:
        raise Error("folds= and holdout= are two ways to hold segments out; give one of them")
    spec, call = metric_of(metric), callback(progress)
    directory = None if run is None else os.fspath(run)
    for name, other in (("select", select), ("test", test)):
        if other is not None:
            _check_lists(other, name)
    found = _luthier.tune(
        lists._lists,
        recipe._recipe,
        metric=spec,
        seed=_whole("seed", seed),
        initial=None if initial is None else pairs_of(initial),
        select=None if select is None else select._lists,
        test=None if test is None else test._lists,
        holdout=_share(holdout),
        folds=_at_least("folds", folds, 2),
        bootstrap=_at_least("bootstrap", bootstrap, 1),
        run=directory,
        threads=_at_least("threads", threads, 1),
        progress=call,
    )
    finish(call)
    return Fit(json.loads(found), lists, spec, recipe, directory, select is not None)


def rerank(lists: NBest, weights: WeightsLike | Fit, what: str = "text", *, threads: int | None = None) -> Any:
    """Chooses the candidate with the highest weighted sum of features for every segment.

    `what` is `text` (a list of strings), `index` (an array of positions within the segments) or `score` (an array with the
    weighted sum of every candidate, segment after segment).
    """
    _check_lists(lists, "lists")
    if what not in ("text", "index", "score"):
        raise Error(f"what is {what!r}, expected 'text', 'index' or 'score'")
    pairs = pairs_of(weights)
    if what == "score":
        return lists._lists.model_scores(pairs)
    indices, texts = lists._lists.rerank(pairs, _at_least("threads", threads, 1))
    return texts if what == "text" else indices


@dataclass(frozen=True)
class Choice:
    """One candidate per segment: their corpus score, and their positions."""

    score: float
    index: np.ndarray


class Oracle(NamedTuple):
    """Headroom of lists: best and worst choice of one candidate per segment, and the score of the first candidates."""

    best: Choice
    worst: Choice
    first: float
    signature: Signature


def oracle(lists: NBest, metric: str | Metric = "bleu", *, seed: int = 1, threads: int | None = None) -> Oracle:
    """Finds the candidates with the best and the worst corpus score; by hill climbing where there are many combinations.

    >>> dev = NBest([["a b c d", "d c"], ["e f g h", "e"]], features={"lm": [[0, 1], [1, 0]]}, references=["a b c d", "e f g h"])
    >>> round(oracle(dev).best.score, 2), oracle(dev).best.index
    (100.0, array([0, 0]))
    """
    _check_lists(lists, "lists")
    found = lists._lists.oracle(metric_of(metric), _whole("seed", seed), _at_least("threads", threads, 1))
    best, worst, first, signature = found
    return Oracle(Choice(*best), Choice(*worst), first, Signature(signature))


@dataclass(frozen=True)
class MbrChoice:
    """Choice by minimum Bayes risk: positions of the chosen candidates, their texts, and expected utilities of all candidates."""

    index: np.ndarray
    texts: list[str]
    utilities: list[np.ndarray]


def mbr(
    lists: NBest,
    utility: str | Metric = "chrf",
    *,
    weights: WeightsLike | Fit | None = None,
    gamma: float = 1.0,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> MbrChoice:
    """Chooses the candidate of each segment with the highest expected utility: the one most similar to the others.

    Every candidate counts as a possible reference, with a probability proportional to exp(`gamma` · model score) under `weights`; without weights
    all are equally likely, as samples are. `utility` is a metric of two sentences. The time is quadratic in the number of different candidates.

    >>> lists = NBest([["a b c", "a b d", "x y z"]], features={"logprob": [[-2.0, -2.1, -1.0]]})
    >>> mbr(lists, "chrf").texts
    ['a b c']
    >>> mbr(lists, "chrf", weights={"logprob": 1.0}, gamma=5.0).texts
    ['x y z']
    """
    _check_lists(lists, "lists")
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)):
        raise Error(f"gamma is {gamma!r}, expected a number")
    pairs, call = None if weights is None else pairs_of(weights), callback(progress)
    found, less = lists._lists.expected_utilities(metric_of(utility), pairs, float(gamma), _at_least("threads", threads, 1), call)
    finish(call)
    utilities = np.split(found, np.cumsum(lists.sizes)[:-1])
    index = np.array([(u.argmin() if less else u.argmax()) for u in utilities], dtype=np.int64)
    texts = [entry[i] for entry, i in zip(lists.texts, index)]
    return MbrChoice(index, texts, utilities)


class Loss(NamedTuple):
    """Value and gradient of an algorithm's objective."""

    value: float
    gradient: Weights


def loss(
    lists: NBest,
    algorithm: str | Recipe | type[Recipe],
    weights: WeightsLike | Fit,
    *,
    metric: str | Metric = "bleu",
    seed: int = 1,
    threads: int | None = None,
    **settings: Any,
) -> Loss:
    """Returns value and gradient of the objective that an algorithm minimises, at some weights."""
    _check_lists(lists, "lists")
    recipe = recipe_of(algorithm, settings)
    value, gradient = _luthier.loss(
        lists._lists, recipe._recipe, pairs_of(weights), metric_of(metric), _whole("seed", seed), _at_least("threads", threads, 1)
    )
    return Loss(value, Weights(gradient))


class Surface:
    """Exact corpus score along a line through some weights, as MERT's line search sees it.

    Interval i is from `bounds[i - 1]` to `bounds[i]`, the first and the last are open; its score is `scores[i]`.
    """

    def __init__(self, bounds: np.ndarray, scores: np.ndarray, smoothed: np.ndarray, peak: float, best: float, title: str) -> None:
        #: Steps at which the score changes.
        self.bounds = bounds
        #: Score of each interval, one more than there are bounds.
        self.scores = scores
        #: Smoothed score of each interval.
        self.smoothed = smoothed
        #: Step in the middle of the best interval.
        self.peak = peak
        #: Score of the best interval.
        self.best = best
        self._title = title

    def frame(self) -> Frame:
        """Returns a row per interval: from, to, score."""
        edges = np.concatenate([[-np.inf], self.bounds, [np.inf]])
        return Frame({"from": edges[:-1], "to": edges[1:], "score": self.scores, "smoothed": self.smoothed})

    def plot(self, ax: Any = None) -> Any:
        """Draws the score along the line with matplotlib, and returns the axes."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]
            except ImportError:
                raise ImportError("Surface.plot needs matplotlib: pip install matplotlib") from None
            ax = plt.gca()
        ax.stairs(*_drawn(self.bounds, self.scores), baseline=None)
        ax.axvline(self.peak, linestyle=":", color="grey")
        ax.set(xlabel="step", ylabel="score", title=self._title)
        return ax

    def __repr__(self) -> str:
        return f"<luthier.Surface of {len(self.scores):,} intervals; best {self.best:.2f} at step {self.peak:.4g}>"

    def _repr_html_(self) -> str:
        from ._html import surface

        return surface(self)


def _drawn(bounds: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns scores and edges of all intervals, with the open ones cut off."""
    if len(bounds) == 0:
        return scores, np.array([-1.0, 1.0])
    margin = max((bounds[-1] - bounds[0]) * 0.05, 1e-9)
    return scores, np.concatenate([[bounds[0] - margin], bounds, [bounds[-1] + margin]])


def surface(
    lists: NBest,
    weights: WeightsLike | Fit,
    direction: str | Mapping[str, float],
    *,
    metric: str | Metric = "bleu",
    smooth: str = "none",
    window: int = 3,
    threads: int | None = None,
) -> Surface:
    """Returns the exact corpus score along a line through some weights.

    `direction` is the name of a feature, or a number per feature. `smooth` is `none`, `average` or `max` over `window` intervals.
    """
    _check_lists(lists, "lists")
    line = {direction: 1.0} if isinstance(direction, str) else direction
    title = f"along {direction}" if isinstance(direction, str) else "along a line"
    found = lists._lists.surface(
        pairs_of(weights), pairs_of(line), metric_of(metric), smooth, _whole("window", window), _at_least("threads", threads, 1)
    )
    return Surface(*found, title)


def _check_lists(lists: Any, what: str) -> None:
    if not isinstance(lists, NBest):
        raise Error(f"{what} is of type {type(lists).__name__}, expected luthier.NBest; make one with NBest(...) or NBest.read(...)")


def _whole(what: str, number: Any) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise Error(f"{what} is {number!r}, expected a whole number")
    number = number.__index__()
    if not 0 <= number < 2**64:
        raise Error(f"{what} is {number}, expected a whole number from 0 to 2**64 - 1")
    return number


def _at_least(what: str, number: Any, least: int) -> int | None:
    if number is None:
        return None
    if _whole(what, number) < least or number >= 2**32:
        raise Error(f"{what} is {number}, expected a whole number of at least {least}")
    return int(number)


def _share(share: Any) -> float | None:
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, (int, float, np.floating)) or not 0 < share < 1:
        raise Error(f"holdout is {share!r}, expected a share of the segments, above 0 and below 1")
    return float(share)
