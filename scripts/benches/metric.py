"""Speed of score and compare against sacreBLEU, on 100,000 segments."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time

from sacrebleu.metrics import BLEU, CHRF, TER

LUTHIER, DATA = os.environ["LUTHIER"], os.environ["LUTHIER_DATA"]
SEGMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


def disturb(rng, words, vocabulary):
    """Replaces some words of a reference and moves others, as in a translation."""
    words = list(words)
    for _ in range(rng.randrange(1, 6)):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        if rng.random() < 0.5:
            words[i] = rng.choice(vocabulary)
        else:
            words.insert(j, words.pop(i))
    return words


def corpus(rng, n):
    """Returns distinct segments, so that sacreBLEU does not profit from its caches, and the vocabulary."""
    with gzip.open(f"{DATA}/multi30k/train.en.gz", "rt", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    vocabulary = sorted({w for line in lines for w in line})
    references = [disturb(rng, lines[i % len(lines)], vocabulary) for i in range(n)]
    return references, vocabulary


def clock(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def luthier(*words):
    out = subprocess.run([LUTHIER, *map(str, words)], capture_output=True, text=True)
    assert out.returncode in (0, 1), out.stderr
    return out.stdout


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(" ".join(words) + "\n" for words in lines)


def main():
    rng = random.Random(1)
    references, vocabulary = corpus(rng, SEGMENTS)
    with tempfile.TemporaryDirectory() as at:
        hypothesis = [disturb(rng, words, vocabulary) for words in references]
        write(f"{at}/ref", references)
        write(f"{at}/hyp", hypothesis)
        ref_text = [[" ".join(w) for w in references]]
        hyp_text = [" ".join(w) for w in hypothesis]
        print(f"{SEGMENTS} segments; seconds of the whole command on one and two threads, of sacreBLEU's call alone")
        print(f"{'metric':8} {'score':>7} {'1 thread':>9} {'2 threads':>9} {'scaling':>8} {'sacreBLEU':>10} {'ratio':>7}")
        wanted = {"bleu": (BLEU(force=True), 30), "chrf": (CHRF(), 30), "chrf++": (CHRF(word_order=2), 30), "ter": (TER(), 20)}
        for name, (metric, least) in wanted.items():
            score = ("score", f"{at}/hyp", "--ref", f"{at}/ref", "-m", name, "-q", "--threads")
            one, ours = min(clock(lambda: luthier(*score, 1)) for _ in range(3))
            two, _ = min(clock(lambda: luthier(*score, 2)) for _ in range(3))
            theirs, result = clock(lambda: metric.corpus_score(hyp_text, ref_text))
            shown = ours.split(" = ")[1].split()[0]
            assert shown == f"{result.score:.2f}", (shown, result.score)
            print(f"{name:8} {shown:>7} {one:9.2f} {two:9.2f} {one / two:8.2f} {theirs:10.2f} {theirs / one:6.0f}x  (target {least}x)")
        for i in range(5):
            write(f"{at}/s{i}", [disturb(rng, w, vocabulary) for w in references[:3000]])
        write(f"{at}/r", references[:3000])
        systems = [f"{at}/s{i}" for i in range(1, 5)]
        compare = ("compare", "--baseline", f"{at}/s0", *systems, "--ref", f"{at}/r", "-q", "--threads")
        for threads in (1, 2):
            seconds, _ = min(clock(lambda: luthier(*compare, threads)) for _ in range(3))
            print(f"compare, 5 systems x 3,000 segments x 1,000 bootstrap samples, {threads} thread(s): {seconds:.2f} s (target 1)")


main()
