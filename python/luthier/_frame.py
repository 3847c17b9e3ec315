"""Tables in and out, without a frame library."""

from __future__ import annotations

import html
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np

from . import _check, _luthier


class Frame(Mapping[str, Any]):
    """A small table: columns by name.

    Frame libraries read it without a copy in Python: `pandas.DataFrame.from_arrow(frame)`, `polars.DataFrame(frame)`,
    `pyarrow.table(frame)`; `frame.to_dict()` gives plain lists.

    >>> frame = Frame({"name": ["lm", "tm"], "weight": np.array([0.75, 0.25])})
    >>> frame["name"], len(frame)
    (['lm', 'tm'], 2)
    >>> frame.to_dict()
    {'name': ['lm', 'tm'], 'weight': [0.75, 0.25]}
    >>> print(frame)
    name  weight
    lm    0.75
    tm    0.25
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns: dict[str, Any] = {}
        for name, column in _check.mapping("columns", columns, "a mapping of names to lists or arrays").items():
            array = isinstance(column, np.ndarray) and column.ndim == 1
            self._columns[_check.text("the name of a column", name)] = column if array else _check.listed(f"column {name}", column, "a list")
        lengths = {name: len(column) for name, column in self._columns.items()}
        first = next(iter(lengths.items()), None)
        for name, n in lengths.items():
            if first is not None and n != first[1]:
                raise _luthier.Error(f"column {name} has {n:,} rows, but column {first[0]} has {first[1]:,}")

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    # The length of a view of a mapping is that of the mapping, here the number of rows.
    def keys(self) -> KeysView[str]:
        """The names of the columns."""
        return self._columns.keys()

    def values(self) -> ValuesView[Any]:
        """The columns."""
        return self._columns.values()

    def items(self) -> ItemsView[str, Any]:
        """The names of the columns with the columns."""
        return self._columns.items()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns as lists."""
        return {name: np.asarray(c).tolist() if isinstance(c, np.ndarray) else list(c) for name, c in self._columns.items()}

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows as tuples."""
        return list(zip(*self.to_dict().values()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of the Arrow PyCapsule protocol."""
        try:
            return _luthier.stream_of(self._columns)
        except TypeError:
            raise _luthier.Error("a column has neither numbers nor texts only, as a stream of Arrow needs; convert it first") from None

    def _shown(self) -> list[list[str]]:
        return [self.columns] + [[_cell(v) for v in row] for row in self.rows()]

    def __str__(self) -> str:
        rows = self._shown()
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<luthier.Frame of {len(self):,} rows: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        head, *body = self._shown()
        cells = lambda tag, row: "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row)
        rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in body)
        return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
