"""Batch learners: scores and times on a real candidate pool, speed of MIRA and APRO on large input, two million sparse features."""

import glob
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from _measure import DATA, INITIAL, LUTHIER


def tune(at, name, algorithm, nbest, ref, *more):
    """Tunes on fixed lists; returns score, length ratio, learning time and total time in seconds, and peak memory in MB."""
    command = [LUTHIER, "tune", *algorithm.split(), "--nbest", *nbest, "--ref", ref, "--run", f"{at}/{name}", *more]
    start = time.perf_counter()
    with open(f"{at}/said", "w") as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    said = open(f"{at}/said").read()
    if status:
        sys.exit(said)
    last = re.search(r"iteration 1 .*?([0-9.]+)  (?:length ([0-9.]+))?", said)
    learning = re.search(r"iteration 0 .* ([0-9.]+) s", said)[1]
    return float(last[1]), last[2], float(learning), seconds, used.ru_maxrss / 1024


def table(at):
    runs = sorted(glob.glob(f"{DATA}/moses/nbest/run[1-5].nbest.gz"))
    with open(f"{at}/init", "w") as file:
        file.write(INITIAL)
    print(f"{'pool of runs 1 to 5, all cores':42}{'BLEU':>8}{'length':>8}{'learning':>10}")
    for n, algorithm in enumerate([
        "mert", "mira", "pro --seed 1", "pro --seed 2", "pro --seed 3", "pro --max-length-sigma 2",
        "pro --pairs good-bad", "pro --pairs all", "pro --pairs oracle --loss hinge", "apro", "apro --c 0.16", "softmax",
        "softmax --oracle sentence --smooth-brevity", "xbleu", "xbleu --clip candidate", "xbleu --clip none",
        "xbleu --gamma 0.1,1,10", "risk",
    ]):
        score, length, learning, _, _ = tune(at, f"t{n}", algorithm, runs, f"{DATA}/multi30k/dev.en.gz", "--init", f"{at}/init")
        print(f"{algorithm:42}{score:8.2f}{length:>8}{learning:8.1f} s", flush=True)


def sparse(at, segments, features, nonzeros):
    """Tunes on generated lists with 200 candidates per segment, whose sparse features depend on the number of wrong words."""
    draw = random.Random(1)
    words = [f"w{i}" for i in range(500)]
    with open(f"{at}/nbest", "w") as nbest, open(f"{at}/ref", "w") as refs:
        for segment in range(segments):
            truth = draw.choices(words, k=15)
            refs.write(" ".join(truth) + "\n")
            for _ in range(200):
                text = list(truth)
                wrong = draw.randrange(10)
                for _ in range(wrong):
                    text[draw.randrange(15)] = draw.choice(words)
                ids = {draw.randrange(features // 10) * 10 + wrong for _ in range(nonzeros)}
                dense = " ".join(f"{draw.gauss(0, 1) - 0.1 * wrong:.4f}" for _ in range(4))
                nbest.write(f"{segment} ||| {' '.join(text)} ||| D= {dense} " + " ".join(f"S_{i}= 1" for i in ids) + " ||| 0\n")
    for algorithm in ("pro", "apro", "mira", "softmax"):
        subprocess.run(["rm", "-rf", f"{at}/{algorithm}"])
        score, _, learning, seconds, memory = tune(at, algorithm, algorithm, [f"{at}/nbest"], f"{at}/ref")
        used = sum(1 for line in open(f"{at}/{algorithm}/weights/001.txt") if not line.endswith(" 0\n"))
        print(f"  {algorithm:8} BLEU {score:6.2f}, {used:,} weights, learning {learning:.1f} s, in all {seconds:.1f} s, "
              f"{memory:,.0f} MB", flush=True)


def main():
    subprocess.run(["cargo", "bench", "--quiet", "--bench", "batch"], check=True)
    if "full" in sys.argv:
        subprocess.run(["cargo", "bench", "--quiet", "--bench", "batch", "--", "full"], check=True)
    with tempfile.TemporaryDirectory() as at:
        table(at)
        for segments, features, nonzeros in ((1000, 2_000_000, 30), (1000, 200_000, 30), (1000, 2_000_000, 15)):
            print(f"{segments * 200:,} candidates, {features:,} features, {nonzeros} of them each:")
            sparse(at, segments, features, nonzeros)


main()
