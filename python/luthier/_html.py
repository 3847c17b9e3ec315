"""Lists and results in notebooks, and the page of a result."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from . import _luthier

if TYPE_CHECKING:
    from ._nbest import NBest
    from ._tune import Fit, Surface

_ROWS = 5
#: Number of candidates up to which the headroom is computed for display.
_SMALL = 200_000
#: Number of features that are tried alone for display.
_FEATURES = 50
#: Number of weights that are displayed.
_WEIGHTS = 100


def _e(value: object) -> str:
    return html.escape(str(value))


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = lambda tag, row: "".join(f"<{tag}>{c}</{tag}>" for c in row)
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def lists(lists: NBest) -> str:
    """The first candidates, and what is known about all of them."""
    names = [*lists.features, *lists.scores][:12]
    columns = {name: lists.column(name) for name in names}
    rows: list[list[str]] = []
    row = 0
    for segment, (name, n) in enumerate(zip(lists.ids, lists.sizes)):
        texts = lists._lists.segment_texts(segment)
        for i in range(n):
            if len(rows) == _ROWS:
                break
            values = [f"{columns[c][row]:.4g}" for c in names]
            rows.append([_e(name), _e(texts[i] if i < len(texts) else ""), *values])
            row += 1
        if len(rows) == _ROWS:
            break
    parts = [f"<p>{_e(repr(lists)[1:-1])}</p>", _table(["segment", "text", *map(_e, names)], rows)]
    parts += [f"<p>{_e(line)}</p>" for line in lists.usage]
    headroom = _headroom(lists)
    return "<div>" + "".join(parts) + (f"<p>{headroom}</p>" if headroom else "") + "</div>"


def _headroom(lists: NBest) -> str:
    """What choosing can gain: the best choice, against the best that a single feature or score gives."""
    if lists.size > _SMALL or not (lists._lists.reference_count() or lists.scores):
        return ""
    metric = "bleu" if lists._lists.reference_count() else f"column:{lists.scores[0]}"
    try:
        (best, _), (worst, _), first, _ = lists._lists.oracle(metric, 1, None)
        alone = _alone(lists, metric, best >= worst)
    except _luthier.Error:
        return ""
    digits = 2 if metric == "bleu" else 4
    text = f"{metric}: first {first:.{digits}f}, "
    if alone is not None:
        text += f"{alone[0]} alone {alone[1]:.{digits}f}, "
    text += f"best choice {best:.{digits}f}, worst choice {worst:.{digits}f}"
    if alone is not None:
        text += f"; headroom {abs(best - alone[1]):.{digits}f}"
    return _e(text)


def _alone(lists: NBest, metric: str, higher: bool) -> tuple[str, float] | None:
    """The feature that chooses best by itself, with the sign that suits it, and its score."""
    found = [
        (f"{sign}{name}", lists._lists.corpus_score([(name, weight)], metric)[0])
        for name in lists.features[:_FEATURES]
        for sign, weight in (("", 1.0), ("−", -1.0))
    ]
    if not found:
        return None
    return max(found, key=lambda f: f[1]) if higher else min(found, key=lambda f: f[1])


def weights(weights: Mapping[str, float]) -> str:
    """Weights with bars, those of the largest size first."""
    largest = max((abs(w) for w in weights.values()), default=1.0) or 1.0
    ordered = sorted(weights.items(), key=lambda w: -abs(w[1]))
    rows = [[_e(n), f"{w:.6g}", _bar(w / largest)] for n, w in ordered[:_WEIGHTS]]
    rest = f"<p>and {len(ordered) - _WEIGHTS:,} more</p>" if len(ordered) > _WEIGHTS else ""
    return _table(["feature", "weight", ""], rows) + rest


def fit(fit: Fit) -> str:
    """Scores, weights and a curve."""
    return f"<div>{_scores(fit)}{_fit_weights(fit)}{_curve(fit)}</div>"


def _scores(fit: Fit) -> str:
    what = "tuning lists (learned from)" if fit.score_of == "tuning" else "selection lists (choose the iteration)"
    rows = [[_e(what), f"{fit.initial:.2f}", f"{fit.score:.2f}", ""]]
    if fit.stability is not None and fit.score_of == "tuning":
        low, high = fit.stability.score
        rows[0][2] += f" (95 % of the resamples: {low:.2f} … {high:.2f})"
    if fit.held_out is not None:
        h = fit.held_out
        rows.append([f"held out ({h.segments:,} segments)", f"{h.initial:.2f}", f"{h.score:.2f} ± {h.interval:.2f}", f"{h.p_value:.3f}"])
    if fit.test is not None:
        rows.append(["test lists", f"{fit.initial_test:.2f}", f"{fit.test:.2f}", ""])
    return f"<p><b>{_e(fit.recipe)}</b>, {_e(fit.metric)}</p>" + _table(["", "initial weights", "tuned weights", "p"], rows)


def _fit_weights(fit: Fit) -> str:
    if fit.stability is None:
        return weights(fit.weights)
    s = fit.stability
    f = s.features
    kind = "95 % confidence interval" if s.confidence else "stability (95 % of the resamples)"
    rows = [
        [_e(n), f"{w:.6g}", f"{r:.3g}", f"{low:.3g} … {high:.3g}", f"{100 * same:.0f} %"]
        for n, w, r, low, high, same in zip(f["name"], f["weight"], f["relative"], f["low"], f["high"], f["same_sign"])
    ]
    unsure = f"<p>Not determined by these data: {_e(', '.join(s.undetermined))}.</p>" if s.undetermined else ""
    head = ["feature", "weight", f"relative to {_e(s.anchor)}", kind, "same sign"]
    return _table(head, rows) + unsure


def _bar(share: float) -> str:
    width = round(60 * abs(share), 1)
    colour = "#4878a8" if share >= 0 else "#b85c5c"
    return f'<span style="display:inline-block;height:0.7em;width:{width}px;background:{colour}"></span>'


def _curve(fit: Fit) -> str:
    history = fit.history
    scores = history["score"] if "score" in history else np.zeros(0)
    if len(scores) < 2:
        return ""
    return _polyline(np.arange(len(scores), dtype=float), np.asarray(scores, dtype=float), "iteration", fit.metric)


def _polyline(x: np.ndarray, y: np.ndarray, xlabel: str, ylabel: str) -> str:
    width, height = 420, 160
    span = lambda v: (float(v.max() - v.min()) or 1.0)
    px = 40 + (x - x.min()) / span(x) * (width - 50)
    py = height - 25 - (y - y.min()) / span(y) * (height - 40)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py))
    text = lambda a, b, t, anchor="start": f'<text x="{a}" y="{b}" font-size="11" text-anchor="{anchor}">{_e(t)}</text>'
    labels = text(2, height - 25, f"{y.min():.2f}") + text(2, 14, f"{y.max():.2f}")
    labels += text(width - 10, height - 8, xlabel, "end") + text(40, height - 8, ylabel)
    line = f'<polyline points="{points}" fill="none" stroke="#4878a8" stroke-width="1.5"/>'
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{_e(ylabel)} by {_e(xlabel)}">{line}{labels}</svg>'


def surface(surface: Surface) -> str:
    """A drawing of the score along the line."""
    from ._tune import _drawn

    scores, edges = _drawn(surface.bounds, surface.scores)
    x, y = np.repeat(edges, 2)[1:-1], np.repeat(scores, 2)
    return f"<div>{_polyline(x, y, 'step', 'score')}<p>{_e(repr(surface)[1:-1])}</p></div>"


def page(fit: Fit) -> str:
    """A page of its own."""
    settings = "".join(f"<tr><th>{_e(k)}</th><td>{_e(v)}</td></tr>" for k, v in fit.settings.items())
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
        "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .75rem;border-bottom:1px solid #ddd;text-align:left}"
        "@media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b}th,td{border-color:#444}svg text{fill:#ddd}}"
    )
    history = fit.history._repr_html_()
    parts = "" if fit.held_out is None else f"<h2>Held-out parts</h2>{fit.held_out.parts._repr_html_()}"
    return (
        f"<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{_e(fit.metric)} with {_e(fit.recipe.name)}</title>"
        f"<style>{style}</style></head><body><h1>{_e(fit.metric)} with {_e(fit.recipe.name)}</h1>{_scores(fit)}"
        f"<h2>Weights</h2>{_fit_weights(fit)}{parts}<h2>Iterations</h2>{_curve(fit)}{history}"
        f"<h2>Settings</h2><table><tbody>{settings}</tbody></table><p>{_e(fit.signature)}</p></body></html>\n"
    )
