"""Types of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[1]


def test_stubs_of_recipes_are_those_of_the_program():
    import make_stubs

    written = (PYTHON / "luthier" / "_recipes.pyi").read_text(encoding="utf-8")
    assert written == make_stubs.text(), "run python/tests/make_stubs.py"


def test_stubtest(tmp_path):
    pytest.importorskip("mypy")
    allowed = ["luthier.sklearn.Reranker.set_(fit|score)_request", "luthier._luthier.__all__"]  # made by scikit-learn and PyO3
    (tmp_path / "allowed").write_text("\n".join(allowed), encoding="utf-8")
    words = [sys.executable, "-m", "mypy.stubtest", "luthier", "--ignore-disjoint-bases", "--allowlist", "allowed"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


USE = '''
import luthier as lt
dev = lt.NBest([["a", "b"]], features={"lm": [[1.0, 2.0]]}, references=["a"])
fit: lt.Fit = lt.tune(dev, lt.Mert(restarts=3, strategy="koehn"), folds=2)
score: float = fit.score
held: lt.HeldOut | None = fit.held_out
texts: list[str] = lt.Translator("model").translate(["a"])
lt.Mert(restart=3)
lt.Mert(strategy="up")
'''


def test_a_user_is_told_by_a_type_checker(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", "use.py"], capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if "error" in line and line.startswith("use.py")]
    assert len(errors) == 2 and 'keyword argument "restart"' in errors[0] and "strategy" in errors[1], done.stdout


def test_the_package_is_typed(tmp_path):
    pytest.importorskip("mypy")
    words = [sys.executable, "-m", "mypy", "--no-error-summary", "-p", "luthier"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
