"""The estimator with scikit-learn as it is."""

import numpy as np
import pytest

import luthier as lt
from conftest import columns

sklearn = pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from luthier.sklearn import Reranker  # noqa: E402


def table():
    """Rows of 60 groups: the group, four features, and a score."""
    x, y = columns(segments=60)
    groups = np.repeat(np.arange(60), 8)
    return np.column_stack([groups, x.reshape(-1, 4)]), y.ravel(), groups


def test_group_column_and_routing_agree():
    X, y, groups = table()
    by_column = Reranker(group_column=0).fit(X, y)
    by_argument = Reranker().fit(X[:, 1:], y, groups=groups)
    assert by_column.coef_[0] == 0
    assert by_column.coef_[1:].tolist() == by_argument.coef_.tolist()
    assert by_column.score(X, y) == by_argument.score(X[:, 1:], y, groups=groups) == pytest.approx(by_column.score_)
    chosen = [int(np.argmax(s)) for s in np.split(by_column.predict(X), 60)]
    assert chosen == by_column.fit_.rerank(by_column.fit_._lists, "index").tolist()
    assert by_column.score_ > np.mean(y.reshape(60, 8)[:, 0])


def test_cross_validation_with_a_group_column():
    X, y, groups = table()
    scores = cross_val_score(Reranker(group_column=0), X, y, groups=groups, cv=GroupKFold(5))
    assert len(scores) == 5 and scores.mean() > y.mean() + 0.5


def test_cross_validation_with_routing():
    X, y, groups = table()
    expected = cross_val_score(Reranker(group_column=0), X, y, groups=groups, cv=GroupKFold(5))
    with sklearn.config_context(enable_metadata_routing=True):
        model = Reranker().set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_val_score(model, X[:, 1:], y, params={"groups": groups}, cv=GroupKFold(5))
    assert found.tolist() == expected.tolist()


def test_grid_search_in_a_pipeline():
    X, y, groups = table()
    model = make_pipeline(StandardScaler(), Reranker("softmax", group_column=0))
    grid = {"reranker__algorithm": ["softmax", lt.Risk(), "mert"], "reranker__seed": [1, 2]}
    search = GridSearchCV(model, grid, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert search.best_score_ > y.mean() + 0.5
    assert search.predict(X).shape == y.shape


def test_parameters_and_copies():
    import pickle

    model = Reranker("mert", settings={"restarts": 3}, group_column=0)
    again = sklearn.clone(model)
    assert again.get_params() == model.get_params()
    X, y, _ = table()
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert fitted.predict(X).tolist() == model.predict(X).tolist()


def test_wrong_calls():
    X, y, groups = table()
    with pytest.raises(lt.Error, match="do not follow each other"):
        Reranker().fit(X[:, 1:], y, groups=np.tile(np.arange(8), 60))
    with pytest.raises(lt.Error, match="group_column is 9"):
        Reranker(group_column=9).fit(X, y)
    with pytest.raises(lt.Error, match="groups has the shape"):
        Reranker().fit(X, y, groups=groups[:3])


def test_all_rows_are_one_list_without_groups():
    X, y, _ = table()
    with pytest.warns(UserWarning, match="without groups all 480 rows count as candidates of one input.*give group_column= to Reranker"):
        Reranker("softmax").fit(X[:, 1:], y)


@pytest.mark.filterwarnings("ignore:without groups")
def test_checks_of_scikit_learn():
    """All of them pass; `expected_failed_checks` is not needed."""
    results = check_estimator(Reranker("softmax"), on_fail=None, on_skip=None)
    failed = [(r["check_name"], repr(r["exception"])) for r in results if r["status"] == "failed"]
    assert not failed, failed
    passed = [r for r in results if r["status"] == "passed"]
    assert len(passed) > 30
