"""Functions and constants shared by the benchmarks."""

import gzip
import os
import subprocess
import tempfile
import time

LUTHIER, DATA = os.environ["LUTHIER"], os.environ["LUTHIER_DATA"]

# Initial weights of the Moses run in the data set.
INITIAL = """LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
"""


def run(*words):
    """Runs a command; returns wall-clock seconds, peak resident memory in MB, standard output and standard error."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        start = time.perf_counter()
        child = subprocess.Popen([str(w) for w in words], stdout=out, stderr=told)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        out.seek(0)
        told.seek(0)
        said = told.read()
        assert status == 0, said
        return seconds, usage.ru_maxrss / 1024, out.read(), said


def unpack(name, path):
    """Decompresses a file of Multi30k to `path`."""
    with gzip.open(f"{DATA}/multi30k/{name}.gz", "rb") as source, open(path, "wb") as target:
        target.write(source.read())
