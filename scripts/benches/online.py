"""Online learning: time per batch; `table`: the setting of Watanabe (2012) on Multi30k; `sparse` and `full`: that of Arun and Koehn (2007)."""

import json
import os
import sys
import tempfile

from _measure import LUTHIER, run, unpack
from results import compare, luthier, score

RANKERS = {
    "ORO hinge": ["oro"],
    "ORO softmax": ["oro", "--loss", "softmax"],
    "O-ORO hinge": ["oro", "--optimized"],
    "O-ORO softmax": ["oro", "--optimized", "--loss", "softmax"],
    "MIRA": ["mira", "--constraints", "oracle"],
}
MORE = {
    "O-ORO hinge, violated pairs": ["oro", "--optimized", "--pairs", "violated"],
    "O-ORO hinge, normalized": ["oro", "--optimized", "--dual", "normalized"],
    "O-ORO hinge, box": ["oro", "--optimized", "--dual", "box"],
    "O-ORO hinge, simplex": ["oro", "--optimized", "--dual", "simplex"],
    "O-ORO softmax, printed": ["oro", "--optimized", "--loss", "softmax", "--linearize", "printed"],
    "MIRA, sum": ["mira", "--constraints", "oracle", "--scale", "sum"],
    "MIRA, margin error": ["mira", "--constraints", "oracle", "--margin", "error"],
    "perceptron": ["perceptron"],
}


def log(path):
    with open(f"{path}/log.jsonl") as lines:
        return [line for line in map(json.loads, lines) if "iteration" in line]


def data(at):
    for name in ("train.de", "train.en", "dev.de", "dev.en", "test.de", "test.en"):
        unpack(name, f"{at}/{name}")


def cut(path, start, end, to):
    with open(path, encoding="utf-8") as lines, open(to, "w", encoding="utf-8") as out:
        out.writelines(list(lines)[start:end])


