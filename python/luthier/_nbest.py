"""N-best lists."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from . import _check, _luthier
from ._frame import Frame
from ._luthier import Error

Path = "str | os.PathLike[str]"


class NBest:
    """N-best lists of a text: the candidates of every segment, with features, other scores and references.

    Nested lists, one entry per segment and in it one per candidate:

    >>> dev = NBest(
    ...     texts=[["the house", "house the"], ["a cat"]],
    ...     features={"logprob": [[-1.0, -0.5], [-2.0]], "lm": [[-3.0, -7.0], [-2.0]]},
    ...     scores={"comet": [[0.9, 0.2], [0.8]]},
    ...     references=["the house", "the cat"],
    ... )
    >>> dev
    <luthier.NBest of 2 segments, 3 candidates; features: logprob, lm; scores: comet; 1 reference per segment>

    Flat arrays, one entry per candidate, with the segment of each in `groups`; or an array of segments × candidates × features:

    >>> NBest(features=np.array([[-1.0, 2.0], [-2.0, 3.0]]), names=["lm", "length"], groups=[7, 7], texts=["a b", "a b c"])
    <luthier.NBest of 1 segment, 2 candidates; features: lm, length>
    >>> len(NBest(features=np.zeros((5, 10, 3)), names=["a", "b", "c"]))
    5

    Features are tuned; scores are not, but metrics read them as `column:comet`. References are one text per segment, or as in
    sacreBLEU `references[j][i]`, the j-th reference of segment i. `documents` is the document of each segment, which held-out
    sets and resamples keep together. Texts can be left out if no metric reads them.
    """

    _lists: _luthier.Lists
    _usage: list[str]

    @_check.refusing
    def __init__(
        self,
        texts: Sequence[Sequence[str]] | Sequence[str] | None = None,
        *,
        features: Mapping[str, Any] | Any,
        names: Sequence[str] | None = None,
        scores: Mapping[str, Any] | None = None,
        references: Sequence[str] | Sequence[Sequence[str]] | None = None,
        groups: Any = None,
        documents: Sequence[Any] | None = None,
    ) -> None:
        if isinstance(features, (str, bytes)):
            raise Error("features is a string, expected a mapping of names to numbers, or an array")
        if features is None:
            raise Error("features is None, expected a mapping of names to numbers, or an array")
        scores = {} if scores is None else _check.mapping("scores", scores, "a mapping of names to one number per candidate")
        texts = _held(texts)
        sizes, ids = _shape(texts, features, scores, groups)
        total = int(sizes.sum())
        if total == 0:
            raise Error("there are no candidates")
        columns = _features(features, names, sizes)
        builder = _luthier.Builder(sizes, len(columns), len(scores))
        for name, column in columns:
            builder.feature(_name("a feature", name), _flat(f"feature {name}", column, sizes, total))
        for name, column in scores.items():
            builder.score(_name("a score", name), _flat(f"score {name}", column, sizes, total))
        if ids is not None:
            builder.ids([_check.text("an id of a segment", i) for i in ids])
        if documents is not None:
            builder.groups(_documents(documents, len(sizes)))
        if texts is not None:
            builder.texts(_flat_texts(texts, sizes, total))
        for stream in _references(references, len(sizes)):
            builder.references(stream)
        self._lists = builder.finish()
        self._usage = []

    @classmethod
    def _of(cls, lists: _luthier.Lists, usage: list[str]) -> NBest:
        self = cls.__new__(cls)
        self._lists, self._usage = lists, usage
        return self

    @classmethod
    @_check.refusing
    def read(
        cls,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        references: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        format: str | None = None,
        per_source: int | None = None,
        id_column: str | None = None,
        text_column: str | None = None,
        reference_column: str | None = None,
        group_column: str | None = None,
        feature_columns: Sequence[str] = (),
        ignore_columns: Sequence[str] = (),
        missing: Mapping[str, float] | None = None,
        threads: int | None = None,
    ) -> NBest:
        """Reads files in any format that the command line reads, plain or compressed; several files are merged.

        The format is detected from the content unless `format` gives it. `references` are files with one line per segment;
        without them, references in the lists are used. `usage` says what the columns of tables were read as. `missing` gives
        values to features that some candidates do not have.
        """
        files = _check.paths("paths", paths)
        if not files:
            raise Error("paths is empty, expected at least one file")
        lists = _luthier.Lists.read(
            files,
            _check.paths("references", references),
            format=_check.optional_text("format", format),
            per_source=_check.at_least("per_source", per_source, 1),
            id=_check.optional_text("id_column", id_column),
            text=_check.optional_text("text_column", text_column),
            reference=_check.optional_text("reference_column", reference_column),
            group=_check.optional_text("group_column", group_column),
            features=_check.names("feature_columns", feature_columns),
            ignore=_check.names("ignore_columns", ignore_columns),
            missing=list(_missing(missing).items()),
            threads=_check.at_least("threads", threads, 1),
        )
        return cls._of(lists, lists.usage())

    @classmethod
    @_check.refusing
    def from_frame(
        cls,
        frame: Any,
        *,
        group: str = "id",
        text: str | None = None,
        features: Sequence[str] | None = None,
        scores: Sequence[str] = (),
        reference: str | Sequence[str] | None = None,
        document: str | None = None,
        missing: Mapping[str, float] | None = None,
    ) -> NBest:
        """Makes lists of a frame with one row per candidate: pandas, polars, pyarrow, duckdb, or a mapping of columns.

        `group` names the column with the segment of each row; rows of a segment must follow each other. `features` are by default
        all columns of numbers that are nothing else. `reference` is a column, or several. `missing` gives values to features
        that some rows do not have. `usage` says what the columns were read as.

        >>> frame = {"id": [0, 0, 1], "hyp": ["a b", "b a", "c"], "lm": [-1.0, -2.0, -1.5], "comet": [0.9, 0.3, 0.8]}
        >>> dev = NBest.from_frame(frame, text="hyp", scores=["comet"])
        >>> dev.usage
        ['frame: id: id; text: hyp; features: lm; scores: comet']
        """
        columns = _columns(frame)
        references = _check.names("reference", reference) if reference is not None else []
        scores, taken = _check.names("scores", scores), [_check.text("group", group, "the name of a column"), *references]
        chosen = [("text", text), ("document", document)]
        taken += [_check.text(what, c, "the name of a column") for what, c in chosen if c is not None] + scores
        named = None if features is None else _check.names("features", features)
        for name in [*taken, *(named or ())]:
            if name not in columns:
                raise Error(f"the frame has no column {name!r}; it has {', '.join(map(str, columns))}")
            if columns[name] is None:
                raise Error(f"column {name} has neither numbers nor texts; convert it first")
        rest = [name for name in columns if name not in taken]
        used = named if named is not None else [n for n in rest if _is_number(columns[n])]
        if not used:
            raise Error("the frame has no column of numbers that could be a feature; name them with features=")
        _check_missing(missing, [*used, *scores])
        keys = list(columns[group])
        starts, ids = _runs(keys, f"column {group}")
        values = {name: _filled(name, columns[name], _missing(missing).get(name)) for name in [*used, *scores]}
        first = lambda name: [_the_one(name, columns[name], a, b, i) for (a, b), i in zip(_spans(starts, len(keys)), ids)]
        lists = cls(
            list(columns[text]) if text is not None else None,
            features={name: values[name] for name in used},
            scores={name: values[name] for name in scores},
            groups=keys,
            references=[[str(t) for t in first(name)] for name in references] or None,
            documents=first(document) if document is not None else None,
        )
        said = [f"frame: id: {group}", f"text: {text}" if text else "no text", f"features: {', '.join(used)}"]
        said += [f"scores: {', '.join(scores)}"] * bool(scores) + [f"reference: {', '.join(references)}"] * bool(references)
        ignored = [str(name) for name in rest if name not in used]
        said += [f"ignored: {', '.join(ignored)}"] * bool(ignored)
        lists._usage = ["; ".join(said)]
        return lists

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes the lists as Moses' format, JSON lines or TSV, as `format` or the name of the file says."""
        self._lists.write(_check.path("path", path), _check.optional_text("format", format))

    @property
    def usage(self) -> list[str]:
        """What the columns of tables were read as, a line per file."""
        return list(self._usage)

    @property
    def features(self) -> list[str]:
        """The names of the features."""
        return self._lists.feature_names()

    @property
    def scores(self) -> list[str]:
        """The names of the scores that are not features."""
        return self._lists.score_names()

    @property
    def ids(self) -> list[str]:
        """The ids of the segments."""
        return self._lists.ids()

    @property
    def sizes(self) -> np.ndarray:
        """The number of candidates of each segment."""
        return self._lists.sizes()

    @property
    def size(self) -> int:
        """The number of candidates of all segments."""
        return self._lists.size()

    @property
    def texts(self) -> list[list[str]]:
        """The texts of all candidates, a list per segment."""
        return self._lists.texts()

    @property
    def references(self) -> list[list[str]]:
        """The references: `references[j][i]` is the j-th reference of segment i."""
        return self._lists.reference_texts()

    def column(self, name: str) -> np.ndarray:
        """Returns a feature or score of all candidates, segment after segment; NaN where a candidate has none."""
        return self._lists.column(_check.text("name", name, "the name of a feature or score"))

    def frame(self) -> Frame:
        """Returns all candidates as a table, one row each."""
        ids, sizes = self.ids, self.sizes
        columns: dict[str, Any] = {"id": [i for i, n in zip(ids, sizes) for _ in range(n)]}
        columns["text"] = [t for texts in self.texts for t in texts]
        for name in [*self.features, *self.scores]:
            columns[name] = self.column(name)
        return Frame(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All candidates as a stream of the Arrow PyCapsule protocol."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> Any:
        """Lists can be pickled if every candidate has every feature and score."""
        names = {name: self.column(name) for name in [*self.features, *self.scores]}
        sparse = [name for name, column in names.items() if np.isnan(column).any()]
        if sparse:
            raise Error(f"lists with missing values cannot be pickled: {_some(sparse)}; write them to a file instead")
        features, scores = {n: names[n] for n in self.features}, {n: names[n] for n in self.scores}
        numbered = self.ids == [str(i) for i in range(len(self))]
        ids = [i for i, n in zip(range(len(self)) if numbered else self.ids, self.sizes) for _ in range(n)]
        texts = [text for texts in self.texts for text in texts]
        return _rebuild, (texts, features, scores, self.references, ids, self._lists.groups(), self._usage)

    def __len__(self) -> int:
        """The number of segments."""
        return len(self.sizes)

    def __repr__(self) -> str:
        segments, n = len(self), self._lists.reference_count()
        parts = [f"{_counted(segments, 'segment')}, {_counted(self.size, 'candidate')}", f"features: {_some(self.features)}"]
        parts += [f"scores: {_some(self.scores)}"] * bool(self.scores)
        parts += [f"{_counted(n, 'reference')} per segment"] * bool(n)
        return f"<luthier.NBest of {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from ._html import lists

        return lists(self)


def _rebuild(
    texts: list[str],
    features: dict[str, np.ndarray],
    scores: dict[str, np.ndarray],
    references: list[list[str]],
    ids: list[Any],
    documents: list[str] | None,
    usage: list[str],
) -> NBest:
    """Unpickles lists."""
    lists = NBest(texts, features=features, scores=scores, references=references or None, groups=ids, documents=documents)
    lists._usage = usage
    return lists


def _counted(n: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else f"{what}s"
    return f"{n:,} {what if n == 1 else plural}"


def _there(n: int, what: str) -> str:
    return f"there {'is' if n == 1 else 'are'} {_counted(n, what)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:12])} and {len(names) - 12} more"


def _name(what: str, name: Any) -> str:
    return _check.text(f"the name of {what}", name)


def _missing(missing: Any) -> dict[str, float]:
    if missing is None:
        return {}
    values = _check.mapping("missing", missing, "a mapping of names to numbers")
    return {_check.text("a name in missing", n): _check.finite(f"missing[{n!r}]", v) for n, v in values.items()}


def _check_missing(missing: Any, names: list[str]) -> None:
    for name in _missing(missing):
        if name not in names:
            raise Error(f"missing has a value for {name!r}, which is neither a feature nor a score; these are {_some(names)}")


def _documents(documents: Any, segments: int) -> list[str]:
    """Returns the name of the document of each segment."""
    found = _check.listed("documents", documents, "a list with the document of each segment")
    if len(found) != segments:
        raise Error(f"documents has {_counted(len(found), 'entry')}, but {_there(segments, 'segment')}")
    for segment, document in enumerate(found):
        if document is None or document == "" or isinstance(document, float) and document != document:
            raise Error(f"documents has no value for segment {segment}; every segment needs a document")
        if not isinstance(document, (str, int, float)):
            raise Error(f"documents has {_check.shown(document)} for segment {segment}, expected a name or a number")
    return [_check.text("a document", str(d)) for d in found]


def _held(texts: Any) -> Any:
    """Returns texts of which nothing is lost by a first look: generators become lists."""
    if texts is None or _is_text(texts):
        return texts
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        raise Error(f"texts is of type {_check.kind(texts)}, expected a list of lists of strings")
    if isinstance(texts, Iterator):
        texts = list(texts)
    if isinstance(texts, (list, tuple)) and any(isinstance(entry, Iterator) for entry in texts):
        return [list(entry) if isinstance(entry, Iterator) else entry for entry in texts]
    return texts


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _first(items: Any) -> Any:
    return next(iter(items), None)


def _shape(texts: Any, features: Any, scores: Mapping[str, Any], groups: Any) -> tuple[np.ndarray, list[str] | None]:
    """Returns the number of candidates of each segment, and the ids of the segments unless they are numbered."""
    if _is_text(texts):
        raise Error("texts is a string, expected a list of lists of strings")
    if groups is not None:
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise Error(f"groups has the shape {groups.shape}, expected one number or name per candidate; flatten it with ravel()")
        keys = _check.listed("groups", groups, "a list with the segment of each candidate")
        starts, ids = _runs(keys, "groups")
        sizes = np.diff(np.append(starts, len(keys))).astype(np.int64)
        return sizes, (None if ids == list(range(len(ids))) else [str(i) for i in ids])
    if texts is not None and not isinstance(texts, np.ndarray) and _is_text(_first(texts)):
        raise Error("texts are one per candidate, so groups= must say which segment each belongs to; or give a list per segment")
    model = texts if texts is not None else _model(features, scores)
    if isinstance(model, np.ndarray) and model.ndim >= 2:
        return np.full(model.shape[0], model.shape[1], dtype=np.int64), None
    if not isinstance(model, Iterable) or isinstance(model, (str, bytes, Mapping)):
        which = "the first feature" if texts is None else "texts"
        raise Error(f"{which} is {_check.shown(model)}, expected one list per segment, with an entry per candidate")
    try:
        return np.fromiter((len(entry) for entry in model), dtype=np.int64), None
    except TypeError:
        if texts is not None:
            raise Error("texts has an entry that is no list; expected one list of texts per segment") from None
        raise Error(
            "features are one number per candidate, so groups= must say which segment each belongs to; or give a list per segment"
        ) from None


def _model(features: Any, scores: Mapping[str, Any]) -> Any:
    """Returns the values that tell how many candidates the segments have."""
    if isinstance(features, Mapping):
        model = _first(features.values())
        if model is None:
            model = _first(scores.values())
        if model is None:
            raise Error("no features; give at least one")
        return model
    array = _array(features)
    if array.ndim != 3:
        raise Error(f"features has the shape {array.shape}; without groups= and texts= it needs segments × candidates × features")
    return array


def _features(features: Any, names: Sequence[str] | None, sizes: np.ndarray) -> list[tuple[str, Any]]:
    """Returns features as names and columns, which can be views of an array."""
    if isinstance(features, Mapping):
        if names is not None:
            raise Error("names= is for features in one array; a mapping of features has names")
        return list(features.items())
    if hasattr(features, "columns") and names is None:  # a frame of features
        columns = _columns(features)
        return list(columns.items())
    array = _array(features)
    if array.ndim not in (2, 3):
        raise Error(f"features has the shape {array.shape}, expected candidates × features or segments × candidates × features")
    width = array.shape[-1]
    if names is None:
        names = [f"f{i}" for i in range(width)]
    names = _check.names("names", names)
    if len(names) != width:
        raise Error(f"names has {_counted(len(names), 'name')}, but features has {_counted(width, 'column')}")
    return [(name, array[..., i]) for i, name in enumerate(names)]


def _array(features: Any) -> np.ndarray:
    try:
        return np.asarray(features)
    except ValueError:
        raise Error("features has rows of different lengths; give a mapping of names to one list per segment") from None


def _flat(what: str, column: Any, sizes: np.ndarray, total: int) -> np.ndarray:
    """Returns the values of all candidates, checked against their numbers; no copy of an array of 64-bit floats."""
    if isinstance(column, Iterator):
        column = list(column)
    if not isinstance(column, np.ndarray) and not hasattr(column, "__array__") and _nested(column):
        entries = [np.asarray(_numbers(what, entry)) for entry in column]
        if len(entries) != len(sizes):
            raise Error(f"{what} has {_counted(len(entries), 'entry')}, but {_there(len(sizes), 'segment')}")
        for segment, (entry, n) in enumerate(zip(entries, sizes)):
            if entry.shape != (n,):
                found = _counted(len(entry), "value") if entry.ndim == 1 else f"the shape {entry.shape}"
                raise Error(f"{what} has {found} for segment {segment}, which has {_counted(int(n), 'candidate')}")
        return np.concatenate(entries) if entries else np.zeros(0)
    array = _numbers(what, column)
    if array.ndim == 2 and len(sizes) == array.shape[0] and (sizes == array.shape[1]).all():
        array = array.reshape(-1)
    if array.shape != (total,):
        raise Error(f"{what} has the shape {array.shape}, but {_there(total, 'candidate')} of {_counted(len(sizes), 'segment')}")
    return array


def _nested(column: Any) -> bool:
    first = _first(column) if isinstance(column, Iterable) else None
    return isinstance(first, (Sequence, np.ndarray)) and not _is_text(first)


def _numbers(what: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "USMmcV":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise Error(f"{what} is not made of numbers; give one number per candidate") from None


def _flat_texts(texts: Any, sizes: np.ndarray, total: int) -> Iterable[str]:
    if isinstance(texts, np.ndarray):
        texts = texts.tolist()
    elif hasattr(texts, "to_list"):  # a series of a frame
        texts = texts.to_list()
    if _is_text(_first(texts)) or len(texts) != len(sizes) or not _nested(texts):
        if len(texts) != total:
            raise Error(f"texts has {_counted(len(texts), 'entry')}, but {_there(total, 'candidate')}")
        return texts
    for segment, (entry, n) in enumerate(zip(texts, sizes)):
        if _is_text(entry) or not isinstance(entry, (Sequence, np.ndarray)):
            raise Error(f"texts has {_check.shown(entry)} for segment {segment}, expected a list of strings")
        if len(entry) != n:
            raise Error(f"texts has {_counted(len(entry), 'text')} for segment {segment}, which has {_counted(int(n), 'candidate')}")
    return (text for entry in texts for text in entry)


def _references(references: Any, segments: int) -> Iterator[list[str]]:
    if references is None:
        return
    if _is_text(references):
        raise Error("references is a string, expected a list with one reference per segment")
    references = _check.listed("references", references, "a list with one reference per segment")
    streams = [references] if not references or _is_text(references[0]) else references
    for j, stream in enumerate(streams):
        which = "references" if len(streams) == 1 else f"references[{j}]"
        if isinstance(stream, Mapping) or not isinstance(stream, Iterable):
            raise Error(f"references has {stream!r} for segment {j}, expected a string")
        stream = list(stream)
        wrong = next((i for i, text in enumerate(stream) if not isinstance(text, str)), None)
        if wrong is not None:
            raise Error(f"{which} has {stream[wrong]!r} for segment {wrong}, expected a string")
        if len(stream) != segments:
            raise Error(
                f"{which} has {_counted(len(stream), 'text')}, but {_there(segments, 'segment')}; "
                "several references are references[j][i], the j-th reference of segment i"
            )
        yield stream


def _runs(keys: list[Any], what: str) -> tuple[np.ndarray, list[Any]]:
    """Returns where each group begins, and its key. Fails if rows of a group do not follow each other."""
    starts, ids, seen = [], [], set()
    last: Any = object()
    for row, key in enumerate(keys):
        if not isinstance(key, (str, int, float, type(None), np.generic)):
            raise Error(f"{what} has {_check.shown(key)} in row {row}, expected a number or a name")
        if key is None or key != key:
            raise Error(f"{what} has no value in row {row}; every candidate needs a segment")
        if key == last:
            continue
        if key in seen:
            raise Error(
                f"{what} is {key!r} in row {row}, but rows of other segments come between: candidates of a segment must follow "
                "each other; sort the rows by segment first, with a stable sort"
            )
        seen.add(key)
        starts.append(row)
        ids.append(key)
        last = key
    if not ids:
        raise Error("there are no candidates")
    return np.array(starts, dtype=np.int64), ids


def _spans(starts: np.ndarray, end: int) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), [*starts[1:].tolist(), end]))


