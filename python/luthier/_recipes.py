"""Algorithms with their settings.

The classes are made from the settings of the command line: names, defaults, help and checks are the same there and here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _check, _luthier


class Recipe:
    """An algorithm with its settings. Its subclasses are the algorithms; all settings are keyword arguments."""

    #: Name of the algorithm in `tune` and on the command line.
    name: str = ""
    _info: Mapping[str, Any] = {}

    def __init__(self, **settings: Any) -> None:
        if not self.name:
            raise _luthier.Error("Recipe is the base of the algorithms; use one of them, such as Mert()")
        self._settings = {k: v for k, v in settings.items() if v is not None}
        self._recipe = _luthier.Recipe(self.name, _words(self.name, self._settings))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were given."""
        return dict(self._settings)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self._settings.items())
        return f"{type(self).__name__}({given})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self._recipe.json() == other._recipe.json()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return (_restore, (self.name, self._settings))


def _restore(name: str, settings: dict[str, Any]) -> Recipe:
    return ALGORITHMS[name](**settings)


def _words(algorithm: str, settings: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Returns the settings as words of the command line."""
    known = {s["name"]: s for s in ALGORITHMS[algorithm]._info["settings"]}
    words: list[tuple[str, list[str]]] = []
    for name, value in settings.items():
        setting = known.get(name)
        if setting is None:
            words.append((_check.text("the name of a setting", name), []))  # refused with the names of all settings
            continue
        try:
            words.extend(_given(name, value, setting))
        except _luthier.Error as error:
            raise _luthier.Error(str(error) if str(error).startswith(f"{name} ") else f"{name}: {error}") from None
    return [(n, w) for n, w in words if w or n not in known or known[n]["kind"] == "bool" or known[n]["optional"]]


def _given(name: str, value: Any, setting: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Returns one setting as words, or nothing if it is off."""
    if setting["kind"] == "bool":
        if not isinstance(value, bool):
            raise _luthier.Error(f"{name} is {_check.shown(value)}, expected True or False")
        return [(name, [])] if value else []
    if setting["optional"] and isinstance(value, bool):
        return [(name, [])] if value else []
    if isinstance(value, bool):
        raise _luthier.Error(f"{name} is {value!r}, expected {_kind(setting)}")
    if isinstance(value, Mapping):
        return [(name, [f"{_check.text('a name', n)}={_pair(v)}" for n, v in value.items()])]
    if setting["many"] and not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
        return [(name, [_word(v) for v in value])]
    if not isinstance(value, (str, int, float, np.generic)):
        raise _luthier.Error(f"{name} is {_check.shown(value)}, expected {_kind(setting)}")
    return [(name, [_word(value)])]


def _pair(value: Any) -> str:
    """A value of a mapping: a number, or a pair of bounds of which either can be None."""
    if isinstance(value, (tuple, list)):
        return ",".join("" if v is None else _word(v) for v in value)
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (str, int, float)):
        raise _luthier.Error(f"{_check.shown(value)} is neither a number nor a text")
    if isinstance(value, str):
        _check.text("a value", value)
    return repr(value) if isinstance(value, float) else str(value)


def _kind(setting: Mapping[str, Any]) -> str:
    if setting["choices"]:
        return "one of " + ", ".join(map(repr, setting["choices"]))
    return {"int": "a whole number", "float": "a number", "str": "text", "bool": "True or False"}[setting["kind"]]


def _annotation(setting: Mapping[str, Any]) -> str:
    if setting["choices"]:
        kind = "Literal[" + ", ".join(map(repr, setting["choices"])) + "]"
    else:
        kind = setting["kind"]
    if setting["many"]:
        kind = f"Sequence[{kind}] | Mapping[str, Any] | {kind}"
    if setting["optional"]:
        kind = f"{kind} | bool"
    return f"{kind} | None"


def _in_python(text: str) -> str:
    """Help of the command line in terms of keyword arguments."""
    return re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda m: _luthier.keyword(m[1]), text)


def _default(setting: Mapping[str, Any]) -> str:
    given = setting["default"]
    if setting["kind"] == "bool" or not given or "[default" in setting["help"]:
        return ""
    return f" [default: {', '.join(given)}]"


def _make(info: Mapping[str, Any]) -> type[Recipe]:
    settings = info["settings"]
    parameters = [
        inspect.Parameter(s["name"], inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(s)) for s in settings
    ]
    sentence = lambda text: f"{text[:1].upper()}{text[1:]}." if text else ""
    about = [sentence(_in_python(info["summary"])), sentence(info["papers"]), sentence(_in_python(info["note"]))]
    lines = [about[0], "", " ".join(about[1:]).rstrip(), "", "Settings:"]
    for s in settings:
        first, *rest = _in_python(s["help"]).split("\n\n")
        lines.append(f"  {s['name']}: {first.rstrip('.')}{_default(s)}.")
        lines.extend(f"    {part}" for part in rest)
    name = info["name"].capitalize()
    cls = type(name, (Recipe,), {"__doc__": "\n".join(lines), "name": info["name"], "_info": info, "__module__": "luthier"})
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def __init__(self: Recipe, **settings: Any) -> None:
        Recipe.__init__(self, **settings)

    __init__.__signature__ = inspect.Signature([self, *parameters], return_annotation=None)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{name}.__init__"
    cls.__init__ = __init__  # type: ignore[misc]
    return cls


#: The algorithms by name.
ALGORITHMS: dict[str, type[Recipe]] = {info["name"]: _make(info) for info in _luthier.algorithms()}

Mert = ALGORITHMS["mert"]
Pro = ALGORITHMS["pro"]
Apro = ALGORITHMS["apro"]
Mira = ALGORITHMS["mira"]
Perceptron = ALGORITHMS["perceptron"]
Oro = ALGORITHMS["oro"]
Softmax = ALGORITHMS["softmax"]
Xbleu = ALGORITHMS["xbleu"]
Risk = ALGORITHMS["risk"]


def recipe_of(algorithm: str | Recipe | type[Recipe], settings: Mapping[str, Any]) -> Recipe:
    """Returns the algorithm with a name and settings, or a given one."""
    if isinstance(algorithm, str):
        cls = ALGORITHMS.get(algorithm)
        if cls is None:
            _luthier.Recipe(algorithm, [])  # raises, with the known names
            raise AssertionError(algorithm)
        return cls(**settings)
    if isinstance(algorithm, type) and issubclass(algorithm, Recipe):
        return algorithm(**settings)
    if not isinstance(algorithm, Recipe):
        kind = type(algorithm).__name__
        raise _luthier.Error(f"the algorithm is of type {kind}, expected a name such as 'mert' or a recipe such as Mert()")
    if settings:
        names = ", ".join(settings)
        raise _luthier.Error(f"settings beside a recipe: {names}; give them to {type(algorithm).__name__}(...)")
    return algorithm
