"""Solves the inner problems of O-ORO (Watanabe 2012, eq. 12) with the interior-point solver Clarabel. Reads JSON lines of
candidates (id, q and features), takes the weights in the file as w, and prints the weights after one step as JSON."""

import json
import sys

import clarabel
import numpy as np
from scipy import sparse

lists, weights, eta, lam = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
w = dict(line.split() for line in open(weights))
names = sorted(w)
w = np.array([float(w[name]) for name in names])
segments = {}
for line in open(lists):
    row = json.loads(line)
    segments.setdefault(row["id"], []).append((row["q"], np.array([row[name] for name in names])))

pairs = []
for rows in segments.values():
    best = max(q for q, _ in rows)
    good = [h for q, h in rows if q == best]
    pairs += [g - h for q, h in rows if q != best for g in good]
phi = np.array(pairs)
violated = int((1 - phi @ w > 0).sum())
start = (1 - lam * eta) * w


def step(c):
    """Weights u that minimise 1/2 |u - start|^2 + c sum max(0, 1 - phi u), with one slack variable per pair."""
    n, d = phi.shape
    p = sparse.block_diag([sparse.eye(d), sparse.csc_matrix((n, n))], format="csc")
    q = np.concatenate([-start, np.full(n, c)])
    # phi u + slack >= 1 and slack >= 0
    a = sparse.bmat([[-sparse.csc_matrix(phi), -sparse.eye(n)], [None, -sparse.eye(n)]], format="csc")
    b = np.concatenate([-np.ones(n), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    found = clarabel.DefaultSolver(p, q, a, b, [clarabel.NonnegativeConeT(2 * n)], settings).solve()
    u = np.array(found.x[:d])
    return list(u * min(1, lam**-0.5 / np.linalg.norm(u)))


print(json.dumps({"names": names, "pairs": len(pairs), "mean": step(eta / violated), "box": step(eta)}))
