"""MERT: line search speed against a simple implementation, by pool size, and all strategies with all smoothings."""

import glob
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


def main():
    subprocess.run(["cargo", "bench", "--quiet", "--bench", "mert"], check=True)
    with tempfile.TemporaryDirectory() as at:
        with open(f"{at}/init", "w") as file:
            file.write(INITIAL)
        score, seconds = tune(at, "koehn", f"{at}/init")
        print(f"koehn, 20 restarts from the initial weights: {score:.2f} (target 40.89), {seconds:.1f} s on all cores")
        score, seconds = tune(at, "ini", f"{DATA}/moses/model/moses.ini")
        print(f"koehn, 20 restarts from moses.ini: {score:.2f} (target 41.13), {seconds:.1f} s")
        scores = [tune(at, f"two{s}", f"{at}/init", "--seed", s, "--rounds", 2, "--random-directions", 8)[0] for s in (1, 2, 3)]
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
