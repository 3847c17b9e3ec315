"""Prints the values that the tests of `math` compare with: arguments and correctly rounded results, computed with 300 bits.

    python3 reference.py >reference.txt        (needs mpmath; values were computed with version 1.3.0)
"""

import random
import struct

from mpmath import expm1, log, log1p, log10, mp, mpf, power
from mpmath import exp as e

mp.prec = 300
draw = random.Random(1)


def show(name, result, *arguments):
    # Python rounds subnormal results twice, but 300 bits make a difference improbable.
    bits = [struct.unpack("<Q", struct.pack("<d", float(x)))[0] for x in (*arguments, result)]
    print(name, *(f"{b:016x}" for b in bits))


def magnitudes(low, high, n):
    return [2.0 ** draw.uniform(low, high) for _ in range(n)]


print("# By reference.py: a function, the bits of its arguments, the bits of the correctly rounded result.")
small = magnitudes(-60, -1, 30)
signed = small + [-x for x in small] + [draw.uniform(-1, 1) for _ in range(30)]
for x in signed + [draw.uniform(-745, 709.7) for _ in range(60)]:
    show("exp", e(mpf(x)), x)
for x in signed + [draw.uniform(-40, 700) for _ in range(30)]:
    show("exp_m1", expm1(mpf(x)), x)
positive = [draw.uniform(0.5, 2) for _ in range(60)] + magnitudes(-1074, 1023, 60) + [1 + x for x in small]
for x in positive:
    show("ln", log(mpf(x)), x)
    show("log10", log10(mpf(x)), x)
for x in signed + magnitudes(0, 1023, 30) + [draw.uniform(0, 1) for _ in range(30)]:
    show("ln_1p", log1p(mpf(x)), x)
for _ in range(120):
    x, y = draw.choice([draw.uniform(0, 2), 10.0, 0.85]), draw.choice([draw.uniform(-20, 20), 4.0, 0.25])
    show("powf", power(mpf(x), mpf(y)), x, y)
