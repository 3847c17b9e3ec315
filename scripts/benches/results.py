"""Multi30k from parallel text to test scores: tuners and alignments, with significance against Moses; the table of docs/results.md."""

import json
import subprocess
import sys
import tempfile
import time

from _measure import DATA, LUTHIER, run, unpack

# Maximum number of iterations by tuner; 30 for PRO and APRO as in Dreyer and Dong (2015).
TUNERS = {"mert": 10, "pro": 30, "apro": 30, "mira": 10, "xbleu": 10}


def luthier(*words):
    return run(LUTHIER, *words)[2]


def score(path, reference):
    return json.loads(luthier("score", path, "--ref", reference, "--tokenize", "none", "--json"))[0]["score"]


def compare(baseline, path, reference):
    done = subprocess.run([LUTHIER, "compare", "--baseline", baseline, path, "--ref", reference, "--tokenize", "none", "--json"],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["systems"][-1]


def main():
    wanted = sys.argv[1:] or list(TUNERS)
    with tempfile.TemporaryDirectory() as at:
        for name in ("train.de", "train.en", "dev.de", "dev.en", "test.de", "test.en"):
            unpack(name, f"{at}/{name}")
        moses = f"{DATA}/moses/test.mert.out"
        text = ["--source", f"{at}/train.de", "--target", f"{at}/train.en"]
        luthier("train", *text, "--model", f"{at}/ours", "-q")
        luthier("train", *text, "--model", f"{at}/fa", "--alignment", f"{DATA}/moses/model/alignments.de-en.gdfa.gz", "-q")
        print("| alignment | tuner | iterations | seconds | dev | test | against Moses | p |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        print(f"| fast_align | Moses, MERT | 5 | | 41.10 | {score(moses, f'{at}/test.en'):.2f} | | |")
        for alignment, label in (("ours", "HMM"), ("fa", "fast_align")):
            for tuner in wanted:
                start = time.perf_counter()
                made = json.loads(luthier("tune", tuner, "--model", f"{at}/{alignment}", "--source", f"{at}/dev.de", "--ref",
                                          f"{at}/dev.en", "--run", f"{at}/{alignment}.{tuner}", "--iterations", TUNERS[tuner], "-q",
                                          "--json"))
                seconds = time.perf_counter() - start
                out = f"{at}/{alignment}.{tuner}.out"
                luthier("decode", "--model", f"{at}/{alignment}", "--weights", f"{at}/{alignment}.{tuner}/best.txt", "--input",
                        f"{at}/test.de", "-o", out)
                against = compare(moses, out, f"{at}/test.en")
                print(f"| {label} | {tuner} | {made['iteration']} of {TUNERS[tuner]} | {seconds:.0f} | {made['score']:.2f} | "
                      f"{against['score']:.2f} | {against['delta']:+.2f} | {against['p_value']:.3f} |", flush=True)
        for tuner in wanted:
            between = compare(f"{at}/fa.{tuner}.out", f"{at}/ours.{tuner}.out", f"{at}/test.en")
            print(f"\n{tuner}: HMM against fast_align {between['delta']:+.2f}, p = {between['p_value']:.3f}")


if __name__ == "__main__":
    main()
