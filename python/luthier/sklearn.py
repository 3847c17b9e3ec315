"""An estimator of scikit-learn that reranks: `pip install luthier[sklearn]`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator  # type: ignore[import-untyped,unused-ignore]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped,unused-ignore]

from ._luthier import Error
from ._nbest import NBest
from ._recipes import Recipe
from ._tune import tune

__all__ = ["Reranker"]


class Reranker(BaseEstimator):
    """Learns weights with which the best row of each group has a high score.

    Rows of X are candidates, `y` is one score per candidate, such as a reward or COMET, and `groups` says which rows are candidates
    of the same input. `predict` returns the model score of each row; `score` is the mean `y` of each group's best row, which
    tuning maximises.

    scikit-learn hands `groups` to the splitter only. There are two ways to hand them to the estimator as well: a column of X
    (`group_column=0`), whose values only need to be equal within a group and to differ between neighbouring groups, so that a
    scaler before does no harm; or metadata routing (`sklearn.set_config(enable_metadata_routing=True)`,
    `Reranker().set_fit_request(groups=True).set_score_request(groups=True)`, and `params={"groups": groups}`). Without groups, all
    rows are candidates of one input, and a `UserWarning` says so.

    Parameters: `algorithm` is a name or a recipe, such as `Mert(restarts=20)`; `settings` are its settings if it is a name;
    `group_column` is the number of the column of X with the groups; `seed` and `threads` are those of `luthier.tune`.

    Attributes: `coef_`, one weight per column of X (0 for the group column); `score_`, the mean `y` of the chosen rows on the
    training data; `fit_`, the result of `luthier.tune`.

    >>> X = np.array([[0, 1.0, 3.0], [0, 2.0, 1.0], [1, 3.0, 1.0], [1, 1.0, 2.0]])
    >>> model = Reranker(group_column=0).fit(X, [0.9, 0.2, 0.1, 0.8])
    >>> round(float(model.score(X, [0.9, 0.2, 0.1, 0.8])), 3)
    0.85
    """

    def __init__(
        self,
        algorithm: str | Recipe = "mert",
        *,
        settings: dict[str, Any] | None = None,
        group_column: int | None = None,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.settings = settings
        self.group_column = group_column
        self.seed = seed
        self.threads = threads

    def fit(self, X: Any, y: Any, groups: Any = None) -> Reranker:
        """Learns weights from candidates X with scores y. Rows of a group must follow each other."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if len(X) == 1:
            raise Error("X has n_samples = 1; weights are learned from groups of at least two rows")
        starts = self._starts(X, groups)
        used = self._used()
        if not len(used):
            raise Error("X has no column besides the groups; give at least one feature")
        sizes = np.diff(np.append(starts, len(X)))
        segments = np.repeat(np.arange(len(starts)), sizes)
        names = [f"x{i}" for i in range(len(used))]
        columns = {name: X[:, i] for name, i in zip(names, used)}
        lists = NBest(features=columns, scores={"y": np.asarray(y, dtype=np.float64)}, groups=segments)
        self.fit_ = tune(lists, self.algorithm, metric="column:y", seed=self.seed, threads=self.threads, **(self.settings or {}))
        self.coef_ = np.zeros(X.shape[1])
        for name, i in zip(names, used):
            self.coef_[i] = self.fit_.weights.get(name, 0.0)
        self.score_ = self.fit_.score
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Returns the model score of each row."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Returns the mean y of each group's best row; of equal model scores, the first."""
        scores = self.predict(X)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        starts = self._starts(X, groups)
        ends = [*starts[1:], len(X)]
        chosen = [a + int(np.argmax(scores[a:b])) for a, b in zip(starts, ends)]
        return float(np.mean(np.asarray(y)[chosen]))

    def _used(self) -> list[int]:
        drop = None if self.group_column is None else self.group_column % self.n_features_in_
        return [i for i in range(self.n_features_in_) if i != drop]

    def _starts(self, X: np.ndarray, groups: Any) -> np.ndarray:
        """Returns the first row of each group."""
        if self.group_column is not None:
            if isinstance(self.group_column, bool) or not isinstance(self.group_column, (int, np.integer)):
                raise Error(f"group_column is {self.group_column!r}, expected the number of a column of X")
            if not -X.shape[1] <= self.group_column < X.shape[1]:
                raise Error(f"group_column is {self.group_column}, but X has {X.shape[1]} columns")
            keys = X[:, self.group_column]
        elif groups is not None:
            keys = np.asarray(groups)
            if keys.shape != (len(X),):
                raise Error(f"groups has the shape {keys.shape}, but X has {len(X):,} rows")
        else:
            warnings.warn(
                f"without groups all {len(X):,} rows count as candidates of one input, of which one is chosen; give group_column= to "
                "Reranker, or groups= to fit and score",
                stacklevel=3,
            )
            return np.zeros(1, dtype=np.int64)
        changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        starts = np.concatenate([[0], changes])
        if len(np.unique(keys)) != len(starts):
            raise Error("rows of a group do not follow each other; sort the rows by group first, with a stable sort")
        return starts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags = None
        return tags
