"""MPI: speed-up of ORO on saved forests with two processes, and communication cost (needs Open MPI); `wire`: only the communication cost; `model`: the table of docs/scaling.md."""

import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

from _measure import LUTHIER, run
from forests import model
from online import data, log

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def build():
    """Builds the binary with MPI and the communication benchmark; returns the path of the latter."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "--features", "mpi"], check=True)
    said = subprocess.run(["cargo", "bench", "--no-run", "--bench", "wire", "--features", "mpi"], check=True, capture_output=True, text=True)
    return re.search(r"\((target/\S+/wire-\w+)\)", said.stderr).group(1)


def mpirun(n, *words):
    return run("mpirun", "--bind-to", "none", "-n", n, *words)


def wire(bench):
    """Prints the time to gather bytes from all processes and to average weights over processes."""
    print("| processes | what | size | ms |\n| --- | --- | --- | --- |")
    for n in (2, 4, 8):
        for line in mpirun(n, bench)[2].splitlines():
            found = json.loads(line)
            print(f"| {n} | {found['what']} | {found['size']:,} | {1000 * found['seconds']:.3f} |", flush=True)


def oro(at):
    """Times an epoch from saved forests with batch size 16 and 4 shards. Runs with one and two processes alternate, so that noise of the machine
    affects both equally."""
    common = model(at)
    words = ["tune", "oro", "--shards", 4, "--batch-size", 16, "--iterations", 2, "--nbest-size", 100, *common, "--threads", 1]
    times = {1: [], 2: []}
    for attempt in range(3):
        for n in (1, 2):
            seconds, memory, _, _ = mpirun(n, LUTHIER, *words, "--run", f"{at}/oro{n}-{attempt}")
            times[n].append(seconds)
            events = log(f"{at}/oro{n}-{attempt}")
            epoch = events[1]
            print(f"{n} processes: {seconds:.1f} s in all, an epoch {epoch['seconds']:.2f} s (summed over shards: decoding "
                  f"{epoch['decode_seconds']:.2f} s, learning {epoch['learn_seconds']:.2f} s)", flush=True)
    for attempt in range(3):
        with open(f"{at}/oro1-{attempt}/best.txt") as a, open(f"{at}/oro2-{attempt}/best.txt") as b:
            assert a.read() == b.read(), "weights differ"
    with open(f"{at}/oro2-0/traffic.jsonl") as traffic:
        print("traffic:", *(line.strip() for line in traffic))
    ratios = [one / two for one, two in zip(times[1], times[2])]
    print(f"the same weights; two processes are {statistics.median(ratios):.2f} times as fast as one "
          f"({', '.join(f'{r:.2f}' for r in ratios)})")


def model_table(at):
    """Prints seconds per epoch and speed-up over one process, from the constants of docs/scaling.md. Decoding time is proportional to the
    number of words, and sentence lengths are drawn from Multi30k."""
    sentence, serial = 10.3e-3 + 20e-6, 1.2e-6  # per sentence: decoding, learning and envelopes (parallel); sweep over envelopes (serial)
    feature, saved, exchange = 0.35e-6, {20: 0.3e-6, 5_000_000: 1.5e-6}, 50e-6
    with open(f"{at}/train.de") as text:
        lengths = [len(line.split()) for line in text]
    mean = statistics.mean(lengths)
    print("| sentences | features | 1 | 8 | 64 | 512 |\n| --- | --- | --- | --- | --- | --- |")
    for n in (2_000, 1_000_000):
        draw = random.Random(1)
        words = [draw.choice(lengths) / mean for _ in range(n)]
        for features in (20, 5_000_000):
            cells = []
            for ranks in (1, 8, 64, 512):
                slowest = max(sum(words[s::ranks]) for s in range(ranks)) * sentence
                seconds = slowest + n * serial + features * (feature + saved[features]) + 10 * exchange * math.log2(ranks)
                one = seconds if ranks == 1 else one
                cells.append(f"{seconds:,.1f} s" + (f": {one / seconds:.1f} ×" if ranks > 1 else ""))
            print(f"| {n:,} | {features:,} | {' | '.join(cells)} |")


os.environ.update(ENVIRONMENT)
with tempfile.TemporaryDirectory() as at:
    wanted = sys.argv[1:]
    if wanted != ["wire"]:
        data(at)
    if wanted == ["model"]:
        model_table(at)
    else:
        bench = build()
        if not wanted:
            oro(at)
        wire(bench)
