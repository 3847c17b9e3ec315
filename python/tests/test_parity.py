"""The same lists, tuned from Python (files, nested lists, arrays) and from the command line, give the same weights."""

import json
import subprocess

import numpy as np
import pytest

import luthier as lt
from conftest import ROOT, columns

ALGORITHMS = ["mert", "pro", "apro", "mira", "perceptron", "oro", "softmax", "xbleu", "risk"]


def run(binary, *words):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_command(binary, folder, algorithm, nbest, *words):
    run(binary, "tune", algorithm, "--nbest", nbest, "--run", folder / "run", "--threads", 1, "-q", *words)
    return lt.Weights.read(folder / "run" / "best.txt")


def test_nine_recipes_by_file_lists_and_command(binary, quickstart, tmp_path):
    folder = ROOT / "examples" / "quickstart"
    again = lt.NBest(
        texts=quickstart.texts,
        features={n: np.split(quickstart.column(n), np.cumsum(quickstart.sizes)[:-1]) for n in quickstart.features},
        references=quickstart.references,
    )
    for algorithm in ALGORITHMS:
        words = ["--ref", folder / "ref.txt"]
        expected = by_command(binary, tmp_path / algorithm, algorithm, folder / "nbest.txt", *words)
        fit = lt.tune(quickstart, algorithm, threads=2)
        assert dict(fit.weights) == dict(expected), algorithm
        assert dict(lt.tune(again, algorithm, threads=1).weights) == dict(expected), algorithm


def test_arrays_and_columns_by_command(binary, tmp_path):
    x, y = columns(features=5)
    names = list("abcde")
    flat = lt.NBest(features=x.reshape(-1, 5), names=names, scores={"reward": y.ravel()}, groups=np.repeat(np.arange(40), 8))
    cube = lt.NBest(features=x, names=names, scores={"reward": y})
    mapping = lt.NBest(features={n: x[:, :, i] for i, n in enumerate(names)}, scores={"reward": y.tolist()})
    nbest = tmp_path / "lists.jsonl"
    cube.write(nbest)
    for algorithm in ["mert", "pro", "apro", "mira", "perceptron", "oro", "softmax", "risk"]:
        expected = by_command(binary, tmp_path / algorithm, algorithm, nbest, "--metric", "column:reward")
        for lists in [flat, cube, mapping, lt.NBest.read(nbest)]:
            assert dict(lt.tune(lists, algorithm, metric="column:reward").weights) == dict(expected), algorithm


def test_settings_mean_the_same(binary, quickstart, tmp_path):
    folder = ROOT / "examples" / "quickstart"
    words = ["--ref", folder / "ref.txt", "--strategy", "koehn", "--restarts", 3, "--fix", "lm", "--seed", 7]
    expected = by_command(binary, tmp_path, "mert", folder / "nbest.txt", *words, "--init", folder / "init.txt")
    recipe = lt.Mert(strategy="koehn", restarts=3, fix=["lm"])
    fit = lt.tune(quickstart, recipe, seed=7, initial=folder / "init.txt")
    assert dict(fit.weights) == dict(expected)


def test_held_out_scores_are_those_of_the_command(binary, data, tmp_path):
    nbest, ref = data / "moses/nbest/run1.nbest.gz", data / "multi30k/dev.en.gz"
    words = ["--nbest", nbest, "--ref", ref, "--folds", 3, "--json", "-q", "--iterations", 3]
    found = json.loads(run(binary, "tune", "mira", *words, "--run", tmp_path / "run").splitlines()[-1])
    dev = lt.NBest.read(nbest, references=ref)
    fit = lt.tune(dev, "mira", folds=3, iterations=3)
    assert fit.cv.score == found["held_out"]["score"]
    assert fit.cv.p_value == found["held_out"]["p_value"]




def test_oracle_surface_loss_and_rerank(binary, quickstart, tmp_path):
    folder = ROOT / "examples" / "quickstart"
    lists = ["--nbest", folder / "nbest.txt"]
    ref = ["--ref", folder / "ref.txt"]
    fit = lt.tune(quickstart, "mert")
    fit.weights.write(tmp_path / "w.txt")

    found = json.loads(run(binary, "oracle", *lists, *ref, "--json"))
    best = lt.oracle(quickstart).best
    assert best.score == pytest.approx(found["score"], abs=5e-3) and best.index.tolist() == found["chosen"]

    out = run(binary, "rerank", *lists, "--weights", tmp_path / "w.txt", "-q")
    assert out.splitlines() == lt.rerank(quickstart, fit)

    words = ["--weights", tmp_path / "w.txt", "--direction", "lm", "--json"]
    found = json.loads(run(binary, "surface", *lists, *ref, *words))
    surface = lt.surface(quickstart, fit, "lm")
    assert [i["score"] for i in found["intervals"]] == pytest.approx(surface.scores.tolist(), abs=1e-9)

    found = json.loads(run(binary, "loss", "apro", *lists, *ref, "--weights", tmp_path / "w.txt", "--json"))
    value, gradient = lt.loss(quickstart, "apro", fit)
    assert value == found["value"] and dict(gradient) == found["gradient"]
