"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.querySelector("main");

  // Helpers.
  const make = (tag, attributes = {}, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...inside.flat(Infinity).filter((x) => x !== null && x !== undefined));
    return element;
  };
  const draw = (tag, attributes = {}, ...inside) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  };
  const fixed = (x, digits = 2) => (x === null || x === undefined ? "–" : x.toFixed(digits));
  const signed = (x, digits = 2) => (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
  const short = (x) => {
    const text = Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(1) : String(+x.toPrecision(4));
    return text.replace("-", "−");
  };
  const colour = (i) => `var(--c${i % 10})`;
  const dashes = (i) => ["", "6 3", "2 3"][Math.floor(i / 10) % 3];

  const nav = document.querySelector("nav");
  let place = main;
  const section = (id, title, note, ...inside) => {
    if (![...nav.children].some((a) => a.hash === `#${id}`)) nav.append(make("a", { href: `#${id}` }, title));
    place.append(make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title),
      note ? make("p", { class: "note" }, note) : null, ...inside));
  };
  const choice = (label, options, chosen, changed) => {
    const select = make("select", { onchange: () => changed(select.value) },
      options.map(([value, text]) => make("option", { value, selected: String(value) === String(chosen) }, text)));
    return [make("label", {}, label, select), select];
  };
  const table = (head, rows) => make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, head.map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, rows)));
  const row = (...cells) => make("tr", {}, cells.map((c) => (c instanceof Node ? c : make("td", {}, c))));

  // Charts fill the available width and are redrawn when it changes.
  const fitted = (paint, least = 240) => {
    const box = make("div", { class: "chart" });
    let width = 0;
    const redraw = () => {
      const now = Math.max(least, Math.round(box.clientWidth));
      if (now !== width) {
        width = now;
        box.replaceChildren(paint(width));
      }
    };
    new ResizeObserver(redraw).observe(box);
    box.repaint = () => {
      width = 0;
      redraw();
    };
    return box;
  };
  const ticks = (low, high, wanted) => {
    const raw = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? power * 10;
    const all = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && all.length < 30; i++) all.push(i * step);
    return all;
  };
  const widen = ([low, high], share = 0.06) => {
    const room = high > low ? share * (high - low) : 0.5;
    return [low - room, high + room];
  };
  const ends = (values) => values.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  // A frame with axes; with `whole`, the horizontal axis has ticks at integers only.
  const frame = (width, height, x, y, label, whole = false) => {
    const left = 50, right = 12, top = 10, bottom = label ? 38 : 24;
    const px = (v) => left + ((v - x[0]) / (x[1] - x[0] || 1)) * (width - left - right);
    const py = (v) => height - bottom - ((v - y[0]) / (y[1] - y[0] || 1)) * (height - top - bottom);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    for (const v of ticks(y[0], y[1], height / 55)) {
      svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }),
        draw("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, short(v)));
    }
    for (const v of ticks(x[0], x[1], width / 90)) {
      if (whole && v !== Math.round(v)) continue;
      svg.append(draw("line", { class: "axis", x1: px(v), x2: px(v), y1: height - bottom, y2: height - bottom + 4 }),
        draw("text", { x: px(v), y: height - bottom + 17, "text-anchor": "middle" }, short(v)));
    }
    svg.append(draw("path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` }));
    if (label) svg.append(draw("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, label));
    return { svg, px, py, left, right: width - right, top, bottom: height - bottom };
  };
  // Line chart with a legend whose entries show and hide the lines.
  const curves = (get, label, title) => {
    const hidden = new Set();
    const box = fitted((width) => {
      const series = get();
      const seen = series.filter((s) => !hidden.has(s.name) && s.points.length);
      const points = seen.flatMap((s) => s.points);
      if (!points.length) return make("p", { class: "note" }, "No data.");
      const x = ends(points.map((p) => p[0]));
      const f = frame(width, Math.min(340, Math.max(230, width * 0.6)), x[0] < x[1] ? x : widen(x), widen(ends(points.map((p) => p[1]))), label, true);
      f.svg.setAttribute("aria-label", title);
      series.forEach((s, i) => {
        if (hidden.has(s.name) || !s.points.length) return;
        const at = s.points.map((p) => `${f.px(p[0]).toFixed(1)} ${f.py(p[1]).toFixed(1)}`);
        f.svg.append(draw("path", { class: "curve", d: `M${at.join("L")}`, fill: "none", stroke: colour(i), "stroke-width": 1.8, "stroke-dasharray": dashes(i) }));
        for (const p of s.points) {
          f.svg.append(draw("circle", { class: "mark", cx: f.px(p[0]), cy: f.py(p[1]), r: p[2] ? 4.5 : 2.6, fill: colour(i) },
            draw("title", {}, `${s.name}, ${label} ${p[0]}: ${short(p[1])}${p[2] ? " (selected)" : ""}`)));
        }
      });
      return f.svg;
    });
    const legend = make("ul", { class: "legend" });
    const fill = () => legend.replaceChildren(...get().map((s, i) => {
      const button = make("button", { type: "button", class: dashes(i) ? "dashed" : null, style: `--own: ${colour(i)}`, "aria-pressed": String(!hidden.has(s.name)),
        onclick: () => {
          if (!hidden.delete(s.name)) hidden.add(s.name);
          button.setAttribute("aria-pressed", String(!hidden.has(s.name)));
          box.repaint();
        } }, s.name);
      return make("li", {}, button);
    }));
    fill();
    const whole = make("div", {}, box, legend);
    whole.repaint = () => {
      hidden.clear();
      fill();
      box.repaint();
    };
    return whole;
  };

  // Claims of an experiment.
  if (data.claims.length) {
    const wide = (...text) => make("td", { class: "wide" }, ...text);
    const rows = data.claims.map((c) => {
      const paper = wide([c.source, c.paper].filter(Boolean).join(": "), c.note ? make("small", {}, c.note) : null);
      const kind = c.verdict.startsWith("held") ? "better" : c.verdict.startsWith("not held") ? "worse" : null;
      return row(c.id, wide(c.claim), paper, ...(c.columns ?? ["–", "", "", ""]), make("td", { class: kind }, c.verdict));
    });
    section("claims", "Claims", "Claims of papers, and the two means of the experiment that decide, with their difference (× is a ratio of standard deviations), its 95 % confidence interval and its p-value. Held: the interval agrees with the claim; not held: it contradicts the claim; no difference: it allows both.",
      table(["", "claim", "paper", "ours", "difference", "95 % interval", "p", "verdict"], rows));
  }

  // Table of runs.
  const best = (run) => run.events.find((e) => e.iteration === run.best) ?? run.events[run.events.length - 1];
  const tuning = (e) => fixed(e.score) + (e.running ? " (guesses)" : "");
  const some = (key) => data.runs.some((r) => r.events.some((e) => e[key] !== null));
  {
    const held = ["select", "test"].filter(some);
    const heads = { select: "selection score", test: "test score" };
    const rows = data.runs.map((run) => {
      const e = best(run);
      return row(run.name, run.algorithm ?? "", String(run.events.length - 1), `${e.iteration}`, tuning(run.events[0]), tuning(e),
        ...held.map((k) => fixed(e[k])), fixed(e.length, 3), run.events.reduce((s, x) => s + x.seconds, 0).toFixed(1), run.stop ?? "not finished");
    });
    section("runs", "Runs", `${data.metric}${data.error ? " (lower is better)" : ""}. “Selected” is the iteration whose weights are the result of the run. Tuning scores are training scores; “guesses” are outputs of online learning, each under the weights of its batch.`,
      table(["run", "algorithm", "iterations", "selected", "initial tuning score", "tuning score", ...held.map((k) => heads[k]), "length ratio", "seconds", "stop reason"], rows));
  }

  // Held-out scores.
  const held = data.runs.filter((r) => r.heldOut);
  if (held.length) {
    const rows = held.flatMap((run) => {
      const h = run.heldOut;
      const plan = h.parts.length > 1 ? `${h.parts.length} folds` : `${h.segments} of ${h.part_of.length} segments`;
      const whole = row(run.name, plan, String(h.segments), "", fixed(h.initial), make("td", {}, make("strong", {}, fixed(h.score)), ` ± ${fixed(h.interval)}`), h.p_value.toFixed(4));
      const part = (p, i) => row("", h.parts.length > 1 ? `fold ${i + 1}` : "", String(p.segments), fixed(p.tuning), fixed(p.initial), fixed(p.score), "");
      return [whole, ...h.parts.map(part)];
    });
    section("held-out", "Held-out scores", `${data.metric} on segments that the weights were not learned from, with the initial and with the learned weights. The first row of a run is the corpus score of all held-out segments, with its 95 % confidence interval and the p-value of the difference from the initial weights. With folds, each fold is scored with weights learned from the other folds; the weights of the run itself are learned from all segments.`,
      table(["run", "held out", "segments", "tuning score", "initial held-out score", "held-out score", "p"], rows));
  }

  // Variation of weights between resamples.
  const resampled = data.runs.filter((r) => r.stability);
  if (resampled.length) {
    const tables = resampled.map((run) => {
      const s = run.stability;
      const what = s.confidence ? "95 % confidence interval" : "stability (95 % of the resamples)";
      const rows = s.features.map((f) => row(f.name, short(f.weight), short(f.relative), `${short(f.low)} to ${short(f.high)}`, `${Math.round(100 * f.same_sign)} %`,
        f.low <= 0 && f.high >= 0 ? "perhaps irrelevant: contains 0" : ""));
      const left = s.without_anchor ? ` ${s.without_anchor} resamples without a weight for ${s.anchor} are left out.` : "";
      return [make("h3", {}, run.name), table(["feature", "weight", "relative weight", what, "same sign", ""], rows),
        make("p", { class: "note" }, `${s.samples.toLocaleString("en")} resamples of the segments. Weights are relative to the absolute weight of ${s.anchor}.${left} Tuning ${data.metric} on 95 % of the resamples: ${fixed(s.score[0])} to ${fixed(s.score[1])}.`)];
    });
    section("stability", "Weights of resamples", "How much the weights vary if other segments of the same kind had been drawn, by the bootstrap. For MERT, whose objective is a step function, the range shows how stable the answer is; it is not a confidence interval.", ...tables);
  }

  // Learning curves and length ratios.
  {
    const names = { score: "tuning set", select: "selection set", test: "test set" };
    let key = "score";
    const series = (k) => () => data.runs.map((r) => ({ name: r.name, points: r.events.filter((e) => e[k] !== null).map((e) => [e.iteration, e[k], e.iteration === r.best]) }));
    const chart = curves(() => series(key)(), "iteration", "Learning curves");
    const [pick] = choice("score on the", Object.entries(names).filter(([k]) => some(k)), key, (v) => {
      key = v;
      chart.repaint();
    });
    section("learning", "Learning curves", "Score of the output under the weights of each iteration; large dots mark the selected iteration. For online learners, tuning-set scores are for output produced during training, while the weights change from batch to batch.",
      make("div", { class: "controls" }, pick),
      make("div", { class: "pair" }, make("div", {}, make("h3", {}, data.metric), chart),
        some("length") ? make("div", {}, make("h3", {}, "Length ratio (output length over reference length)"), curves(series("length"), "iteration", "Length ratio")) : null));
  }

  // Weights.
  {
    let at = 0;
    const chart = curves(() => {
      const { names, steps } = data.runs[at].weights;
      return names.map((name, f) => ({ name, points: steps.map((w, i) => [data.runs[at].events[i].iteration, w[f], false]) }));
    }, "iteration", "Weights by iteration");
    const few = make("span", { class: "note" });
    const tell = () => {
      const { names, all } = data.runs[at].weights;
      few.textContent = all > names.length ? `${names.length} of ${all} weights: those with the largest absolute value in any iteration` : "";
    };
    tell();
    const [pick] = choice("run", data.runs.map((r, i) => [i, r.name]), 0, (v) => {
      at = +v;
      tell();
      chart.repaint();
    });
    section("weights", "Weights by iteration", "L1-normalised in each iteration.", make("div", { class: "controls" }, pick, few), chart);
  }

  // Sections about the candidates that the weights of each run select from the same n-best lists.
  let keyboard = () => false;
  const show = (evidence) => {
    const { systems, matrix, surfaces, features, weights, sentences } = evidence;
    const many = (n) => n.toLocaleString("en");
    const lists = `${many(evidence.segments)} segments with ${many(evidence.candidates)} candidates (lists: ${evidence.origin}).`;

    // Oracle headroom.
    {
      const chart = fitted((width) => {
        const height = 34 + 30 * systems.length + 24;
        const x = widen(ends([...systems.map((s) => s.score), evidence.oracle, evidence.anti]), 0.03);
        const left = Math.min(190, width * 0.34), right = 14;
        const px = (v) => left + ((v - x[0]) / (x[1] - x[0])) * (width - left - right);
        const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Oracle headroom" });
        for (const v of ticks(x[0], x[1], width / 110)) {
          svg.append(draw("line", { class: "grid", x1: px(v), x2: px(v), y1: 24, y2: height - 22 }), draw("text", { x: px(v), y: height - 6, "text-anchor": "middle" }, short(v)));
        }
        const [atBest, atWorst] = data.error ? ["start", "end"] : ["end", "start"];
        svg.append(draw("text", { x: px(evidence.oracle), y: 14, "text-anchor": atBest }, `oracle ${fixed(evidence.oracle)}`),
          draw("text", { x: px(evidence.anti), y: 14, "text-anchor": atWorst }, `anti-oracle ${fixed(evidence.anti)}`));
        systems.forEach((s, i) => {
          const y = 40 + 30 * i;
          const name = s.name.length > left / 7 ? `…${s.name.slice(-Math.floor(left / 7) + 1)}` : s.name;
          svg.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, name),
            draw("line", { class: "grid", x1: px(evidence.anti), x2: px(evidence.oracle), y1: y, y2: y, "stroke-width": 5 }),
            draw("line", { x1: px(systems[0].score), x2: px(s.score), y1: y, y2: y, stroke: colour(i), "stroke-width": 5 }),
            draw("circle", { class: "mark", cx: px(s.score), cy: y, r: 6, fill: colour(i) }, draw("title", {}, `${s.name}: ${fixed(s.score)}`)));
        });
        return svg;
      });
      const whole = evidence.oracle - systems[0].score;
      const rows = systems.map((s, i) => row(s.name, fixed(s.score), i ? signed(s.score - systems[0].score) : "", i && whole ? `${Math.round((100 * (s.score - systems[0].score)) / whole)} %` : "", fixed(Math.abs(evidence.oracle - s.score)), fixed(s.length, 3)));
      section("headroom", "Headroom", `Score of the candidates that the weights of each run select from the same lists, between the anti-oracle (worst selection) and the oracle (best selection). On lists that a run was tuned on, this is a training score. ${lists}`, chart,
        table(["", data.metric, "gain", "share of headroom", "headroom left", "length ratio"], rows));
    }

    // Significance.
    {
      const rows = matrix.rows.map((cells, i) => row(systems[i].name, ...cells.map(([, p], j) => {
        if (i === j || p === null) return make("td", {}, "");
        // Score of the row's system minus score of the column's system.
        const d = systems[i].score - systems[j].score;
        const sure = p < 0.05;
        const up = data.error ? d < 0 : d > 0;
        return make("td", { class: sure ? (up ? "better" : "worse") : null }, signed(d), make("small", {}, `p ${p.toFixed(3)}${sure ? " *" : ""}`));
      })));
      section("significance", "Significance", `Score of the row's system minus score of the column's system on the same lists; coloured if p < 0.05 (${matrix.test}).`, table(["", ...systems.map((s) => s.name)], rows));
    }

    // Error surfaces.
    if (surfaces.length) {
      let at = Math.min(1, systems.length - 1);
      const grid = make("div", { class: "pair" });
      const overview = (s) => fitted((width) => {
        const d = s.drawn, step = (d.to - d.from) / d.low.length;
        const f = frame(width, 170, [d.from, d.to], widen(ends([...d.low, ...d.high, ...d.smooth])));
        f.svg.setAttribute("aria-label", `Score along ${s.feature}`);
        const up = d.high.map((v, i) => `${f.px(d.from + step * i).toFixed(1)} ${f.py(v).toFixed(1)}H${f.px(d.from + step * (i + 1)).toFixed(1)}`);
        const down = d.low.map((v, i) => `${f.px(d.from + step * (i + 1)).toFixed(1)} ${f.py(v).toFixed(1)}H${f.px(d.from + step * i).toFixed(1)}`).reverse();
        f.svg.append(draw("path", { class: "curve", d: `M${up.join("L")}L${down.join("L")}Z`, fill: "var(--c0)", "fill-opacity": 0.3, stroke: "var(--c0)", "stroke-width": 0.8 }),
          draw("path", { class: "curve", d: `M${d.smooth.map((v, i) => `${f.px(d.from + step * (i + 0.5)).toFixed(1)} ${f.py(v).toFixed(1)}`).join("L")}`, fill: "none", stroke: "var(--c1)", "stroke-width": 1.2 }),
          draw("line", { x1: f.px(0), x2: f.px(0), y1: f.top, y2: f.bottom, class: "axis", "stroke-dasharray": "4 3" }));
        if (d.step && d.step > d.from && d.step < d.to) {
          f.svg.append(draw("circle", { class: "mark", cx: f.px(d.step), cy: f.top + 4, r: 3.5, fill: "var(--c2)" }, draw("title", {}, `best step ${short(d.step)}, ${signed(d.gain)}`)));
        }
        return f.svg;
      });
      const near = (s) => fitted((width) => {
        const n = s.drawn.near;
        const inner = n.bounds.length > 1 ? n.bounds : [n.bounds[0] - 1, n.bounds[0] + 1];
        const x = widen([Math.min(0, inner[0]), Math.max(0, inner[inner.length - 1])]);
        const f = frame(width, 150, x, widen(ends([...n.scores, ...n.smooth])));
        f.svg.setAttribute("aria-label", `Plateaus around the weight of ${s.feature}`);
        const steps = (values) => `M${f.px(x[0]).toFixed(1)} ${f.py(values[0]).toFixed(1)}${n.bounds.map((b, i) => `H${f.px(b).toFixed(1)}V${f.py(values[i + 1]).toFixed(1)}`).join("")}H${f.px(x[1]).toFixed(1)}`;
        f.svg.append(draw("path", { class: "curve", d: steps(n.scores), fill: "none", stroke: "var(--c0)", "stroke-width": 1.5 }),
          draw("path", { class: "curve", d: steps(n.smooth), fill: "none", stroke: "var(--c1)", "stroke-width": 1.2 }),
          draw("line", { x1: f.px(0), x2: f.px(0), y1: f.top, y2: f.bottom, class: "axis", "stroke-dasharray": "4 3" }));
        return f.svg;
      });
      const step = (x) => (x > 0 ? "+" : "") + short(x);
      const fill = () => grid.replaceChildren(...surfaces[at].map((s) => {
        const d = s.drawn;
        if (!d.low) return make("div", {}, make("h3", {}, s.feature), make("p", { class: "note" }, "The value is the same for all candidates of each segment, so the weight has no effect."));
        return make("div", {}, make("h3", {}, s.feature),
          make("p", { class: "note" }, `weight ${short(s.weight)}, ${d.plateaus} plateaus; ${d.step ? `best step ${step(d.step)}: ${signed(d.gain)}` : "no better plateau"}${d.smooth_step !== d.step ? `; smoothed: ${d.smooth_step ? `best step ${step(d.smooth_step)}` : "no better plateau"}` : ""}`),
          overview(s), near(s));
      }));
      fill();
      const [pick] = choice("at the weights of", systems.map((s, i) => [i, s.name]), at, (v) => {
        at = +v;
        fill();
      });
      section("surfaces", "Error surface along each feature", `Exact ${data.metric} as a function of a step in one weight, with all other weights fixed. Upper chart: range from the lowest to the highest score in each interval of steps (blue), and the mean score after smoothing over three plateaus (red). Lower chart: the plateaus around the current weight. The dashed line marks the current weight, the green dot the best step.`,
        make("div", { class: "controls" }, pick), grid);
    }

    // Sentences.
    {
      const others = [...systems.map((s, i) => [i, s.name]), [systems.length, "oracle"]];
      let a = systems.length > 1 ? systems.reduce((b, s, i) => ((data.error ? s.score < systems[b].score : s.score > systems[b].score) ? i : b), 0) : 0;
      let b = a === 0 ? systems.length : 0;
      let order = "difference", only = true, text = "", shown = [], current = 0;
      const pickOf = (s, i) => s.candidates[i === systems.length ? s.oracle : s.picks[i]];
      const good = data.error ? -1 : 1;
      const gap = (s) => pickOf(s, a)[1] - pickOf(s, b)[1];
      const words = (s) => (s ?? "").split(/\s+/).filter(Boolean);
      // Positions in each of two word sequences that are not in their longest common subsequence.
      const unlike = (x, y) => {
        const n = x.length, m = y.length;
        const long = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
        for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
        const own = new Set(), their = new Set();
        let i = 0, j = 0;
        while (i < n || j < m) {
          if (i < n && j < m && x[i] === y[j]) { i++; j++; }
          else if (j >= m || (i < n && long[i + 1][j] >= long[i][j + 1])) own.add(i++);
          else their.add(j++);
        }
        return [own, their];
      };
      const marked = (list, some, kind) => list.map((w, i) => [some.has(i) ? make("mark", { class: kind }, w) : w, " "]);
      const list = make("ul", { id: "list", role: "listbox", tabindex: 0, "aria-label": "Sentences" });
      const detail = make("div", { id: "detail", "aria-live": "polite" });
      const count = make("span", { class: "note", id: "count" });
      const tell = () => {
        [...list.children].forEach((li, i) => li.setAttribute("aria-selected", String(i === current)));
        const li = list.children[current];
        if (!li) return detail.replaceChildren(make("p", { class: "note" }, "No sentence matches the filter."));
        if (li.offsetTop < list.scrollTop || li.offsetTop + li.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = li.offsetTop - list.clientHeight / 2;
        const s = shown[current];
        const [A, B] = [pickOf(s, a), pickOf(s, b)];
        const [x, y] = [words(A[0]), words(B[0])];
        const [own, their] = unlike(x, y);
        const line = (name, inside) => [make("dt", {}, name), make("dd", {}, inside)];
        const texts = make("dl", { class: "texts" }, s.source ? line("source", s.source) : null, (s.refs ?? []).map((r) => line("reference", r)),
          line(`${others[a][1]} (${fixed(A[1], 1)})`, marked(x, own, "a")), line(`${others[b][1]} (${fixed(B[1], 1)})`, marked(y, their, "b")));
        // Contribution of each feature to the score difference: weight times difference of feature values.
        const value = (c) => new Map(c[2]);
        const [va, vb] = [value(A), value(B)];
        const rows = [...new Set([...va.keys(), ...vb.keys()])].map((f) => {
          const d = (va.get(f) ?? 0) - (vb.get(f) ?? 0);
          const share = (i) => (i === systems.length ? null : weights[i][f] * d);
          return { f, d, a: share(a), b: share(b) };
        });
        const size = (r) => Math.abs(r.a ?? r.b ?? 0);
        rows.sort((p, q) => size(q) - size(p));
        const most = Math.max(1e-12, ...rows.flatMap((r) => [Math.abs(r.a ?? 0), Math.abs(r.b ?? 0)]));
        const bar = (v) => make("td", { class: "bars" }, v === null ? "" : [make("span", { class: `bar${v < 0 ? " minus" : ""}`, style: `width:${((52 * Math.abs(v)) / most).toFixed(1)}px` }), ` ${signed(v, 3)}`]);
        const sum = (k) => rows.reduce((t, r) => t + (r[k] ?? 0), 0);
        const which = [a, b].map((i) => (i === systems.length ? null : others[i][1]));
        const head = ["feature", others[a][1], others[b][1], ...which.filter(Boolean).map((n) => `contribution, weights of ${n}`)];
        const body = rows.filter((r) => r.d !== 0).slice(0, 40).map((r) => row(features[r.f], short(va.get(r.f) ?? 0), short(vb.get(r.f) ?? 0), ...(which[0] ? [bar(r.a)] : []), ...(which[1] ? [bar(r.b)] : [])));
        const foot = row("total", "", "", ...(which[0] ? [signed(sum("a"), 3)] : []), ...(which[1] ? [signed(sum("b"), 3)] : []));
        const same = A === B ? make("p", { class: "note" }, "Both select this candidate.") : [table(head, [...body, foot]), make("p", { class: "note" }, "Contribution: weight times difference of feature values. A positive contribution favours the first text, a negative one the second.")];
        detail.replaceChildren(make("h3", {}, `Sentence ${s.id + 1}, ${s.size} candidates`), texts, ...[same].flat());
      };
      const fill = () => {
        const needle = text.toLowerCase();
        const holds = (s) => !needle || [s.source, ...(s.refs ?? []), ...s.candidates.map((c) => c[0])].some((t) => t && t.toLowerCase().includes(needle)) || String(s.id + 1) === needle;
        shown = sentences.filter((s) => holds(s) && (!only || pickOf(s, a)[0] !== pickOf(s, b)[0]));
        const by = { difference: (s) => -Math.abs(gap(s)), better: (s) => -good * gap(s), worse: (s) => good * gap(s), text: (s) => s.id, low: (s) => good * pickOf(s, a)[1] }[order];
        shown = shown.map((s) => [by(s), s]).sort((p, q) => p[0] - q[0] || p[1].id - q[1].id).map((p) => p[1]);
        list.replaceChildren(...shown.map((s, i) => {
          const d = gap(s);
          return make("li", { role: "option", onclick: () => { current = i; tell(); } }, make("span", {}, String(s.id + 1)),
            make("span", { class: d === 0 ? null : d * good > 0 ? "up" : "down" }, signed(d, 1)), make("span", {}, pickOf(s, a)[0]));
        }));
        count.textContent = `${shown.length} of ${sentences.length} sentences${sentences.length < evidence.segments ? ` (of ${evidence.segments} segments: those with the largest score differences between runs)` : ""}`;
        current = 0;
        list.scrollTop = 0;
        tell();
      };
      const filter = make("input", { type: "search", id: "filter", placeholder: "words or sentence number", oninput: () => { text = filter.value.trim(); fill(); } });
      const [pickA, selectA] = choice("compare", others, a, (v) => { a = +v; fill(); });
      const [pickB, selectB] = choice("with", others, b, (v) => { b = +v; fill(); });
      const [pickOrder] = choice("sort by", [["difference", "absolute difference"], ["better", "largest gain"], ["worse", "largest loss"], ["low", "worst score"], ["text", "text order"]], order, (v) => { order = v; fill(); });
      const box = make("input", { type: "checkbox", id: "only", checked: true, onchange: () => { only = box.checked; fill(); } });
      section("sentences", "Sentences", `Candidates selected under two sets of weights, and the features that decide between them. Sentence scores are smoothed. ${lists}`,
        make("div", { class: "controls" }, pickA, pickB, pickOrder, make("label", {}, "filter", filter), make("label", {}, box, "only sentences that differ"), count),
        make("div", { class: "browser" }, list, detail));
      fill();
      const go = (by) => { current = Math.max(0, Math.min(shown.length - 1, current + by)); tell(); };
      keyboard = (e) => {
        const at = e.target === list;
        const keys = {
          j: () => go(1), k: () => go(-1), "/": () => filter.focus(), d: () => box.click(),
          x: () => { [a, b] = [b, a]; selectA.value = a; selectB.value = b; fill(); },
          b: () => { do b = (b + 1) % others.length; while (b === a); selectB.value = b; fill(); },
          ...(at ? { ArrowDown: () => go(1), ArrowUp: () => go(-1), PageDown: () => go(20), PageUp: () => go(-20), Home: () => go(-1e9), End: () => go(1e9) } : {}),
        };
        if (keys[e.key]) keys[e.key]();
        return e.key in keys;
      };
    }
  };
  if (data.evidence.length) {
    const box = make("div");
    const fill = (i) => {
      box.replaceChildren();
      place = box;
      show(data.evidence[i]);
      place = main;
    };
    if (data.evidence.length > 1) {
      const names = data.evidence.map((e, i) => [i, e.name || `lists ${i + 1}`]);
      main.append(make("div", { class: "controls", id: "groups" }, choice("System:", names, 0, (v) => fill(+v))[0]));
    }
    main.append(box);
    fill(0);
  } else {
    section("sentences", "Sentences", `Headroom, significance, error surfaces and sentences are not available: ${data.why}`);
  }

  // Settings.
  {
    const keys = [...new Set(data.runs.flatMap((r) => r.settings.map((s) => s[0])))];
    const value = (run, key) => run.settings.find((s) => s[0] === key)?.[1] ?? "";
    const rows = keys.map((key) => {
      const values = data.runs.map((r) => value(r, key));
      return make("tr", { class: new Set(values).size > 1 ? "differs" : null }, make("td", {}, key), values.map((v) => make("td", { class: "wide" }, v)));
    });
    const signature = data.evidence[0]?.signature ?? data.runs[0].signature;
    const note = `luthier ${data.version}. Signature: ${data.metric}|${signature}. Settings that differ between runs are shaded.`;
    section("settings", "Settings and signatures", note, table(["", ...data.runs.map((r) => r.name)], rows));
  }

  // Light and dark theme.
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  const turn = () => { root.dataset.theme = dark() ? "light" : "dark"; name(); };
  button.addEventListener("click", turn);
  name();
  const keys = document.getElementById("keys");
  const help = () => (keys.open ? keys.close() : keys.showModal());
  document.getElementById("help").addEventListener("click", help);
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const field = e.target.closest?.("input, select");
    if (e.key === "Escape" && field) e.target.blur();
    if (field && e.target.type !== "checkbox") return;
    if (e.key === "t") turn();
    else if (e.key === "?") help();
    else if (keyboard(e)) e.preventDefault();
  });
  root.dataset.ready = "true";
})();
