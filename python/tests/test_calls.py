"""Long calls: threads, interrupts, progress, forks, memory."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import luthier as lt
from conftest import columns


def pool(segments=200, candidates=40, features=8, seed=3):
    x, y = columns(segments, candidates, 6, seed)
    x = np.concatenate([x, np.random.default_rng(seed + 1).normal(size=(segments, candidates, features - 6))], axis=2)
    return lt.NBest(features=x, scores={"y": y})


def test_threads_do_not_matter():
    lists = pool()
    fits = [lt.tune(lists, "mert", metric="column:y", threads=n) for n in (1, 2, 3)]
    assert len({tuple(f.weights.items()) for f in fits}) == 1


def test_several_threads_tune_at_once():
    lists, found = pool(), {}

    def tune(name):
        found[name] = dict(lt.tune(lists, name, metric="column:y", threads=2).weights)

    names = ["mert", "pro", "softmax", "mira", "risk"]
    workers = [threading.Thread(target=tune, args=(n,)) for n in names]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert found == {n: dict(lt.tune(lists, n, metric="column:y", threads=1).weights) for n in names}


def test_other_threads_run_meanwhile():
    lists, count, done = pool(400, 100), 0, threading.Event()

    def tune():
        lt.tune(lists, "mert", metric="column:y", threads=1)
        done.set()

    worker = threading.Thread(target=tune)
    worker.start()
    while not done.is_set():
        time.sleep(0.001)
        count += 1
    worker.join()
    assert count > 20


SLOW = """
import numpy as np, signal, sys, threading, time, os
import luthier as lt
rng = np.random.default_rng(1)
lists = lt.NBest(features=rng.normal(size=(1000, 200, 12)), scores={"y": rng.normal(size=(1000, 200))})
few = lt.NBest(features=rng.normal(size=(300, 50, 8)), scores={"y": rng.normal(size=(300, 50))})
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start)
"""


CALLS = [
    'lt.tune(lists, "mert", metric="column:y", restarts=10000, budget=10**9)',
    'lt.tune(few, "mert", metric="column:y", strategy="koehn", restarts=0, bootstrap=1000000)',
    'lt.tune(few, "softmax", metric="column:y", bootstrap=1000000)',
    'lt.compare(["a b c"] * 20000, [["a b d"] * 20000], [["a b c"] * 20000], samples=10**8)',
]


@pytest.mark.parametrize("call", CALLS)
def test_interrupt_ends_a_call(call):
    code = SLOW.replace("CALL", call)
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=120)
    word, seconds = done.stdout.split()
    assert word == "interrupted" and float(seconds) < 3, done.stderr
    assert "Traceback" not in done.stderr


def test_progress_is_called_and_can_stop():
    calls = []
    lists = pool()
    lt.tune(lists, "mert", metric="column:y", progress=lambda *a: calls.append(a))
    assert calls and all(isinstance(c[0], str) and isinstance(c[1], int) for c in calls)

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        lt.tune(lists, "mert", metric="column:y", progress=stop, restarts=100000, budget=10**9)


def test_bars_are_closed_after_errors():
    from luthier._progress import reporting

    with pytest.raises(ZeroDivisionError), reporting(True) as call:
        call("segments", 1, 10, None)
        raise ZeroDivisionError
    bar = getattr(call, "bar", None)
    assert bar is None or bar.disable


def test_progress_bar(capsys):
    lt.tune(pool(50, 10), "mert", metric="column:y", progress=True)
    assert capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_after_a_call_does_not_hang():
    lists = pool(50, 10)
    expected = dict(lt.tune(lists, "mert", metric="column:y").weights)
    child = os.fork()
    if child == 0:
        same = dict(lt.tune(lists, "mert", metric="column:y").weights) == expected
        os._exit(0 if same else 1)
    for _ in range(600):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child hangs")


def test_killed_run_resumes(tmp_path):
    lists = pool(50, 10)
    whole = lt.tune(lists, "oro", metric="column:y", iterations=6)
    lt.tune(lists, "oro", metric="column:y", iterations=3, run=tmp_path / "run")
    again = lt.tune(lists, "oro", metric="column:y", iterations=6, run=tmp_path / "run")
    assert dict(again.weights) == dict(whole.weights)
    with pytest.raises(lt.Error, match="seed"):
        lt.tune(lists, "oro", metric="column:y", iterations=6, run=tmp_path / "run", seed=9)


def test_directories_of_other_runs_are_refused_first(tmp_path):
    lists, calls = pool(50, 10), []
    lt.tune(lists, "mira", metric="column:y", folds=3, run=tmp_path / "run")
    settings = [{"folds": 4}, {"holdout": 0.3}, {"folds": 3, "seed": 2}]
    for other in settings:
        with pytest.raises(lt.Error, match="run"):
            lt.tune(lists, "mira", metric="column:y", run=tmp_path / "run", progress=lambda *a: calls.append(a), **other)
    assert not calls


LEAK = """
import resource, numpy as np, luthier as lt
rng = np.random.default_rng(1)
x, y = rng.normal(size=(5, 4, 3)), rng.normal(size=(5, 4))
bleu = lt.BLEU()
def calls(n):
    for _ in range(n):
        lists = lt.NBest([["a b c"] * 4] * 5, features=x, scores={"y": y}, references=["a b c"] * 5)
        lt.rerank(lists, {"f0": 1.0}, threads=1)
        lists.frame().to_dict()
        bleu.corpus_score(["the house"], [["the home"]], threads=1)
        try:
            lt.NBest(features=x, names=["a"])
        except lt.Error:
            pass
