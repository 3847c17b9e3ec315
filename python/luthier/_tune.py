"""Tuning, and questions about lists and weights."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _check, _luthier
from ._frame import Frame
from ._luthier import Error
from ._metrics import Metric, Signature, metric_of
from ._nbest import NBest
from ._progress import ProgressLike, reporting
from ._recipes import Recipe, recipe_of
from ._weights import Weights, WeightsLike, pairs_of


class HeldOut:
    """Scores on segments that the weights were not learned from."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: Corpus score of the held-out output with learned weights.
        self.score: float = found["score"]
        #: Corpus score of the held-out output with initial weights.
        self.initial: float = found["initial"]
        #: Half the width of the 95 % confidence interval of `score`, by the bootstrap over documents, or over segments.
        self.interval: float = found["interval"]
        #: P-value of the difference between `score` and `initial`, by the paired bootstrap over documents, or over segments.
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
        return f"Stability({self.samples:,} resamples)\n{self.features}"


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
            with open(_check.path("path", path), "w", encoding="utf-8") as file:
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
    from as many resamples to see how much each weight varies; for `mert` these are single climbs, which show stability, not
    confidence. `select` chooses the iteration, `test` is scored with the result.
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
    spec = metric_of(metric)
    directory = None if run is None else _check.path("run", run)
    for name, other in (("select", select), ("test", test)):
        if other is not None:
            _check_lists(other, name)
    seed, threads = _check.whole("seed", seed), _check.at_least("threads", threads, 1)
    share, folds = _check.share("holdout", holdout), _check.at_least("folds", folds, 2)
    bootstrap = _check.at_least("bootstrap", bootstrap, 2)
    weights = None if initial is None else pairs_of(initial)
    with reporting(progress) as call:
        text = _luthier.tune(
            lists._lists,
            recipe._recipe,
            metric=spec,
            seed=seed,
            initial=weights,
            select=None if select is None else select._lists,
            test=None if test is None else test._lists,
            holdout=share,
            folds=folds,
            bootstrap=bootstrap,
            run=directory,
            threads=threads,
            progress=call,
        )
    found = json.loads(text)
    for remark in found["remarks"]:
        warnings.warn(remark, stacklevel=2)
    return Fit(found, lists, spec, recipe, directory, select is not None)


@_check.refusing
def rerank(lists: NBest, weights: WeightsLike | Fit, what: str = "text", *, threads: int | None = None) -> Any:
    """Chooses the candidate with the highest weighted sum of features for every segment.

    `what` is `text` (a list of strings), `index` (an array of positions within the segments) or `score` (an array with the
    weighted sum of every candidate, segment after segment).
    """
    _check_lists(lists, "lists")
    _check.choice("what", what, ("text", "index", "score"))
    pairs = pairs_of(weights)
    if what == "score":
        return lists._lists.model_scores(pairs)
    indices, texts = lists._lists.rerank(pairs, _check.at_least("threads", threads, 1))
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


@_check.refusing
def oracle(lists: NBest, metric: str | Metric = "bleu", *, seed: int = 1, threads: int | None = None) -> Oracle:
    """Finds the candidates with the best and the worst corpus score; by hill climbing where there are many combinations.

    `metric` is as for `tune`: a name such as `bleu` does not tokenise, `BLEU()` and `bleu:tokenize=13a` do.

    >>> dev = NBest([["a b c d", "d c"], ["e f g h", "e"]], features={"lm": [[0, 1], [1, 0]]}, references=["a b c d", "e f g h"])
    >>> round(oracle(dev).best.score, 2), oracle(dev).best.index
    (100.0, array([0, 0]))
    """
    _check_lists(lists, "lists")
    found = lists._lists.oracle(metric_of(metric), _check.whole("seed", seed), _check.at_least("threads", threads, 1))
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
    gamma: float | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> MbrChoice:
    """Chooses the candidate of each segment with the highest expected utility: the one most similar to the others.

    Every candidate counts as a possible reference, with a probability proportional to exp(`gamma` · model score) under `weights`
    [default: 1]; without weights all are equally likely, as samples are. `utility` is a metric of two sentences; a name such as `bleu`
    does not tokenise, `BLEU()` and `bleu:tokenize=13a` do. The time is quadratic in the number of different candidates.

    >>> lists = NBest([["a b c", "a b d", "x y z"]], features={"logprob": [[-2.0, -2.1, -1.0]]})
    >>> mbr(lists, "chrf").texts
    ['a b c']
    >>> mbr(lists, "chrf", weights={"logprob": 1.0}, gamma=5.0).texts
    ['x y z']
    """
    _check_lists(lists, "lists")
    scale = 1.0 if gamma is None else _check.finite("gamma", gamma)
    if gamma is not None and weights is None:
        raise Error("gamma scales model scores, which need weights; give weights=, or leave out gamma")
    pairs, threads = None if weights is None else pairs_of(weights), _check.at_least("threads", threads, 1)
    spec = metric_of(utility)
    with reporting(progress) as call:
        found, less = lists._lists.expected_utilities(spec, pairs, scale, threads, call)
    utilities = np.split(found, np.cumsum(lists.sizes)[:-1])
    index = np.array([(u.argmin() if less else u.argmax()) for u in utilities], dtype=np.int64)
    texts = [entry[i] for entry, i in zip(lists.texts, index)]
    return MbrChoice(index, texts, utilities)


class Loss(NamedTuple):
    """Value and gradient of an algorithm's objective."""

    value: float
    gradient: Weights


@_check.refusing
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
    """Returns value and gradient of the objective that an algorithm minimises, at some weights.

    `metric` is as for `tune`: a name such as `bleu` does not tokenise. Further arguments are settings of the algorithm.
    """
    _check_lists(lists, "lists")
    recipe = recipe_of(algorithm, settings)
    value, gradient = _luthier.loss(
        lists._lists, recipe._recipe, pairs_of(weights), metric_of(metric), _check.whole("seed", seed), _check.at_least("threads", threads, 1)
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


@_check.refusing
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

    `metric` is as for `tune`: a name such as `bleu` does not tokenise. `direction` is the name of a feature, or a number per feature.
    `smooth` is `none`, `average` or `max` over `window` intervals.
    """
    _check_lists(lists, "lists")
    line = Weights({direction: 1.0}) if isinstance(direction, str) else direction
    if not isinstance(line, (Mapping, Weights)):
        raise Error(f"direction is of type {_check.kind(line)}, expected the name of a feature, or a mapping of names to numbers")
    _check.choice("smooth", smooth, ("none", "average", "max"))
    title = f"along {direction}" if isinstance(direction, str) else "along a line"
    window, threads = _check.at_least("window", window, 1) or 3, _check.at_least("threads", threads, 1)
    found = lists._lists.surface(pairs_of(weights), pairs_of(line), metric_of(metric), smooth, window, threads)
    return Surface(*found, title)


def _check_lists(lists: Any, what: str) -> None:
    if not isinstance(lists, NBest):
        raise Error(f"{what} is of type {type(lists).__name__}, expected luthier.NBest; make one with NBest(...) or NBest.read(...)")
