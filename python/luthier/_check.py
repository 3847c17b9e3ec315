"""Checks of arguments: what was found, what was expected, and what to do."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from ._luthier import Error

_F = TypeVar("_F", bound=Callable[..., Any])

#: Exceptions of Python and NumPy about arguments that no check foresees.
_FOREIGN = (TypeError, ValueError, OverflowError, AttributeError, LookupError, RecursionError)


def refusing(function: _F) -> _F:
    """Makes a function of the package that calls nothing of the user's raise `luthier.Error` for every wrong argument."""
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def wrapper(*arguments: Any, **settings: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*arguments, **settings)
        except Error:
            raise
        except _FOREIGN as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise  # the arguments do not fit the signature
            raise Error(f"{name} cannot use these arguments: {error}; see help(luthier.{name})") from error

    return wrapper  # type: ignore[return-value]


def kind(value: Any) -> str:
    """Returns the name of a value's type."""
    return type(value).__name__


def shown(value: Any) -> str:
    """Returns a value as text, shortened."""
    try:
        text = repr(value)
    except Exception:
        return f"of type {kind(value)}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def text(what: str, value: Any, expected: str = "a string") -> str:
    """Returns a string that can be encoded."""
    if not isinstance(value, str):
        raise Error(f"{what} is {shown(value)}, expected {expected}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Error(f"{what} is {shown(value)}, which has a character that cannot be encoded; remove it") from None
    return value


def optional_text(what: str, value: Any) -> str | None:
    """Returns a string, or None."""
    return None if value is None else text(what, value)


def listed(what: str, values: Any, expected: str) -> list[Any]:
    """Returns the items of anything but a string as a list."""
    if isinstance(values, (str, bytes)):
        raise Error(f"{what} is a string, expected {expected}")
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise Error(f"{what} is of type {kind(values)}, expected {expected}")
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            raise Error(f"{what} is a single value, expected {expected}")
        return values.tolist()  # type: ignore[no-any-return]
    return list(values)


def names(what: str, values: Any) -> list[str]:
    """Returns a list of strings; a single string is a list of one."""
    values = [values] if isinstance(values, str) else listed(what, values, "a list of names")
    return [text(f"{what}[{i}]", name) for i, name in enumerate(values)]


def mapping(what: str, values: Any, expected: str) -> dict[Any, Any]:
    """Returns a mapping as a dictionary."""
    if not isinstance(values, Mapping):
        raise Error(f"{what} is of type {kind(values)}, expected {expected}")
    return {name: values[name] for name in values}


def path(what: str, value: Any) -> str:
    """Returns a path as a string."""
    if not isinstance(value, (str, os.PathLike)):
        raise Error(f"{what} is {shown(value)}, expected a path")
    return text(what, os.fspath(value), "a path")


def paths(what: str, values: Any) -> list[str]:
    """Returns one path, or several, as a list."""
    if isinstance(values, (str, os.PathLike)):
        return [path(what, values)]
    if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable):
        raise Error(f"{what} is {shown(values)}, expected a path or a list of paths")
    return [path(f"{what}[{i}]", value) for i, value in enumerate(values)]


def flag(what: str, value: Any) -> bool:
    """Returns True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise Error(f"{what} is {shown(value)}, expected True or False")
    return bool(value)


def number(what: str, value: Any) -> float:
    """Returns a number, which can be infinite or NaN."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise Error(f"{what} is {shown(value)}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise Error(f"{what} is too large for a number") from None


def finite(what: str, value: Any) -> float:
    """Returns a number that is neither infinite nor NaN."""
    found = number(what, value)
    if not np.isfinite(found):
        raise Error(f"{what} is {found}, expected a finite number")
    return found


def whole(what: str, value: Any) -> int:
    """Returns a whole number of 64 bits without a sign."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Error(f"{what} is {shown(value)}, expected a whole number")
    value = int(value)
    if not 0 <= value < 2**64:
        raise Error(f"{what} is {shown(value)}, expected a whole number from 0 to 2**64 - 1")
    return value


def at_least(what: str, value: Any, least: int, most: int = 2**32 - 1) -> int | None:
    """Returns a whole number from `least` to `most`, or None."""
    if value is None:
        return None
    if not least <= whole(what, value) <= most:
        limit = f"of at least {least}" if most == 2**32 - 1 else f"from {least} to {most}"
        raise Error(f"{what} is {shown(value)}, expected a whole number {limit}")
    return int(value)


def share(what: str, value: Any) -> float | None:
    """Returns a share of segments above 0 and below 1, or None."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)) or not 0 < value < 1:
        raise Error(f"{what} is {shown(value)}, expected a share of the segments, above 0 and below 1")
    return float(value)


def choice(what: str, value: Any, known: tuple[str, ...]) -> str:
    """Returns one of some words."""
    if not isinstance(value, str) or value not in known:
        raise Error(f"{what} is {shown(value)}, expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")
    return value
