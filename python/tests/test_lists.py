"""Lists from nested lists, arrays, frames and files, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import luthier as lt
from conftest import ROOT, columns

FRAME = {
    "id": ["s1", "s1", "s2", "s2", "s2"],
    "hyp": ["a b", "b a", "c", "c d", "d"],
    "lm": [-1.0, -2.0, -1.5, -1.0, -3.0],
    "length": [2, 2, 1, 2, 1],
    "comet": [0.9, 0.3, 0.8, 0.9, 0.1],
    "ref": ["a b", "a b", "c d", "c d", "c d"],
    "doc": ["x", "x", "y", "y", "y"],
}
SETTINGS = {"text": "hyp", "scores": ["comet"], "reference": "ref", "document": "doc"}


def shown(lists):
    """Everything in lists, as plain Python."""
    columns = {n: lists.column(n).tolist() for n in [*lists.features, *lists.scores]}
    return lists.ids, lists.sizes.tolist(), lists.texts, columns, lists.references


@pytest.fixture
def expected():
    return lt.NBest.from_frame(FRAME, **SETTINGS)


def test_mapping(expected):
    ids, sizes, texts, columns, references = shown(expected)
    assert (ids, sizes) == (["s1", "s2"], [2, 3])
    assert texts == [["a b", "b a"], ["c", "c d", "d"]]
    assert columns == {"lm": FRAME["lm"], "length": FRAME["length"], "comet": FRAME["comet"]}
    assert references == [["a b", "c d"]]
    assert expected.usage == ["frame: id: id; text: hyp; features: lm, length; scores: comet; reference: ref"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library, expected):
    frames = pytest.importorskip(library)
    frame = frames.table(FRAME) if library == "pyarrow" else frames.DataFrame(FRAME)
    assert shown(lt.NBest.from_frame(frame, **SETTINGS)) == shown(expected)


def test_categories_and_large_ids():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FRAME)
    frame["id"] = frame["id"].astype("category")
    assert lt.NBest.from_frame(frame, **SETTINGS).ids == ["s1", "s2"]
    frame["id"] = np.array([2**63 + 1, 2**63 + 1, 2**63 + 2, 2**63 + 2, 2**63 + 2], dtype=np.uint64)
    assert lt.NBest.from_frame(frame, **SETTINGS).ids == [str(2**63 + 1), str(2**63 + 2)]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_out(library, expected):
    frames = pytest.importorskip(library)
    if library == "pyarrow":
        found = frames.table(expected.frame()).to_pydict()
    elif library == "polars":
        found = frames.DataFrame(expected.frame()).to_dict(as_series=False)
    else:
        pytest.importorskip("pyarrow")
        found = frames.DataFrame.from_arrow(expected.frame()).to_dict("list")
    assert found == expected.frame().to_dict()
    assert found["text"] == FRAME["hyp"] and found["lm"] == FRAME["lm"]


def test_missing_values_in_frames():
    for library in ["pandas", "polars"]:
        frames = pytest.importorskip(library)
        frame = frames.DataFrame({**FRAME, "lm": [-1.0, None, -1.5, None, -3.0]})
        with pytest.raises(lt.Error, match="2 of 5 values are not finite.*candidate 1 of segment 0"):
            lt.NBest.from_frame(frame, **SETTINGS)
        lists = lt.NBest.from_frame(frame, **SETTINGS, missing={"lm": -9.0})
        assert lists.column("lm").tolist() == [-1.0, -9.0, -1.5, -9.0, -3.0]


@pytest.mark.parametrize("name", ["out.txt", "out.jsonl", "out.tsv", "out.jsonl.gz"])
def test_written_and_read_again(name, expected, tmp_path):
    expected.write(tmp_path / name)
    again = lt.NBest.read(tmp_path / name)
    assert again.texts == expected.texts and again.features == expected.features
    assert again.column("lm").tolist() == expected.column("lm").tolist()


def test_files_of_every_kind(tmp_path):
    lines = [{"input": "x", "generations": 1}]
    (tmp_path / "vllm.jsonl").write_text(
        json.dumps({"request_id": "a", "outputs": [{"text": "hello", "cumulative_logprob": -1.0}, {"text": "hi", "cumulative_logprob": -2.0}]}) + "\n",
        encoding="utf-8",
    )
    lists = lt.NBest.read(tmp_path / "vllm.jsonl")
    assert lists.texts == [["hello", "hi"]] and "cumulative_logprob" in lists.features
    assert lists.usage and "cumulative_logprob" in lists.usage[0]
    (tmp_path / "bad.jsonl").write_text(json.dumps(lines[0]) + "\n", encoding="utf-8")
    with pytest.raises(lt.Error, match="bad.jsonl"):
        lt.NBest.read(tmp_path / "bad.jsonl")


def test_html(expected, rewards):
    page = expected._repr_html_()
    assert "<table>" in page and "a b" in page and "best choice" in page
    hostile = lt.NBest([["<script>alert(1)</script>"]], features={"<b>": [[1.0]]})
    assert "<script>" not in hostile._repr_html_() and "<b>" not in hostile._repr_html_()
    fit = lt.tune(rewards, "softmax", metric="column:reward", folds=3, bootstrap=10)
    text = fit._repr_html_()
    assert "held out" in text and "tuning lists (learned from)" in text
    assert fit.report().startswith("<!doctype html>")
    assert "<svg" in fit.surface("a")._repr_html_()


def test_lists_and_results_are_pickled(expected):
    import pickle

    again = pickle.loads(pickle.dumps(expected))
    assert shown(again) == shown(expected) and again.usage == expected.usage
    fit = lt.tune(expected, "mert", metric="column:comet")
    again = pickle.loads(pickle.dumps(fit))
    assert dict(again.weights) == dict(fit.weights) and again.history == fit.history
    assert again.surface("lm", expected).best == fit.surface("lm").best
    with pytest.raises(lt.Error, match="lists="):
        again.surface("lm")


@pytest.mark.parametrize("utility", ["chrf", "bleu", "ter"])
def test_minimum_bayes_risk_is_its_definition(utility):
    texts = [["a b c d", "a b c", "a b c d", "x y"], ["e f", "e g"]]
    scores = [[-1.0, -2.0, -1.5, -0.5], [-1.0, -1.0]]
    lists = lt.NBest(texts, features={"lp": scores})
    metric = lt.Metric(utility if utility != "bleu" else "bleu:tokenize=none")
    found = lt.mbr(lists, utility, weights={"lp": 1.0}, gamma=2.0)
    for entry, values, utilities, index in zip(texts, scores, found.utilities, found.index):
        p = np.exp(2 * np.array(values))
        expected = metric.pairwise(entry, entry) @ (p / p.sum())
        assert utilities == pytest.approx(expected)
        assert index == (expected.argmin() if utility == "ter" else expected.argmax())
    assert found.texts == [entry[i] for entry, i in zip(texts, found.index)]


def test_scores_are_named_as_what_they_are(rewards):
    x, y = columns(seed=9)
    other = lt.NBest(features=x, names=["a", "b", "c", "d"], scores={"reward": y})
    fit = lt.tune(rewards, "mert", metric="column:reward", select=other)
    assert fit.score_of == "selection" and "on the selection lists" in repr(fit)
    assert "selection lists" in fit._repr_html_() and "tuning lists" not in fit._repr_html_()


def test_surfaces_are_drawn(rewards):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fit = lt.tune(rewards, "mert", metric="column:reward")
    axes = fit.surface("a").plot()
    assert axes.get_xlabel() == "step" and axes.get_title() == "along a"


def test_no_copy_of_views():
    """A column of an array is read where it is."""
    x = np.random.default_rng(1).normal(size=(100, 10, 3))
    lists = lt.NBest(features=x, names=["a", "b", "c"])
    assert lists.column("b").tolist() == x[:, :, 1].ravel().tolist()
    assert lt.NBest(features=x[::-1, ::2], names=["a", "b", "c"]).column("c").tolist() == x[::-1, ::2, 2].ravel().tolist()


QUICKSTART = ROOT / "examples/quickstart/nbest.txt"
CASES = [
    (lambda: lt.NBest([["a"], ["b"]], features={"lm": [[1.0]]}), "feature lm has 1 entry, but there are 2 segments"),
    (lambda: lt.NBest([["a", "b"]], features={"lm": [[1.0]]}), "feature lm has 1 value for segment 0, which has 2 candidates"),
    (lambda: lt.NBest([["a", "b"]], features={"lm": [[1.0, float("nan")]]}), "not finite; the first is NaN, of candidate 1 of segment 0"),
    (lambda: lt.NBest([["a", "b"]], features={"lm": [[1.0, float("inf")]]}), "not finite"),
    (lambda: lt.NBest([["a", "b"]], features={"lm": [["x", "y"]]}), "feature lm is not made of numbers"),
    (lambda: lt.NBest([["a", 3]], features={"lm": [[1.0, 2.0]]}), "text 1 is of type int"),
    (lambda: lt.NBest([["a", None]], features={"lm": [[1.0, 2.0]]}), "text 1 is of type NoneType"),
    (lambda: lt.NBest("text", features={"lm": [[1.0]]}), "texts is a string"),
    (lambda: lt.NBest(["a", "b"], features={"lm": [1.0, 2.0]}), "groups="),
    (lambda: lt.NBest([["a"], []], features={"lm": [[1.0], []]}), "segment 1 has no candidate"),
    (lambda: lt.NBest([], features={"lm": []}), "there are no candidates"),
    (lambda: lt.NBest(features={}), "no features; give at least one"),
    (lambda: lt.tune(lt.NBest([["a", "b"]], features={}, references=["a"])), "feature"),
    (lambda: lt.NBest([["a"]], features={"": [[1.0]]}), "name"),
    (lambda: lt.NBest([["a"]], features={" a": [[1.0]]}), " a"),
    (lambda: lt.NBest([["a"]], features={1: [[1.0]]}), "the name of a feature is 1"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, references=["a", "b"]), "references has 2 texts, but there is 1 segment"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, references="a"), "references is a string"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, references=[None]), "references"),
    (lambda: lt.NBest(["a", "b", "c"], features={"lm": [1, 2, 3]}, groups=[0, 1, 0]), "must follow each other"),
    (lambda: lt.NBest(["a", "b"], features={"lm": [1, 2]}, groups=[0, None]), "no value in row 1"),
    (lambda: lt.NBest(["a", "b"], features={"lm": [1, 2]}, groups=[0]), "but there"),
    (lambda: lt.NBest(features=np.zeros((2, 3))), "shape (2, 3)"),
    (lambda: lt.NBest(features=np.zeros((2, 3, 2)), names=["a"]), "names has 1 name"),
    (lambda: lt.NBest(features=np.zeros((2, 3, 2)), names=["a", "a"]), "twice"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, documents=["x", "y"]), "documents has 2 entries"),
    (lambda: lt.NBest.read("no such file"), "no such file"),
    (lambda: lt.NBest.read(ROOT / "README.md"), "README.md"),
    (lambda: lt.NBest.read([]), "paths is empty"),
    (lambda: lt.NBest.read(3), "paths is 3"),
    (lambda: lt.NBest.read(ROOT / "examples/quickstart/nbest.txt", format="x"), "expected one of"),
    (lambda: lt.NBest.from_frame(FRAME, group="nope"), "no column 'nope'; it has id, hyp"),
    (lambda: lt.NBest.from_frame([1, 2]), "frame is of type list"),
    (lambda: lt.NBest(features="xx"), "features is a string, expected a mapping of names to numbers, or an array"),
    (lambda: lt.NBest(features=None), "features is None"),
    (lambda: lt.NBest(features={"lm": 3}), "the first feature is 3, expected one list per segment"),
    (lambda: lt.NBest(features=np.zeros((2, 1)), groups=np.zeros((2, 1))), "groups has the shape (2, 1), expected one number or name per candidate"),
    (lambda: lt.NBest(features={"lm": [1, 2]}, groups=[[0], [0]]), "groups has [0] in row 0"),
    (lambda: lt.NBest(features={"lm": [1, 2]}, groups=3), "groups is of type int"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, scores=[[1.0]]), "scores is of type list, expected a mapping of names"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, scores={3: [[1.0]]}), "the name of a score is 3"),
    (lambda: lt.NBest(3, features={"lm": [[1.0]]}), "texts is of type int"),
    (lambda: lt.NBest([3], features={"lm": [[1.0]]}), "texts has an entry that is no list"),
    (lambda: lt.NBest([["\udc80"]], features={"lm": [[1.0]]}), "text 0 has a character that cannot be encoded"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, documents="x"), "documents is a string"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, documents=[None]), "documents has no value for segment 0"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, documents=3), "documents is of type int"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, references=3), "references is of type int"),
    (lambda: lt.NBest([["a"]], features={"lm": [[1.0]]}, names=3), "names= is for features in one array"),
    (lambda: lt.NBest(features=np.zeros((2, 3, 2)), names=3), "names is of type int"),
    (lambda: lt.NBest.read(ROOT / "examples/lists/llm.jsonl", missing={"typo": 0}), "no candidate has `typo`; check missing="),
    (lambda: lt.NBest.read(QUICKSTART, missing={"lm": "x"}), "missing['lm'] is 'x', expected a number"),
    (lambda: lt.NBest.read(QUICKSTART, missing=3), "missing is of type int"),
    (lambda: lt.NBest.read(QUICKSTART, per_source="x"), "per_source is 'x', expected a whole number"),
    (lambda: lt.NBest.read(QUICKSTART, format=3), "format is 3, expected a string"),
    (lambda: lt.NBest.read(QUICKSTART, references=[3]), "references[0] is 3, expected a path"),
    (lambda: lt.NBest.read(QUICKSTART, threads=0), "threads is 0"),
    (lambda: lt.NBest.from_frame(FRAME, missing={"typo": 0}), "missing has a value for 'typo'"),
    (lambda: lt.NBest.from_frame(FRAME, group=3), "group is 3, expected the name of a column"),
    (lambda: lt.NBest.from_frame({"id": 3, "lm": [1.0]}), "column id is of type int"),
    (lambda: lt.Weights(3), "weights is of type int"),
    (lambda: lt.Weights([1]), "weights has 1, expected a mapping"),
    (lambda: lt.Weights({"a": float("inf")}), "the weight of a is inf"),
    (lambda: lt.Weights.read(3), "path is 3, expected a path"),
    (lambda: lt.Frame(3), "columns is of type int"),
    (lambda: lt.Frame({"a": [1], "b": [1, 2]}), "column b has 2 rows, but column a has 1"),
    (lambda: lt.Frame({"a": [object()]}).__arrow_c_stream__(), "neither numbers nor texts"),
    (lambda: lt.Translator(3), "model is 3, expected a path"),
    (lambda: lt.train(3, "b", "c"), "source is 3, expected a path"),
    (lambda: lt.train("a", "b", "c", order=9), "order is 9, expected a whole number from 1 to 6"),
    (lambda: lt.NBest.from_frame({"id": [0], "hyp": ["a"]}, text="hyp"), "no column of numbers"),
    (lambda: lt.NBest.from_frame({**FRAME, "ref": list("abcde")}, text="hyp", reference="ref"), "different values for segment"),
]


@pytest.mark.parametrize(("call", "words"), CASES, ids=[w for _, w in CASES])
def test_refused(call, words):
    with pytest.raises(lt.Error) as raised:
        call()
    assert words in str(raised.value), str(raised.value)
    assert isinstance(raised.value, ValueError)
    assert "defect" not in str(raised.value)


TUNE = [
    (lambda d: lt.tune(d, "mrt"), "mrt"),
    (lambda d: lt.tune(d, "mert"), "needs references"),
    (lambda d: lt.tune(d, "mert", metric="column:nope"), "nope"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", restarts=-1), "restarts is -1: -1 is not in"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", restart=3), "no setting restart; did you mean restarts?"),
    (lambda d: lt.tune(d, lt.Mert(), metric="column:reward", restarts=3), "settings beside a recipe"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", strategy="up"), "strategy is up, expected one of iterated"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", folds=1), "folds is 1"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", folds=3, holdout=0.2), "folds"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", holdout=2), "holdout is 2"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", threads=0), "threads is 0"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", seed=-1), "seed is -1"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", seed=1.5), "seed is 1.5"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", initial={"zz": 1.0}), "zz"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", initial={"a": float("nan")}), "a"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", initial=3), "weights are of type int"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", certify="yes"), "certify"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", fix=["zz"]), "zz"),
    (lambda d: lt.tune(d, "xbleu", metric="column:reward"), "xbleu"),
    (lambda d: lt.tune(d, "pro", metric="column:reward", psi=0.5), "psi= and interpolate= have no effect with n-best lists"),
    (lambda d: lt.tune(d, "oro", metric="column:reward", select_share=0.2), "give a selection set with select="),
    (lambda d: lt.tune(d, "mira", metric="column:reward", shards=4), "shards= has no effect with constraints=hope-fear"),
    (lambda d: lt.tune([1], "mert"), "lists is of type list"),
    (lambda d: lt.tune(d, 3), "algorithm is of type int"),
    (lambda d: lt.tune(d, "mert", metric=3), "metric is of type int"),
    (lambda d: lt.rerank(d, {"a": 1.0}, "best"), "what is 'best'"),
    (lambda d: lt.rerank(d, {}), "no weights"),
    (lambda d: lt.oracle(d), "references"),
    (lambda d: lt.surface(d, {"a": 1.0}, "zz", metric="column:reward"), "no feature is named zz"),
    (lambda d: lt.surface(d, {"a": 1.0}, "b", metric="column:reward", window=2), "window is 2"),
    (lambda d: lt.surface(d, {"a": 1.0}, "b", metric="column:reward", smooth="much"), "smooth is 'much'"),
    (lambda d: lt.loss(d, "mert", {"a": 1.0}, metric="column:reward"), "mert"),
    (lambda d: lt.mbr(d, "column:reward"), "does not compare two texts"),
    (lambda d: lt.mbr(d, gamma=float("nan")), "gamma is nan"),
    (lambda d: lt.mbr(d, gamma="much"), "gamma is 'much'"),
    (lambda d: lt.mbr(d, gamma=1e308, weights={"a": 1e308}), "lower gamma"),
    (lambda d: d.column("zz"), "no feature or score is named zz"),
    (lambda d: lt.Recipe(), "base of the algorithms"),
    (lambda d: lt.mbr(d, gamma=2.0), "gamma scales model scores, which need weights"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", bootstrap=1), "bootstrap is 1, expected a whole number of at least 2"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", bootstrap=0), "bootstrap is 0"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", folds=0), "folds is 0"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", holdout=float("nan")), "holdout is nan"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", run=3), "run is 3, expected a path"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", progress="yes"), "progress is 'yes'"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", restarts=[1]), "restarts is [1], expected a whole number"),
    (lambda d: lt.tune(d, "mert", metric="column:reward", fix=[object()]), "is neither a number nor a text"),
    (lambda d: lt.tune(d, "pro", metric="column:reward", l1=-1), "l1 is -1: expected a number above 0, or `auto`"),
    (lambda d: lt.tune(d, "oro", metric="column:reward", l1=-1.0), "l1 is -1.0"),
    (lambda d: lt.tune(d, "softmax", metric="column:reward", l1=True, gamma=[1, 2]), "l1= does not go with several values of gamma="),
    (lambda d: lt.tune(d, "mert", metric="column:reward", strategy="koehn", budget=3), "budget= applies only to strategy=iterated"),
    (lambda d: lt.surface(d, {"a": 1.0}, 3, metric="column:reward"), "direction is of type int"),
    (lambda d: lt.surface(d, {"a": 1.0}, {"b": "x"}, metric="column:reward"), "the weight of b is 'x', expected a number"),
    (lambda d: lt.rerank(d, {"a": 1.0}, ["best"]), "what is ['best']"),
    (lambda d: lt.rerank(d, {"a": 1.0}, threads="two"), "threads is 'two'"),
    (lambda d: d.column(3), "name is 3"),
    (lambda d: d.write(3), "path is 3"),
    (lambda d: d.write("x.txt", format="csv"), "format is 'csv'"),
    (lambda d: lt.tune(d, "mert"), "give them with references="),
]


@pytest.mark.parametrize(("call", "words"), TUNE, ids=[w for _, w in TUNE])
def test_wrong_calls(call, words, rewards):
    with pytest.raises(lt.Error) as raised:
        call(rewards)
    assert words in str(raised.value), str(raised.value)
    assert "defect" not in str(raised.value) and "--" not in str(raised.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def only_luthier_errors(call):
    """Calls with wrong arguments, and lets any exception but `luthier.Error` through."""
    try:
        return call()
    except lt.Error as error:
        assert "defect" not in str(error)
        return None


@settings(max_examples=300, deadline=None)
@given(texts=anything, features=anything, scores=anything, references=anything, groups=anything, names=anything, documents=anything)
def test_constructors_raise_nothing_else(texts, features, scores, references, groups, names, documents):
    only_luthier_errors(
        lambda: lt.NBest(texts, features=features, scores=scores, references=references, groups=groups, names=names, documents=documents)
    )


arrays = st.one_of(
    st.lists(st.integers(0, 3), max_size=3).map(np.zeros),
    st.lists(st.text(max_size=2), max_size=3).map(np.array),
    st.lists(anything, max_size=3).map(lambda x: np.array([*x, None], dtype=object)),
    st.just(np.array(3.0)),
    st.just(np.array(["2020-01-01"], dtype="datetime64[D]")),
)


@settings(max_examples=150, deadline=None)
@given(features=arrays, groups=arrays | anything, texts=arrays | anything)
def test_arrays_raise_nothing_else(features, groups, texts):
    for given_features in (features, {"a": features}):
        only_luthier_errors(lambda: lt.NBest(texts, features=given_features, groups=groups))


@settings(max_examples=200, deadline=None)
@given(frame=anything | st.dictionaries(st.sampled_from(["id", "a", "b"]), anything), group=anything, text=anything, missing=anything)
def test_frames_raise_nothing_else(frame, group, text, missing):
    only_luthier_errors(lambda: lt.NBest.from_frame(frame, group=group, text=text, missing=missing))
    only_luthier_errors(lambda: lt.NBest.from_frame(frame, missing=missing))
    only_luthier_errors(lambda: lt.Frame(frame).to_dict())
    only_luthier_errors(lambda: lt.Weights(frame).array)


LISTS = lt.NBest([["a b", "b"], ["c", "d"]], features={"lm": [[1.0, 2.0], [0.5, 0.25]]}, references=["a b", "d"])
SETTINGS_OF_TUNE = ["metric", "seed", "initial", "select", "test", "holdout", "folds", "bootstrap", "threads", "progress", "restarts", "fix", "l1"]


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(SETTINGS_OF_TUNE), value=anything, algorithm=st.just("mert") | anything)
def test_calls_raise_nothing_else(name, value, algorithm):
    if name in ("threads", "restarts", "bootstrap") and isinstance(value, int) and value > 100:
        value = 3
    only_luthier_errors(lambda: lt.tune(LISTS, algorithm, **{name: value}))
    only_luthier_errors(lambda: lt.tune(value, "mert"))
    only_luthier_errors(lambda: lt.rerank(LISTS, value))
    only_luthier_errors(lambda: lt.rerank(LISTS, {"lm": 1.0}, value))
    only_luthier_errors(lambda: lt.oracle(LISTS, value))
    only_luthier_errors(lambda: lt.mbr(LISTS, value, weights=value, gamma=value))
    only_luthier_errors(lambda: lt.loss(LISTS, "pro", value, metric=value))
    only_luthier_errors(lambda: lt.surface(LISTS, {"lm": 1.0}, value, smooth=value))
    only_luthier_errors(lambda: LISTS.column(value))


@settings(max_examples=200, deadline=None)
@given(value=anything, other=anything)
def test_metrics_raise_nothing_else(value, other):
    only_luthier_errors(lambda: lt.Metric(value))
    only_luthier_errors(lambda: lt.BLEU(tokenize=value))
    only_luthier_errors(lambda: lt.BLEU(smooth_method=value, smooth_value=other))
    only_luthier_errors(lambda: lt.BLEU(max_ngram_order=value if not isinstance(value, int) or value < 10 else 10))
    only_luthier_errors(lambda: lt.BLEU(lowercase=value, references=other))
    only_luthier_errors(lambda: lt.CHRF(beta=value))
    only_luthier_errors(lambda: lt.CHRF(word_order=value if not isinstance(value, int) or value < 10 else 10))
    only_luthier_errors(lambda: lt.TER(normalized=value, case_sensitive=other))
    for metric in (lt.BLEU(), lt.CHRF()):
        only_luthier_errors(lambda: metric.corpus_score(value, other))
        only_luthier_errors(lambda: metric.corpus_score(["a"], [["a"]], value if not isinstance(value, int) or value < 100 else 100))
        only_luthier_errors(lambda: metric.sentence_score(value, other))
        only_luthier_errors(lambda: metric.sentence_scores(value, other))
        only_luthier_errors(lambda: metric.pairwise(value, other))
    only_luthier_errors(lambda: lt.compare(["a"], value, [["a"]]))
    only_luthier_errors(lambda: lt.compare(["a"], ["b"], other, metric=value))
    only_luthier_errors(lambda: lt.compare(["a"], ["b"], [["a"]], test=value, seed=other, samples=3))


def test_generators_are_read_once():
    lists = lt.NBest(
        (list(texts) for texts in [["a", "b"], ["c"]]),
        features={"lm": (x for x in [[1.0, 2.0], [3.0]])},
        references=(t for t in ["a", "c"]),
    )
    assert lists.texts == [["a", "b"], ["c"]] and lists.column("lm").tolist() == [1.0, 2.0, 3.0]
    assert lists.references == [["a", "c"]]
    flat = lt.NBest((t for t in "abc"), features={"lm": (float(x) for x in range(3))}, groups=(g for g in [0, 0, 1]))
    assert flat.texts == [["a", "b"], ["c"]]
    inner = lt.NBest([(t for t in "ab")], features={"lm": [[1.0, 2.0]]})
    assert inner.texts == [["a", "b"]]


def test_views_of_a_frame():
    frame = lt.Frame({"a": [1, 2, 3], "b": [4, 5, 6]})
    assert len(frame) == 3 and len(frame.keys()) == len(frame.values()) == len(frame.items()) == 2
    assert dict(frame) == {"a": [1, 2, 3], "b": [4, 5, 6]}


def test_weights_share_one_array():
    weights = lt.Weights({"lm": 0.5, "tm": -1.0})
    assert weights.array is weights.array and np.shares_memory(np.asarray(weights), weights.array)
    with pytest.raises(ValueError):
        weights.array[0] = 3.0
    assert np.array(weights, dtype=np.float32).tolist() == [0.5, -1.0]


def test_a_penalty_that_harms_is_warned_about(rewards):
    with pytest.warns(UserWarning, match="learned with l1= score worse than the initial ones"):
        fit = lt.tune(rewards, "softmax", metric="column:reward", l1=1e6)
    assert not fit.weights.array.any() and fit.score < fit.initial


def test_notebooks_show_what_there_is_to_gain(rewards):
    text = rewards._repr_html_()
    assert "alone" in text and "best choice" in text and "headroom" in text
    fit = lt.tune(rewards, "mert", metric="column:reward", holdout=0.3, bootstrap=10)
    text = fit._repr_html_()
    for part in ["held out", "tuning lists", "stability (95 % of the resamples)", "same sign", "<svg"]:
        assert part in text, part
    assert "<svg" in lt.tune(rewards, "mert", metric="column:reward")._repr_html_()


def test_output_that_does_not_change_is_not_significant():
    x = np.repeat([[[2.0, 2.0], [1.0, 1.0]]], 20, axis=0)
    lists = lt.NBest(features=x, names=["a", "b"], scores={"y": x[:, :, 0]}, documents=[i // 2 for i in range(20)])
    held = lt.tune(lists, "mert", metric="column:y", folds=4).held_out
    assert (held.p_value, held.interval, held.score) == (1.0, 0.0, held.initial)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    width=st.integers(1, 4),
    algorithm=st.sampled_from(["mert", "pro", "apro", "mira", "perceptron", "oro", "softmax", "risk"]),
    draw=st.data(),
)
def test_no_panic_in_tuning(sizes, width, algorithm, draw):
    total = sum(sizes)
    values = draw.draw(st.lists(st.lists(finite, min_size=total, max_size=total), min_size=width + 1, max_size=width + 1))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    try:
        lists = lt.NBest(features={f"f{i}": v for i, v in enumerate(values[1:])}, scores={"y": values[0]}, groups=groups)
        fit = lt.tune(lists, algorithm, metric="column:y", threads=1)
        assert np.isfinite(fit.weights.array).all()
    except lt.Error as error:
        assert "defect" not in str(error)


@settings(max_examples=200, deadline=None)
@given(hypotheses=st.lists(st.text(max_size=20), min_size=1, max_size=4), draw=st.data())
def test_no_panic_in_metrics(hypotheses, draw):
    n = len(hypotheses)
    references = draw.draw(st.lists(st.lists(st.text(max_size=20), min_size=n, max_size=n), min_size=1, max_size=3))
    for metric in [lt.BLEU(), lt.BLEU(tokenize="intl", lowercase=True), lt.CHRF(word_order=2), lt.TER(normalized=True)]:
        try:
            metric.corpus_score(hypotheses, references)
        except lt.Error as error:
            assert "defect" not in str(error)
