"""Hierarchical systems and forests: decoding from text and from saved forests; `system`: Luthier against Moses; `mert`: lists against forests; `online`: the setting of Watanabe (2012)."""

import os
import statistics
import sys
import tempfile

from _measure import DATA, LUTHIER, run
from online import data, log
from results import compare, luthier

POP = ["--pop-limit", 200]
RULES = {"rules of Chiang (2007)": [], "rules as in Moses": ["--loose", "--min-gap", 2]}


def model(at, rules=("--loose", "--min-gap", 2), name="model"):
    luthier("train", "--kind", "hiero", *rules, "--source", f"{at}/train.de", "--target", f"{at}/train.en", "--model", f"{at}/{name}", "-q")
    luthier("decode", "--model", f"{at}/{name}", "--input", f"{at}/dev.de", "--forest-kind", "grammar", "--forest-out", f"{at}/forests", "-q")
    return ["--model", f"{at}/{name}", "--forests", f"{at}/forests", "--source", f"{at}/dev.de", "--ref", f"{at}/dev.en", *POP, "-q"]


def passes(at):
    """Prints time, breakdown of time and memory of a decoding pass from text and from saved forests."""
    model(at)
    print(f"forests: {os.path.getsize(f'{at}/forests') / 2**20:.1f} MB")
    times = {}
    for threads in (1, 2):
        for name, source in (("text", ["--input", f"{at}/dev.de"]), ("forests", ["--forests", f"{at}/forests"])):
            words = [LUTHIER, "decode", "--model", f"{at}/model", *source, *POP, "--stats", "--threads", threads, "-o", f"{at}/{name}.out"]
            seconds, memory, _, said = min(run(*words) for _ in range(3))
            times[name] = seconds
            print(f"{threads} threads from {name}: {seconds:.2f} s, {memory:.0f} MB\n  " + "\n  ".join(said.strip().splitlines()), flush=True)
        with open(f"{at}/text.out", "rb") as a, open(f"{at}/forests.out", "rb") as b:
            assert a.read() == b.read(), "translations differ"
        print(f"the same translations, {times['text'] / times['forests']:.2f} times as fast", flush=True)


def system(at):
    """Compares systems trained and tuned by Luthier with Moses."""
    print("| | dev | test | against Moses | p |\n| --- | --- | --- | --- | --- |")
    for k, (name, rules) in enumerate(RULES.items()):
        common = model(at, rules, f"model{k}")
        luthier("tune", "mert", *common, "--run", f"{at}/run{k}")
        luthier("decode", "--model", f"{at}/model{k}", "--weights", f"{at}/run{k}/best.txt", "--input", f"{at}/test.de", "-o", f"{at}/out", *POP, "-q")
        found = compare(f"{DATA}/hiero/test.mert.out", f"{at}/out", f"{at}/test.en")
        dev = max(e["score"] for e in log(f"{at}/run{k}"))
        print(f"| {name} | {dev:.2f} | {found['score']:.2f} | {found['delta']:+.2f} | {found['p_value']:.3f} |", flush=True)


def mert(at, seeds=(1, 2, 3)):
    """Prints the tuning-set score after each pass, for lists and for forests."""
    common = model(at)
    found = {"lists": [], "forests": []}
    for seed in seeds:
        for kind, words in (("lists", ["--iterations", 6]), ("forests", ["--on", "forest", "--iterations", 5])):
            luthier("tune", "mert", *words, *common, "--seed", seed, "--run", f"{at}/{kind}{seed}")
            found[kind].append(log(f"{at}/{kind}{seed}"))
    print("| passes | lists | s | forests | s |\n| --- | --- | --- | --- | --- |")
    for n in range(7):
        cells = []
        for runs in found.values():
            # A run that has converged keeps its last score.
            cells.append(f"{statistics.median(r[min(n, len(r) - 1)]['score'] for r in runs):.2f}" if n < max(map(len, runs)) else "")
            seconds = [r[n - 1]["seconds"] for r in runs if 0 < n < len(r)]
            cells.append(f"{statistics.median(seconds):.0f}" if seconds else "")
        print(f"| {n} | {' | '.join(cells)} |")


def online(at):
    """O-ORO-L with hinge loss on 1,000-best lists of distinct translations from saved forests: batch size 16, 4 shards, 10 epochs, initial
    weights 0."""
    common = model(at)
    with open(f"{at}/model/weights.txt") as weights, open(f"{at}/zero", "w") as zero:
        zero.writelines(f"{line.split()[0]} 0\n" for line in weights if not line.startswith("#"))
    luthier("tune", "oro", "--optimized", "--mixing", "line-search", "--shards", 4, "--batch-size", 16, "--iterations", 10, "--nbest-size",
            1000, *common, "--init", f"{at}/zero", "--select-source", f"{at}/dev.de", "--select-ref", f"{at}/dev.en", "--test-source", f"{at}/test.de",
            "--test-ref", f"{at}/test.en", "--run", f"{at}/online")
    print("| epoch | dev | test | ρ | s | decoding, s | learning, s |\n| --- | --- | --- | --- | --- | --- | --- |")
    for e in log(f"{at}/online"):
        rho = f"{e['rho']:.2f}" if "rho" in e else ""
        print(f"| {e['iteration']} | {e['select']:.2f} | {e['test']:.2f} | {rho} | {e['seconds']:.1f} | {e['decode_seconds']:.1f} | {e['learn_seconds']:.1f} |")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        data(at)
        {"passes": passes, "system": system, "mert": mert, "online": online}[(sys.argv[1:] or ["passes"])[0]](at)
