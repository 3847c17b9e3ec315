"""The Python package against sacreBLEU and Optuna in one process; memory of lists from NumPy."""

# Runs in the environment of scripts/check (target/python) with a release wheel, which it builds.

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path("target/bench-python")


def environment():
    """Builds the wheel as it is released and starts again in an environment that has it."""
    python = HERE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", HERE], check=True)
        packages = ["maturin==1.16.0", "numpy==2.4.6", "scikit-learn==1.9.1", "sacrebleu==2.6.0", "optuna==5.0.0"]
        subprocess.run([HERE / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    wheels = HERE / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    subprocess.run([HERE.resolve() / "bin" / "maturin", "build", "--release", "--quiet", "--out", wheels.resolve()], cwd="python", check=True)
    wheel = next(wheels.glob("*.whl"))
    print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB")
    subprocess.run([HERE / "bin" / "pip", "install", "-q", "--force-reinstall", "--no-deps", "--disable-pip-version-check", wheel], check=True)
    os.execv(python, [str(python), __file__, "measure"])


def timed(f):
    start = time.perf_counter()
    out = f()
    return out, time.perf_counter() - start


def metrics(data):
    """Corpus scores of 100,000 segments, one thread."""
    import gzip

    import luthier as lt
    import sacrebleu

    reference = gzip.open(data / "multi30k/test.en.gz", "rt", encoding="utf-8").read().splitlines()
    hypothesis = (data / "moses/test.mert.out").read_text(encoding="utf-8").splitlines()
    # Repeated texts would hit sacreBLEU's and our caches alike, so every copy has a word of its own.
    references = [f"{r} no{i}" for i in range(100) for r in reference]
    hypotheses = [f"{h} no{i}" for i in range(100) for h in hypothesis]
    for ours, theirs in [
        (lt.BLEU(), sacrebleu.BLEU()),
        (lt.CHRF(), sacrebleu.CHRF()),
        (lt.TER(), sacrebleu.TER()),
    ]:
        found, fast = min((timed(lambda: ours.corpus_score(hypotheses, [references], threads=1)) for _ in range(3)), key=lambda x: x[1])
        expected, slow = timed(lambda: theirs.corpus_score(hypotheses, [references]))
        assert str(found) == str(expected), (found, expected)
        assert abs(found.score - expected.score) <= 1e-10 * abs(expected.score)
        print(f"{found.name}: {fast:.2f} s, sacreBLEU {slow:.2f} s, ratio {slow / fast:.1f}", flush=True)


def memory():
    """1,000 × 100 candidates × 14 features from NumPy, tuned with MERT for a column."""
    import luthier as lt
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 100, 14))
    y = x @ rng.normal(size=14) + 3 * rng.normal(size=(1000, 100))
    names = [f"f{i}" for i in range(14)]
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    small = lt.NBest(features=x[:2, :4], names=names, scores={"y": y[:2, :4]})
    lt.tune(small, "mert", metric="column:y")
    before = peak()
    lists, seconds = timed(lambda: lt.NBest(features=x, names=names, scores={"y": y}))
    made = peak()
    fit, more = timed(lambda: lt.tune(lists, "mert", metric="column:y", threads=1))
    after = peak()
    size = x.nbytes
    print(
        f"{x.shape}: NBest {seconds:.2f} s, tune(mert) {more:.2f} s, {fit.initial:.4f} -> {fit.score:.4f}; array {size / 1e6:.1f} MB; "
        f"peak above it: lists {(made - before) / size:.2f} ×, tuning {(after - before) / size:.2f} × its size"
    )


def optuna():
    """MERT against 200 trials of Optuna, as people write them: argmax in NumPy, mean of a column."""
    import luthier as lt
    import numpy as np
    import optuna
    from sklearn.model_selection import GroupKFold, cross_val_score

    from luthier.sklearn import Reranker

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(2)
    segments, n, width = 500, 20, 6
    x = rng.normal(size=(segments, n, width))
    y = x @ [1.0, -0.5, 0.25, 0.1, 0.0, 0.0] + 1.5 * rng.normal(size=(segments, n))

    def objective(trial):
        w = np.array([trial.suggest_float(f"w{i}", -1.0, 1.0) for i in range(width)])
        return y[np.arange(segments), (x @ w).argmax(axis=1)].mean()

    def search():
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1))
        study.optimize(objective, n_trials=200)
        return study.best_value

    lists = lt.NBest(features=x, scores={"y": y})
    fit, fast = timed(lambda: lt.tune(lists, "mert", metric="column:y"))
    best, slow = timed(search)
    print(f"tuning score: luthier {fit.score:.4f} in {fast:.2f} s, Optuna (200 trials) {best:.4f} in {slow:.2f} s, ratio {slow / fast:.1f}")
    assert fit.score >= best
    groups = np.repeat(np.arange(segments), n)
    X = np.column_stack([groups, x.reshape(-1, width)])
    scores, seconds = timed(lambda: cross_val_score(Reranker(group_column=0), X, y.ravel(), groups=groups, cv=GroupKFold(5)))
    print(f"cross_val_score(Reranker(group_column=0)): {scores.mean():.4f} held out, {seconds:.2f} s")


def translations(data):
    """MERT against 200 trials of Optuna on real lists, with sacreBLEU per trial."""
    import gzip

    import luthier as lt
    import numpy as np
    import optuna
    import sacrebleu

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    reference = gzip.open(data / "multi30k/dev.en.gz", "rt", encoding="utf-8").read().splitlines()
    lists, reading = timed(lambda: lt.NBest.read(data / "moses/nbest/run1.nbest.gz", references=data / "multi30k/dev.en.gz"))
    names, ends = lists.features, np.cumsum(lists.sizes)
    matrix = np.column_stack([lists.column(n) for n in names])
    texts = [t for entry in lists.texts for t in entry]
    starts = np.concatenate([[0], ends[:-1]])
    metric = sacrebleu.BLEU(tokenize="none", force=True)

    def objective(trial):
        w = np.array([trial.suggest_float(n, -1.0, 1.0) for n in names])
        scores = matrix @ w
        chosen = [texts[a + int(scores[a:b].argmax())] for a, b in zip(starts, ends)]
        return metric.corpus_score(chosen, [reference]).score

    def search():
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1))
        study.optimize(objective, n_trials=200)
        return study.best_value

    fit, fast = timed(lambda: lt.tune(lists, "mert"))
    best, slow = timed(search)
    print(
        f"run 1 (read in {reading:.2f} s): tuning BLEU luthier {fit.score:.2f} in {fast:.1f} s, "
        f"Optuna (200 trials) {best:.2f} in {slow:.1f} s, ratio {slow / fast:.1f}"
    )
    assert fit.score >= best


if __name__ == "__main__":
    if sys.argv[1:] != ["measure"]:
        environment()
    folder = Path(os.environ["LUTHIER_DATA"])
    memory()
    metrics(folder)
    optuna()
    translations(folder)