def cost(at):
    """Prints the learning time in milliseconds for a batch of 16 lists with 1,000 candidates each, one thread."""
    luthier("train", "--source", f"{at}/train.de", "--target", f"{at}/train.en", "--model", f"{at}/model", "-q")
    luthier("decode", "--model", f"{at}/model", "--input", f"{at}/dev.de", "--nbest", 1000, "--nbest-out", f"{at}/lists", "-o", f"{at}/out")
    print("| | ms per batch |\n| --- | --- |")
    for name, words in (RANKERS | MORE).items():
        luthier("tune", *words, "--nbest", f"{at}/lists", "--ref", f"{at}/dev.en", "--init", f"{at}/model/weights.txt", "--mixing",
                "average", "--batch-size", 16, "--iterations", 2, "--threads", 1, "--run", f"{at}/{name}", "-q")
        batches = 2 * -(-1014 // 16)
        print(f"| {name} | {1000 * sum(e['learn_seconds'] for e in log(f'{at}/{name}')) / batches:.1f} |", flush=True)


def table(at, seeds):
    """Learns on the first half of dev and selects the epoch on the second half."""
    luthier("train", "--source", f"{at}/train.de", "--target", f"{at}/train.en", "--model", f"{at}/model", "-q")
    for side in ("de", "en"):
        cut(f"{at}/dev.{side}", 0, 507, f"{at}/learn.{side}")
        cut(f"{at}/dev.{side}", 507, 1014, f"{at}/select.{side}")
    common = ["--model", f"{at}/model", "--source", f"{at}/learn.de", "--ref", f"{at}/learn.en", "--select-source",
              f"{at}/select.de", "--select-ref", f"{at}/select.en", "--nbest-size", 200, "--iterations", 8, "-q"]
    online = ["--batch-size", 16, "--mixing", "line-search"]
    settings = {"MERT": ["mert", *common], "PRO": ["pro", *common]}
    settings |= {f"{name}-L" if name == "MIRA" else name.replace("ORO", "ORO-L"): [*words, *common, *online]
                 for name, words in RANKERS.items()}
    print("| seed | | selection | epoch | test | against MERT | p | s per epoch | learning, s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for seed in seeds:
        for name, words in settings.items():
            made = f"{at}/{seed} {name}"
            result = json.loads(luthier("tune", *words, "--seed", seed, "--run", made, "--json"))
            out = f"{made}.out"
            luthier("decode", "--model", f"{at}/model", "--weights", f"{made}/best.txt", "--input", f"{at}/test.de", "-o", out)
            epochs = [e for e in log(made) if "change" in e]
            mean = sum(e["seconds"] for e in epochs) / len(epochs)
            learn = sum(e["learn_seconds"] for e in epochs) / len(epochs)
            line = f"| {seed} | {name} | {result['score']:.2f} | {result['iteration']} | {score(out, f'{at}/test.en'):.2f} | "
            if name == "MERT":
                line += "| "
            else:
                against = compare(f"{at}/{seed} MERT.out", out, f"{at}/test.en")
                line += f"{against['delta']:+.2f} | {against['p_value']:.3f}"
            print(f"{line} | {mean:.1f} | {learn:.2f} |", flush=True)


def sparse(at, sentences, epochs, wanted, shards=1):
    """The setting of Arun and Koehn (2007): five sparse feature templates, word penalty and distortion, no other features."""
    luthier("train", "--source", f"{at}/train.de", "--target", f"{at}/train.en", "--model", f"{at}/model", "--max-length", 3, "-q")
    for side in ("de", "en"):
        cut(f"{at}/train.{side}", 0, sentences, f"{at}/learn.{side}")
    said = run(LUTHIER, "decode", "--model", f"{at}/model", "--input", f"{at}/train.de", "--force", f"{at}/train.en", "-o", os.devnull)[3]
    print(f"references at phrase length 3 and distortion 6: {said.strip()}")
    with open(f"{at}/zero", "w") as zero:
        zero.write("WordPenalty0 0\nDistortion0 0\n")
    print("| | epoch | surrogates (length) | guesses (length) | dev | length | weights |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in wanted:
        algorithm, update, *weighted = name.split()
        words = ["perceptron"] if algorithm == "perceptron" else ["mira", "--constraints", "surrogate"]
        words += ["--update", update] + (["--weighted"] if weighted else [])
        made = f"{at}/{name}"
        seconds, memory, _, _ = run(
            LUTHIER, "tune", *words, "--model", f"{at}/model", "--source", f"{at}/learn.de", "--ref", f"{at}/learn.en",
            "--select-source", f"{at}/dev.de", "--select-ref", f"{at}/dev.en", "--dense", "WordPenalty0,Distortion0", "--sparse",
            "arun-koehn", "--init", f"{at}/zero", "--nbest-size", 100, "--iterations", epochs, "--shards", shards, "--run", made, "-q")
        events = log(made)
        for before, after in zip(events, events[1:]):
            print(f"| {name} | {after['iteration']} | {before['surrogate']:.2f} ({before['surrogate_length_ratio']:.2f}) | "
                  f"{before['guess']:.2f} ({before['length_ratio']:.2f}) | {after['select']:.2f} | {after['select_length_ratio']:.3f} | "
                  f"{before['features']:,} |", flush=True)
        visits = sentences * epochs
        learning = sum(e["seconds"] for e in events[:-1])
        print(f"{name}: {visits / learning:.0f} sentences per second while learning, {seconds:.0f} s in all, {memory:.0f} MB", flush=True)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "cost"
    with tempfile.TemporaryDirectory() as at:
        data(at)
        if what == "table":
            table(at, [int(s) for s in sys.argv[2:]] or [1, 2, 3])
        elif what == "sparse":
            names = [f"{a} {u}{w}" for a in ("perceptron", "MIRA") for u in ("local", "max-bleu") for w in ("", " weighted")]
            sparse(at, 3000, 3, sys.argv[2:] or names)
        elif what == "full":
            sparse(at, 29000, 3, sys.argv[2:] or ["perceptron local"], shards=2)
        else:
            cost(at)


if __name__ == "__main__":
    main()
