"""MERT: line searches against a simple implementation, against another build (LUTHIER_BEFORE), strategies and smoothings."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from _measure import DATA, INITIAL, LUTHIER


def tune(at, name, init, *more):
    runs = sorted(glob.glob(f"{DATA}/moses/nbest/run*.nbest.gz"))
    command = [LUTHIER, "tune", "mert", "--nbest", *runs, "--ref", f"{DATA}/multi30k/dev.en.gz", "--init", init,
               "--run", f"{at}/{name}", "-q", *map(str, more)]
    start = time.perf_counter()
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"-> ([0-9.]+)", said)[1]), time.perf_counter() - start


def optimise(binary, at, seed, *more):
    """Returns score and seconds of optimisation on the shared pool, from its initial weights, with one thread."""
    runs = sorted(glob.glob(f"{DATA}/moses/nbest/run*.nbest.gz"))
    folder = tempfile.mkdtemp(dir=at)
    command = [binary, "tune", "mert", "--nbest", *runs, "--ref", f"{DATA}/multi30k/dev.en.gz", "--init", f"{at}/init", "--run",
               f"{folder}/run", "--threads", "1", "--seed", seed, *more]
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    reading = float(re.search(r"distinct, in ([0-9.]+) s", said.stderr)[1])
    events = [json.loads(line) for line in open(f"{folder}/run/log.jsonl")]
    seconds = sum(e.get("learn_seconds", 0) for e in events)
    return float(re.search(r"-> ([0-9.]+)", said.stdout)[1]), seconds, reading


def mean(numbers):
    return sum(numbers) / len(numbers)


def time_to(target, binary, at, seed, settings):
    """Returns the seconds of the first run that reaches the target, with growing settings."""
    for setting in settings:
        score, seconds, _ = optimise(binary, at, seed, *setting)
        if score >= target:
            return seconds
    return float("inf")


def against(before, at):
    """Compares with another build, one thread, in turns: as good weights sooner."""
    seeds = range(1, 7)
    old, new = [], []
    for seed in seeds:
        old.append(optimise(before, at, seed, "--restarts", 20))
        new.append(optimise(LUTHIER, at, seed, "--restarts", 20, "--budget", 450))
    for name, rows in [("before, 21 starts", old), ("now, 21 starts and MIRA and risk, --budget 450", new)]:
        scores, seconds, reading = map(list, zip(*rows))
        print(f"{name}: BLEU {mean(scores):.3f} {scores}, {mean(seconds):.2f} s, reading {min(reading):.2f} s")
    print(f"optimisation: {mean([r[1] for r in old]) / mean([r[1] for r in new]):.2f} times as fast")
    restarts = [("--restarts", 20 * 2**i) for i in range(4)]
    budgets = [("--budget", 300 * 2**i) for i in range(4)]
    for name, binary, settings in [("before", before, restarts), ("now", LUTHIER, budgets)]:
        times = [time_to(41.10, binary, at, seed, settings) for seed in (1, 2, 3)]
        print(f"time to 41.10 from the initial weights, {name}: {', '.join(f'{t:.1f} s' for t in times)}", flush=True)


def main():
    before = os.environ.get("LUTHIER_BEFORE")
    if before:
        with tempfile.TemporaryDirectory() as at:
            with open(f"{at}/init", "w") as file:
                file.write(INITIAL)
            against(before, at)
        return
    subprocess.run(["cargo", "bench", "--quiet", "--bench", "mert"], check=True)
    with tempfile.TemporaryDirectory() as at:
        with open(f"{at}/init", "w") as file:
            file.write(INITIAL)
        score, seconds = tune(at, "default", f"{at}/init")
        print(f"defaults, from the initial weights: {score:.2f} (target 41.10), {seconds:.1f} s on all cores")
        koehn = ("--strategy", "koehn")
        score, seconds = tune(at, "koehn", f"{at}/init", *koehn)
        print(f"koehn, 20 restarts from the initial weights: {score:.2f} (target 40.89), {seconds:.1f} s")
        score, seconds = tune(at, "ini", f"{DATA}/moses/model/moses.ini", *koehn)
        print(f"koehn, 20 restarts from moses.ini: {score:.2f} (target 41.13), {seconds:.1f} s")
        many = (*koehn, "--rounds", 2, "--random-directions", 8)
        scores = [tune(at, f"two{s}", f"{at}/init", "--seed", s, *many)[0] for s in (1, 2, 3)]
        print(f"two rounds, 8 random directions, three seeds: {scores}, best {max(scores):.2f} (target 41.0)")
        restarts = sys.argv[1] if len(sys.argv) > 1 else "5"
        print(f"dev BLEU and seconds with {restarts} restarts, all cores")
        smoothings = [()] + [("--smooth", kind, "--window", w) for kind in ("average", "max") for w in (3, 5, 7)]
        print(f"{'':10}" + "".join(f"{' '.join(map(str, s[1::2])) or 'none':>18}" for s in smoothings))
        for strategy in ("koehn", "powell", "random", "simplex"):
            cells = []
            for i, smoothing in enumerate(smoothings if strategy != "simplex" else [()]):
                score, seconds = tune(at, f"{strategy}{i}", f"{at}/init", "--strategy", strategy, "--restarts", restarts, *smoothing)
                cells.append(f"{f'{score:.2f} {seconds:.1f} s':>18}")
            print(f"{strategy:10}" + "".join(cells), flush=True)


main()
