"""Writes `luthier/_recipes.pyi`, the types of the algorithms, whose classes are made at run time. A test compares the file."""

import sys
from pathlib import Path

import luthier._recipes as recipes

HEAD = '''"""Types of the algorithms; made by make_stubs.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

class Recipe:
    name: str
    _info: Mapping[str, Any]
    _recipe: Any
    def __init__(self, **settings: Any) -> None: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> Any: ...

ALGORITHMS: dict[str, type[Recipe]]

def recipe_of(algorithm: str | Recipe | type[Recipe], settings: Mapping[str, Any]) -> Recipe: ...
'''


def text() -> str:
    """Returns the content of the file."""
    parts = [HEAD]
    for name, cls in recipes.ALGORITHMS.items():
        lines = [f"\nclass {name.capitalize()}(Recipe):", "    def __init__(", "        self,", "        *,"]
        for setting in cls._info["settings"]:
            lines.append(f"        {setting['name']}: {recipes._annotation(setting)} = None,".replace("'", '"'))
        lines.append("    ) -> None: ...\n")
        parts.append("\n".join(lines))
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "luthier" / "_recipes.pyi").write_text(text(), encoding="utf-8")
