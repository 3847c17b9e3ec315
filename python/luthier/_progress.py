"""Progress of long calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

from . import _check
from ._luthier import Error

#: True for a bar (tqdm if it is installed, else a line on standard error), or a function that is called with unit, number done,
#: total number (0 if unknown) and best score (None if there is none); an exception in it ends the call.
ProgressLike = Union[bool, Callable[[str, int, int, "float | None"], Any]]


def callback(progress: ProgressLike) -> Any:
    """Returns the function that progress is reported to, and None for none."""
    if progress is False or progress is None:
        return None
    if callable(progress):
        return progress
    if progress is not True:
        raise Error(f"progress is {_check.shown(progress)}, expected True, False or a function")
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return _Line()
    return _Bar(tqdm)


class _Bar:
    def __init__(self, tqdm: Any) -> None:
        self.tqdm, self.what = tqdm, ""
        self.bar: Any = None

    def __call__(self, what: str, done: int, total: int, value: float | None) -> None:
        if what != self.what or self.bar is None:
            self.end()
            self.bar, self.what = self.tqdm(total=total or None, unit=f" {what}"), what
        self.bar.update(done - self.bar.n)
        if value is not None:
            self.bar.set_postfix_str(f"{value:.4g}")

    def end(self) -> None:
        if self.bar is not None:
            self.bar.close()


class _Line:
    def __call__(self, what: str, done: int, total: int, value: float | None) -> None:
        of = f" of {total}" if total else ""
        best = "" if value is None else f"  {value:.4g}"
        print(f"\r{done}{of} {what}{best}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print(file=sys.stderr)


@contextmanager
def reporting(progress: ProgressLike) -> Iterator[Any]:
    """Gives the function that progress is reported to, None for none, and ends a bar or line, also after an error."""
    call = callback(progress)
    try:
        yield call
    finally:
        if isinstance(call, (_Bar, _Line)):
            call.end()
