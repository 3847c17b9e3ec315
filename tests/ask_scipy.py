"""Minimises the objectives of PRO, APRO and PRO with hinge loss with SciPy. Reads JSON lines of candidates (id, x, y, z, q)
and prints weights and objective values as JSON."""

import json
import sys

import numpy as np
from scipy.optimize import minimize

segments = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    segments.setdefault(row["id"], []).append(([row["x"], row["y"], row["z"]], row["q"]))
least = float(sys.argv[2])


def differences(least):
    """Feature differences (better minus worse) of all pairs whose quality differs by at least `least`."""
    out = []
    for rows in segments.values():
        for a, p in rows:
            for b, q in rows:
                if p > q and p - q >= least:
                    out.append(np.subtract(a, b))
    return np.array(out)


far = differences(least)


def logistic(w):
    d = far @ w
    return 0.5 * w @ w + 2 * np.logaddexp(0, -d).sum(), w - 2 * far.T @ (1 / (1 + np.exp(d)))


every = differences(0)
scale = 0.5 / sum(map(len, segments.values()))


def apro(w):
    gap = np.maximum(0, 1 - every @ w)
    return 0.5 * w @ w + scale * (gap**2).sum(), w - 2 * scale * every.T @ gap


def mean(w):
    """APRO with the mean over the pairs of each segment, then over segments, in place of the sum."""
    value, gradient = 0.5 * w @ w, np.array(w)
    for rows in segments.values():
        pairs = np.array([np.subtract(a, b) for a, p in rows for b, q in rows if p > q])
        gap = np.maximum(0, 1 - pairs @ w)
        value += 0.5 / len(segments) * (gap**2).mean()
        gradient -= 0.5 / len(segments) * 2 * pairs.T @ gap / len(pairs)
    return value, gradient


def smooth(f):
    found = minimize(f, np.zeros(3), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10000})
    return {"weights": list(found.x), "value": found.fun}


# Hinge loss by its dual, a quadratic function with box constraints.
strength = 0.1
c = 1 / (strength * len(far))
gram = far @ far.T
found = minimize(
    lambda a: (0.5 * a @ gram @ a - a.sum(), gram @ a - 1),
    np.zeros(len(far)),
    jac=True,
    bounds=[(0, c)] * len(far),
    method="L-BFGS-B",
    options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 100000, "maxfun": 1000000},
)
w = far.T @ found.x
hinge = {"weights": list(w), "value": strength * 0.5 * w @ w + np.maximum(0, 1 - far @ w).mean()}
print(json.dumps({"pro": smooth(logistic), "apro": smooth(apro), "mean": smooth(mean), "hinge": hinge}))
