"""Decoding with the model of Moses: model score against speed for several pop limits, compared with Moses."""

import json
import tempfile

from _measure import DATA, LUTHIER, run, unpack

# Words per second and mean model score of Moses with cube pruning, from the notes of the data set; measured on another machine.
MOSES = {1000: ("356-388", -41.2107), 500: ("711-831", -41.2116), 100: ("1781-2393", -41.2195)}


def bleu(at):
    return json.loads(run(LUTHIER, "score", f"{at}/text", "--ref", f"{at}/en", "--tokenize", "none", "--json")[2])[0]["score"]


def main():
    with open(f"{DATA}/moses/test.cube1000.raw") as file:
        theirs = [float(line.split()[0]) for line in file]
    with tempfile.TemporaryDirectory() as at:
        unpack("test.de", f"{at}/de")
        unpack("test.en", f"{at}/en")
        seconds, memory, *_ = run(LUTHIER, "import", f"{DATA}/moses/model/moses.ini", "--model", f"{at}/m", "-q")
        print(f"import: {seconds:.1f} s, {memory:.0f} MB")
        words = sum(len(line.split()) for line in open(f"{at}/de"))
        print(f"1,000 sentences, {words} words, one thread; against Moses' scores with 1000 pops (mean {sum(theirs) / 1000:.4f})")
        print("  limit              words/s     mean score  higher equal lower   BLEU   MB  Moses: words/s, mean")
        rows = [(["--pop-limit", p], p) for p in (20, 50, 100, 200, 500, 1000, 2000)]
        rows.append((["--pop-limit", "2000", "--stack-size", "1000"], None))
        rows.append((["--search", "stack"], None))
        for flags, pop in rows:
            common = [LUTHIER, "decode", "--model", f"{at}/m", "--input", f"{at}/de", "--threads", 1, *flags]
            seconds, memory, *_ = min(run(*common, "-o", f"{at}/text") for _ in range(1 if pop is None else 2))
            run(*common, "--json", "-o", f"{at}/json")
            ours = [json.loads(line)["score"] for line in open(f"{at}/json")]
            near = [abs(a - b) <= 1e-4 * max(1, abs(b)) for a, b in zip(ours, theirs)]
            higher = sum(a > b and not n for a, b, n in zip(ours, theirs, near))
            peer = MOSES.get(pop)
            print(f"  {' '.join(map(str, flags)):32}"[:34] + f"{words / seconds:8.0f} {sum(ours) / 1000:12.4f} {higher:8} {sum(near):5} "
                  f"{1000 - higher - sum(near):5} {bleu(at):7.2f} {memory:5.0f}" + (f"  {peer[0]}, {peer[1]}" if peer else ""))
        for threads in (1, 2):
            seconds, memory, *_ = run(LUTHIER, "decode", "--model", f"{at}/m", "--input", f"{at}/de", "--threads", threads, "--nbest", 100,
                                     "--nbest-out", f"{at}/list", "-o", f"{at}/text")
            print(f"100-best lists, {threads} thread(s): {words / seconds:.0f} words/s, {memory:.0f} MB")


main()
