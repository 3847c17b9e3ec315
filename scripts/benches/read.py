"""Reading n-best lists: reranking 500,000 candidates, and reading five Moses lists with BLEU statistics."""

import glob
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from _measure import DATA, LUTHIER
from _measure import run as measured

CANDIDATES = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000


def generate(path, n):
    """Writes an n-best list of `n` candidates, 100 per segment, each with 14 dense features in 6 blocks and 30 of 20,000 sparse features;
    returns its size in bytes."""
    rng = random.Random(1)
    words = [f"w{i}" for i in range(5000)]
    sparse = [f"PP_{words[rng.randrange(5000)]}~{words[rng.randrange(5000)]}_{i}" for i in range(20_000)]
    blocks = [("LexicalReordering0", 6), ("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("PhrasePenalty0", 1),
              ("TranslationModel0", 4)]
    with open(path, "w", encoding="utf-8") as file:
        for i in range(n):
            text = " ".join(rng.choices(words, k=12))
            features = " ".join(f"{name}= " + " ".join(f"{-20 * rng.random():.5f}" for _ in range(k)) for name, k in blocks)
            more = " ".join(f"{name}= 1" for name in rng.sample(sparse, 30))
            file.write(f"{i // 100} ||| {text} ||| {features} {more} ||| {-100 * rng.random():.3f}\n")
    return os.path.getsize(path)


def run(*words):
    """Runs luthier; returns wall-clock seconds, peak resident memory in bytes and standard error."""
    seconds, memory, _, said = measured(LUTHIER, *words)
    return seconds, memory * 2**20, said


def main():
    with tempfile.TemporaryDirectory() as at:
        size = generate(f"{at}/list", CANDIDATES)
        with open(f"{at}/w", "w") as file:
            file.write("LM0 0.5\nWordPenalty0 -1\n")
            file.writelines(f"TranslationModel0[{i}] 0.2\n" for i in range(4))
        for threads in (1, 2):
            seconds, memory, _ = min(run("rerank", "--nbest", f"{at}/list", "--weights", f"{at}/w", "-q", "--threads", threads)
                                     for _ in range(3))
            print(f"rerank, {CANDIDATES} candidates, {size / 1e6:.0f} MB, {threads} thread(s): {seconds:.2f} s, "
                  f"{size / 1e6 / seconds:.0f} MB/s (target 60), memory {memory / 1e6:.0f} MB = {memory / size:.2f} x text (target 1.5)")
        runs = sorted(glob.glob(f"{DATA}/moses/nbest/run*.nbest.gz"))
        for threads in (1, 2):
            best = []
            for i in range(3):
                _, _, said = run("tune", "mert", "--nbest", *runs, "--ref", f"{DATA}/multi30k/dev.en.gz", "--restarts", 0,
                                 "--run", f"{at}/R{threads}{i}", "--threads", threads)
                best.append(float(re.search(r"read .* in ([0-9.]+) s", said)[1]))
            print(f"runs 1-5 from gz with BLEU statistics, {threads} thread(s): {min(best):.2f} s (target 1.0; Moses' extractor 5.2)")


main()