calls(1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
calls(9000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_flat():
    done = subprocess.run([sys.executable, "-c", LEAK], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 8 * 1024, f"{done.stdout} KiB more after 9,000 calls"


def test_development_mode():
    """No warning, and no error that Python hides otherwise."""
    code = "import luthier as lt; d = lt.NBest([['a','b']], features={'x': [[0,1]]}, references=['b']); print(lt.tune(d).rerank(d))"
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['b']\n", "")


def test_recipes_are_values():
    import pickle

    recipe = lt.Mert(restarts=3, fix=["lm"], bound={"a": (0, None)} if "bound" in str(lt.Mert.__init__.__signature__) else None)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert recipe != lt.Mert(restarts=4)
    assert eval(repr(recipe), {"Mert": lt.Mert}) == recipe
    assert "restarts" in lt.Mert.__doc__ and "--" not in lt.Mert.__doc__


def test_weights(tmp_path):
    weights = lt.Weights({"lm": 0.5, "a b": -1.0})
    weights.write(tmp_path / "w.txt", comments=["made by a test"])
    assert lt.Weights.read(tmp_path / "w.txt") == weights
    assert np.asarray(weights).tolist() == [0.5, -1.0]
    with pytest.raises(lt.Error, match="expected a number"):
        lt.Weights({"lm": "much"})


def test_translator(tmp_path):
    source, target = ["a b", "b a", "a", "b", "a a b"] * 20, ["x y", "y x", "x", "y", "x x y"] * 20
    for name, lines in [("train.s", source), ("train.t", target)]:
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = lt.train(tmp_path / "train.s", tmp_path / "train.t", tmp_path / "model", order=3, threads=1)
    assert model.translate(["a b", "b"]) == ["x y", "y"]
    best = model.translate(["a b"], nbest=3)[0]
    assert best[0].text == "x y" and best[0].score >= best[-1].score and "LM0" in best[0].features
    assert lt.Translator.load(tmp_path / "model", weights=model.weights).translate([]) == []
    with pytest.raises(lt.Error, match="sentences is a string"):
        model.translate("a b")
    with pytest.raises(lt.Error, match="expected a model directory"):
        lt.Translator(tmp_path / "nothing")


def test_translator_of_raw_text(tmp_path):
    words = {"Open": "Abre", "Close": "Cierra", "Delete": "Borra", "the file": "el archivo", "the window": "la ventana"}
    pairs = [
        (f"{verb} {noun}, {n} of {{0}}.", f"{words[verb]} {words[noun]}, {n} de {{0}}.")
        for n in range(1, 9)
        for verb in ("Open", "Close", "Delete")
        for noun in ("the file", "the window")
    ]
    for side, name in enumerate(["train.en", "train.es"]):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "train.tsv").write_text("".join(f"{en}\t{es}\n" for en, es in pairs), encoding="utf-8")
    model = lt.train(tmp_path / "train.en", tmp_path / "train.es", tmp_path / "model", raw=True, order=3)
    assert model.training["text"]["cleaning"]["pairs"] == len(pairs)
    text = "Delete the window, 17 of {0}."
    assert model.translate([text]) == ["Borra la ventana, 17 de {0}."]
    assert model.translate([text], nbest=2)[0][0].text == "Borra la ventana, 17 de {0}."
    found = model.explain(text, options=2)
    assert (found.source, found.text) == (text, "Borra la ventana, 17 de {0}.")
    words = {tuple(text[a:b] for a, b in p.source): "".join(found.text[a:b] for a, b in p.target) for p in found.phrases}
    assert words["17",] == "17" and not any(p.unknown for p in found.phrases)
    assert all(sum(o.chosen for o in p.options) == 1 for p in found.phrases)
    with pytest.raises(lt.Error, match="options is 0, expected a whole number of at least 1"):
        model.explain(text, options=0)
    languages = {"source_lang": "en", "target_lang": "es"}
    other = lt.train(corpus=tmp_path / "train.tsv", model=tmp_path / "other", order=3, **languages)
    assert other.translate([text]) == model.translate([text])
    (tmp_path / "train.po").write_text(
        "".join(f'msgid "{en}"\nmsgstr "{es}"\n\n' for en, es in pairs) + 'msgid "Undo"\nmsgstr ""\n', encoding="utf-8"
    )
    of_po = lt.train(corpus=tmp_path / "train.po", model=tmp_path / "po", order=3, **languages)
    assert of_po.training["text"]["not_read"]["untranslated"] == 1
    assert of_po.translate([text]) == model.translate([text])
    new = tmp_path / "new"
    for arguments, message in [
        ({"corpus": tmp_path / "train.tsv", "model": new}, "corpus= needs both languages; give source_lang= and target_lang="),
        ({"model": new}, "expected two files, or one bilingual file; give the files of source and target, or corpus="),
        ({"source": "a", "target": "b"}, "model is missing"),
        ({"source": "a", "target": "b", "model": new, "source_lang": "en"}, "are for raw text; set raw=True"),
        ({"source": "a", "target": "b", "model": new, "max_words": 0}, "max_words is 0, expected a whole number from 1 to 1000"),
        ({"source": "a", "target": "b", "model": new, "raw": True, "source_lang": "english"}, "not a language code"),
    ]:
        with pytest.raises(lt.Error, match=message):
            lt.train(**arguments)
    assert not new.exists()