def _the_one(name: str, column: Any, start: int, end: int, segment: Any) -> Any:
    """Returns the value of a column that is the same in all rows of a segment."""
    value = column[start]
    if value is None or value != value:
        raise Error(f"column {name} has no value for segment {segment}")
    for row in range(start, end):
        if column[row] != value:
            raise Error(f"column {name} has different values for segment {segment}: {value!r} and {column[row]!r}")
    return value


def _columns(frame: Any) -> dict[str, Any]:
    """Returns the columns of a frame: arrays of numbers, lists of strings, and None for other columns."""
    if isinstance(frame, Mapping) and not isinstance(frame, Frame):
        return {name: _listed(name, values) for name, values in frame.items()}
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return _luthier.columns_of(frame)
        except ImportError:
            pass  # pandas without pyarrow
    try:
        return {name: _listed(name, frame[name].to_numpy()) for name in frame.columns}
    except (AttributeError, TypeError):
        kind = type(frame).__name__
        raise Error(f"the frame is of type {kind}, expected one of pandas, polars, pyarrow or duckdb, or a mapping of columns") from None


def _listed(name: Any, values: Any) -> Any:
    """Returns an array of numbers, or a list of other values."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise Error(f"column {name} is of type {_check.kind(values)}, expected a list with a value per row")
    try:
        array = values if isinstance(values, np.ndarray) else np.asarray(list(values) if isinstance(values, Iterator) else values)
    except ValueError:
        return list(values)
    return array if array.dtype.kind in "iufb" and array.ndim == 1 else array.tolist() if array.ndim == 1 else list(values)


def _is_number(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf" or column.dtype.kind == "b"
    return column is not None and len(column) > 0 and all(isinstance(v, (int, float, type(None))) for v in column)


def _filled(name: str, column: Any, missing: float | None) -> Any:
    array = _numbers(f"column {name}", column)
    return array if missing is None else np.where(np.isnan(array), missing, array)
