"""Raw text: the tokeniser against sacremoses on documentation in English and Spanish."""

import collections
import gzip
import os
import pathlib
import re
import subprocess
import tempfile
import time

from sacremoses import MosesTokenizer

DATA = os.environ["LUTHIER_DATA"]


def ours(path, language, output):
    """Tokenises a file; returns lines per second, the number of lines restored exactly, and the tokens without joiners."""
    words = ["cargo", "bench", "--quiet", "--bench", "text", "--", str(path), language, str(output)]
    speed, back = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    lines = output.read_text(encoding="utf-8").split("\n")[:-1]
    return float(speed), int(back), [line.replace("￭", "").split() for line in lines]


def reasons(a, b):
    """Returns the first difference of two lists of tokens: the shortest stretches of the same characters."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            i, j = i + 1, j + 1
            continue
        x, y, p, q = a[i], b[j], [a[i]], [b[j]]
        while x != y and (i + 1 < len(a) or j + 1 < len(b)):
            if len(x) <= len(y) and i + 1 < len(a):
                i += 1
                p.append(a[i])
                x += a[i]
            elif j + 1 < len(b):
                j += 1
                q.append(b[j])
                y += b[j]
            else:
                break
        return " ".join(p), " ".join(q)
    return "", ""


def kind(ours, theirs):
    """Returns the class of a difference."""
    if "`" in ours or "`" in theirs:
        return "code between back-quotes is one token"
    if re.search(r"://|www\.", ours):
        return "web addresses are one token"
    if re.search(r"^(%|\{|\$|<)", ours):
        return "placeholders and tags are one token"
    if len(ours.split()) < len(theirs.split()) and re.search(r"[\w)]([./_\\-]|::)\w|/", ours):
        return "file names, paths and identifiers are one token"
    if re.search(r"\d", ours):
        return "numbers"
    if "..." in theirs or "…" in ours:
        return "ellipses"
    return "other"


with tempfile.TemporaryDirectory() as where:
    where = pathlib.Path(where)
    for language in ("en", "es"):
        text = gzip.open(f"{DATA}/pydocs/dev.{language}.gz", "rt", encoding="utf-8").read()
        (where / "dev").write_text(text, encoding="utf-8")
        lines = text.split("\n")[:-1]
        speed, back, own = ours(where / "dev", language, where / "out")
        moses = MosesTokenizer(lang=language)
        fastest = float("inf")
        for _ in range(3):
            clock = time.perf_counter()
            other = [moses.tokenize(line, escape=False) for line in lines]
            fastest = min(fastest, time.perf_counter() - clock)
        equal = sum(a == b for a, b in zip(own, other))
        print(f"{language}: {len(lines)} lines of dev; {back} restored exactly; tokens as sacremoses has them: "
              f"{equal} ({100 * equal / len(lines):.1f} %)")
        print(f"  {speed:,.0f} lines per second, sacremoses {len(lines) / fastest:,.0f}: {speed * fastest / len(lines):.0f} times")
        why = collections.defaultdict(list)
        for a, b in zip(own, other):
            if a != b:
                why[kind(*reasons(a, b))].append(reasons(a, b))
        for reason, cases in sorted(why.items(), key=lambda c: -len(c[1])):
            print(f"  {len(cases):4} {reason}: " + "; ".join(f"[{a}] not [{b}]" for a, b in cases[:4]))
