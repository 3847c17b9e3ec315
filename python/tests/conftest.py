"""Fixtures shared by the tests of the Python package, and names for the examples in docstrings."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import luthier as lt

ROOT = Path(__file__).resolve().parents[2]


def pytest_runtest_logreport(report):
    """Says which tests were skipped where scripts/check looks for it."""
    log = os.environ.get("LUTHIER_SKIPPED")
    if log and report.skipped:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"python: {report.nodeid}: {report.longrepr[2]}\n")


@pytest.fixture(scope="session")
def binary():
    """Path of the command-line program."""
    path = os.environ.get("LUTHIER_BIN") or shutil.which("luthier")
    if path is None:
        pytest.skip("no luthier binary; set LUTHIER_BIN")
    return path


@pytest.fixture(scope="session")
def data():
    """Directory of real data."""
    path = Path(os.environ.get("LUTHIER_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("no real data; set LUTHIER_DATA")
    return path


@pytest.fixture
def quickstart():
    """Lists of the quick start, from files."""
    folder = ROOT / "examples" / "quickstart"
    return lt.NBest.read(folder / "nbest.txt", references=folder / "ref.txt")


def columns(segments=40, candidates=8, features=4, seed=1):
    """Random features, and a score that the first three features explain."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(segments, candidates, features))
    y = x @ np.array([1.0, -0.5, 0.25, 0.0, 0.0, 0.0][:features]) + 0.5 * rng.normal(size=(segments, candidates))
    return x, y


@pytest.fixture
def rewards():
    """Lists with four features and a column of rewards, without texts."""
    x, y = columns()
    return lt.NBest(features=x, names=["a", "b", "c", "d"], scores={"reward": y})


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace):
    """Names that examples in docstrings use."""
    doctest_namespace.update({name: getattr(lt, name) for name in lt.__all__}, np=np, lt=lt)
