"""Training a model from parallel text: time of each stage, memory, time by size of text; alignment against eflomal."""

import filecmp
import json
import os
import subprocess
import sys
import tempfile
import venv

from _measure import DATA, LUTHIER, run, unpack

# Seconds of fast_align and of the Moses pipeline on one thread, from the notes of the data set; measured on another machine.
FAST_ALIGN, MOSES = 12.5, 59.0


def eflomal(at):
    """Returns seconds and peak memory in MB of eflomal on the same text, both directions; None if it cannot be installed."""
    venv.create(f"{at}/venv", with_pip=True)
    if subprocess.run([f"{at}/venv/bin/pip", "install", "-q", "eflomal==2.0.0"], capture_output=True).returncode:
        return None
    with open(f"{at}/f") as f, open(f"{at}/e") as e, open(f"{at}/both", "w") as both:
        both.writelines(f"{a.strip()} ||| {b.strip()}\n" for a, b in zip(f, e))
    return run(f"{at}/venv/bin/eflomal-align", "-i", f"{at}/both", "-f", f"{at}/fwd", "-r", f"{at}/rev")[:2]


def train(at, name, *more):
    seconds, memory, out, _ = run(LUTHIER, "train", "--source", f"{at}/f", "--target", f"{at}/e", "--model", f"{at}/{name}",
                                  "--json", "-q", *more)
    stages = ", ".join(f"{s['stage']} {s['seconds']:.1f}" for s in json.loads(out)["stages"])
    return seconds, memory, stages


def main():
    with tempfile.TemporaryDirectory() as at:
        unpack("train.de", f"{at}/f")
        unpack("train.en", f"{at}/e")
        text = ["--source", f"{at}/f", "--target", f"{at}/e"]
        print("alignment, both directions and grow-diag-final-and, 29,000 pairs")
        for model in ("ibm1", "ibm2", "hmm"):
            for threads in (1, 2):
                seconds, memory, *_ = min(run(LUTHIER, "align", *text, "--aligner", model, "-o", f"{at}/{model}", "-q", "--threads",
                                              threads) for _ in range(3))
                ratio = f", {FAST_ALIGN / seconds:.1f} x fast_align's {FAST_ALIGN} s" if threads == 1 else ""
                print(f"  {model:5} {threads} thread(s): {seconds:5.2f} s, {memory:.0f} MB{ratio}")
        peer = eflomal(at)
        print("  eflomal (PyPI), no symmetrisation: " + (f"{peer[0]:.1f} s, {peer[1]:.0f} MB" if peer else "could not be installed"))
        print("train, order 5, phrases up to 7")
        for threads in (1, 2):
            seconds, memory, stages = train(at, f"m{threads}", "--threads", threads)
            print(f"  {threads} thread(s): {seconds:.1f} s ({stages}), {memory:.0f} MB, {MOSES / seconds:.1f} x the pipeline of "
                  f"fast_align and Moses ({MOSES:.0f} s)")
        seconds, memory, stages = train(at, "tiny", "--threads", 1, "--memory", "1M")
        same = all(filecmp.cmp(f"{at}/m1/{f}", f"{at}/tiny/{f}", False) for f in ("table.bin", "lm0.bin", "alignment.gz"))
        print(f"  --memory 1M: {seconds:.1f} s ({stages}), {memory:.0f} MB, files are {'the same' if same else 'NOT THE SAME'}")
        for span in (5, 10):
            for limits in ([], ["--loose", "--min-gap", "2"]):
                seconds, memory, _, told = run(LUTHIER, "extract", "hiero", *text, "--alignment",
                                               f"{DATA}/moses/model/alignments.de-en.gdfa.gz", "--output", f"{at}/rules",
                                               "--max-span", span, *limits, "--threads", 1)
                line = next(l for l in told.splitlines() if "rules of" in l)
                print(f"  rules, span {span} {' '.join(limits)}: {seconds:.1f} s, {memory:.0f} MB; {line}")
        print("growth, generated text, 2 threads")
        for times in (1, 4, 16)[: int(sys.argv[1]) if len(sys.argv) > 1 else 3]:
            run(LUTHIER, "generate", "--output", f"{at}/g", "--train", 29_000 * times, "-q")
            os.replace(f"{at}/g/train.de", f"{at}/f")
            os.replace(f"{at}/g/train.en", f"{at}/e")
            seconds, memory, stages = train(at, f"g{times}", "--threads", 2)
            print(f"  {times:2} x 29,000 pairs: {seconds:.1f} s ({stages}), {memory:.0f} MB")


main()
