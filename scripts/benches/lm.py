"""Language models: query speed against KenLM in C++, estimation time by size of text, memory."""

import glob
import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
import time

LUTHIER, DATA = os.environ["LUTHIER"], os.environ["LUTHIER_DATA"]
LOOP = r"""
#include "lm/model.hh"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
using Clock = std::chrono::steady_clock;
static double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }
int main(int, char **argv) {
    auto start = Clock::now();
    lm::ngram::ProbingModel model(argv[1]);
    double opened = since(start);
    std::vector<std::vector<lm::WordIndex>> sentences;
    std::ifstream text(argv[2]);
    std::string line, word;
    while (std::getline(text, line)) {
        std::istringstream words(line);
        sentences.emplace_back();
        while (words >> word) sentences.back().push_back(model.GetVocabulary().Index(word));
        sentences.back().push_back(model.GetVocabulary().EndSentence());
    }
    double best = 1e9, total = 0;
    size_t queries = 0;
    for (int pass = 0; pass < std::atoi(argv[3]); ++pass) {
        auto clock = Clock::now();
        total = 0;
        queries = 0;
        for (const auto &sentence : sentences) {
            lm::ngram::State state = model.BeginSentenceState(), out;
            for (lm::WordIndex w : sentence) {
                total += model.Score(state, w, out);
                state = out;
            }
            queries += sentence.size();
        }
        best = std::min(best, since(clock));
    }
    std::printf("%f %.4f %.6f %zu\n", queries / best, total, opened, queries);
}
"""


def kenlm(where):
    """Compiles the query loop with the KenLM sources of the PyPI package; returns the path of the program."""
    program = f"{where}/kenlm-loop"
    if os.path.exists(program):
        return program
    print("compiling KenLM's library and the loop (a minute)", flush=True)
    os.makedirs(where, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary",
                    "kenlm", "kenlm==0.3.0", "-d", where], check=True)
    with tarfile.open(glob.glob(f"{where}/kenlm-*.tar.gz")[0]) as archive:
        archive.extractall(where, filter="data")
    source = glob.glob(f"{where}/kenlm-*/")[0]
    with open(f"{where}/loop.cc", "w") as file:
        file.write(LOOP)
    files = [f for d in ("util", "lm", "util/double-conversion") for f in glob.glob(f"{source}{d}/*.cc")
             if not f.endswith(("main.cc", "test.cc", "lmplz_main.cc")) and "build_binary" not in f]
    subprocess.run(["g++", "-O3", "-DNDEBUG", "-DKENLM_MAX_ORDER=6", "-march=x86-64-v2", "-std=c++11", "-w", f"-I{source}",
                    f"{where}/loop.cc", *files, "-o", program, "-lrt", "-lpthread"], check=True)
    return program


def measured(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {command}")
    return out, time.perf_counter() - start, used.ru_maxrss / 1024


def main():
    loop = kenlm("target/kenlm")
    subprocess.run(["cargo", "bench", "--quiet", "--bench", "lm", "--no-run"], check=True)
    with tempfile.TemporaryDirectory() as at:
        text = gzip.open(f"{DATA}/multi30k/train.en.gz", "rt").read()
        for copies in (1, 10, 30):
            # Each copy marks some of its words, so that the number of distinct n-grams grows with the text.
            with open(f"{at}/text{copies}", "w") as file:
                for c in range(copies):
                    for line in text.splitlines():
                        words = line.split()
                        file.write(" ".join(w if (hash_of(w) + c) % 5 else f"{w}~{c}" for w in words) + "\n" if c else line + "\n")
            _, seconds, memory = measured([LUTHIER, "lm", "build", "--input", f"{at}/text{copies}", "-o", f"{at}/{copies}.arpa", "-q"])
            print(f"build, {copies:2} times train.en: {seconds:5.2f} s, {seconds / copies:.2f} s each, {memory:,.0f} MB", flush=True)
        _, seconds, memory = measured([LUTHIER, "lm", "build", "--input", f"{at}/text1", "-o", f"{at}/small", "--memory", "32M", "-q"])
        same = open(f"{at}/small", "rb").read() == open(f"{at}/1.arpa", "rb").read()
        print(f"build with --memory 32M: {seconds:.2f} s, {memory:.0f} MB, {'the same file' if same else 'ANOTHER FILE'}")
        sharing(at)
        for copies in (1, 30):
            _, seconds, _ = measured([LUTHIER, "lm", "compile", f"{at}/{copies}.arpa", "-o", f"{at}/{copies}.bin", "-q"])
            size = os.path.getsize(f"{at}/{copies}.bin") / 1e6
            print(f"model of {copies} times: compiled in {seconds:.2f} s to {size:.0f} MB; "
                  + measured([LUTHIER, "lm", "info", f"{at}/{copies}.bin"])[0].splitlines()[0])
            for name, file in (("test.en", "multi30k/test.en.gz"), ("train.en", "multi30k/train.en.gz")):
                with open(f"{at}/query", "w") as out:
                    out.write(gzip.open(f"{DATA}/{file}", "rt").read())
                passes = "40" if name == "test.en" else "5"
                best = {}
                for _ in range(3):
                    ours = measured(["cargo", "bench", "--quiet", "--bench", "lm", "--", f"{at}/{copies}.bin", f"{at}/query", passes])[0].split()
                    theirs = measured([loop, f"{at}/{copies}.arpa", f"{at}/query", passes])[0].split()
                    assert abs(float(ours[1]) - float(theirs[1])) < 1e-3 * abs(float(ours[1])) / 100, (ours, theirs)
                    best["us"] = max(best.get("us", 0), float(ours[0]))
                    best["them"] = max(best.get("them", 0), float(theirs[0]))
                print(f"  {name}: {best['us'] / 1e6:.1f} million queries per second, KenLM {best['them'] / 1e6:.1f}, "
                      f"ratio {best['us'] / best['them']:.2f}", flush=True)


def sharing(at):
    """Prints shared and private memory of two processes that query the same binary model."""
    subprocess.run([LUTHIER, "lm", "compile", f"{at}/30.arpa", "-o", f"{at}/shared.bin", "-q"], check=True)
    text = gzip.open(f"{DATA}/multi30k/train.en.gz", "rt").read()
    running = [subprocess.Popen([LUTHIER, "lm", "query", f"{at}/shared.bin"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
               for _ in range(2)]
    for process in running:
        process.stdin.write(text)
        process.stdin.flush()
    time.sleep(1)
    for process in running:
        rollup = dict(line.split(":") for line in open(f"/proc/{process.pid}/smaps_rollup").read().splitlines()[1:])
        size = {key: int(value.split()[0]) / 1024 for key, value in rollup.items()}
        print(f"process {process.pid} with a model of {os.path.getsize(f'{at}/shared.bin') / 2**20:.0f} MB: resident {size['Rss']:.0f} MB, "
              f"of it shared {size['Shared_Clean']:.0f} MB, its own {size['Private_Clean'] + size['Private_Dirty']:.0f} MB")
    for process in running:
        process.stdin.close()
        process.wait()


def hash_of(word):
    value = 7
    for c in word:
        value = (value * 31 + ord(c)) % 1_000_003
    return value


main()
