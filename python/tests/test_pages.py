"""The pages and notebooks do what they show."""

import doctest
import os

import pytest

from conftest import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(("page", "least"), [("README.md", 8), ("python/README.md", 25)])
def test_page(page, least, monkeypatch, tmp_path):
    """Runs the examples in a directory that has the examples only."""
    if page != "README.md":
        pytest.importorskip("sklearn")
    os.symlink(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert result.attempted >= least and result.failed == 0


@pytest.mark.parametrize("name", ["best_of_n", "rerank_translations"])
def test_notebook(name, monkeypatch, tmp_path):
    """Runs a notebook; its cells assert what its text says."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("LUTHIER_EXAMPLES", str(ROOT / "examples"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(ROOT / "examples" / "python" / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("text/html" in o.get("data", {}) for o in shown)
    assert all(o.output_type != "error" for o in shown)
