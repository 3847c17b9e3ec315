"""Several processes: two against one for ORO over saved forests, and what telling costs (needs Open MPI)."""

import json
import os
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
    """The binary with MPI, and the benchmark of the wire."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "--features", "mpi"], check=True)
    said = subprocess.run(["cargo", "bench", "--no-run", "--bench", "wire", "--features", "mpi"], check=True, capture_output=True, text=True)
    return re.search(r"\((target/\S+/wire-\w+)\)", said.stderr).group(1)


def mpirun(n, *words):
    return run("mpirun", "--bind-to", "none", "-n", n, *words)


def wire(bench):
    """Seconds of gathering bytes, and of adding up features."""
    print("| processes | what | size | ms |\n| --- | --- | --- | --- |")
    for n in (2, 4, 8):
        for line in mpirun(n, bench)[2].splitlines():
            found = json.loads(line)
            print(f"| {n} | {found['what']} | {found['size']:,} | {1000 * found['seconds']:.3f} |", flush=True)


def oro(at):
    """One epoch from saved forests, batches of 16, 4 shards; processes take turns, so that the noise of the machine hits both."""
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


os.environ.update(ENVIRONMENT)
bench = build()
with tempfile.TemporaryDirectory() as at:
    if sys.argv[1:] != ["wire"]:
        data(at)
        oro(at)
    wire(bench)
