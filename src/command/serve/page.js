"use strict";

const byId = (id) => document.getElementById(id);
const COLOURS = 8;
let weights = {};
let answers = [];
let request = null;
let timer = 0;

/** Returns an element with a class and children; strings become text, never markup. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

const number = (x, digits = 2) => x.toFixed(digits).replace(/^-(?=0\.0*$)/, "").replace("-", "\u2212");

/** Returns the error of an answer, also of one that is not JSON. */
async function problem(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `status ${response.status}`;
  }
}

function say(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

async function describe() {
  const response = await fetch("model");
  if (!response.ok) return;
  const model = await response.json();
  weights = model.weights;
  const kind = model.kind === "hiero" ? "Hierarchical" : "Phrase-based";
  const input = model.raw ? `raw text, ${model.source} to ${model.target}` : "tokenised text, words separated by blanks";
  byId("model").textContent = `${kind} model; ${input}`;
}

async function translate() {
  request?.abort();
  const mine = new AbortController();
  request = mine;
  const text = byId("text").value;
  if (!text.trim()) {
    answers = [];
    show();
    say("");
    return;
  }
  say("Translating…");
  const clock = performance.now();
  try {
    const response = await fetch("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ text, nbest: 5, features: true, alignment: true, options: 10 }),
      signal: mine.signal,
    });
    if (!response.ok) {
      say(await problem(response), true);
      return;
    }
    const found = await response.json();
    if (request !== mine) return;
    answers = found;
    show();
    say(`${answers.length === 1 ? "1 sentence" : `${answers.length} sentences`} in ${number((performance.now() - clock) / 1000)} s`);
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer; is it still running?", true);
  }
}

/** Returns a line of text with a button for each range of its phrases. */
function side(answer, at, text, key, className) {
  const line = make("p", `side ${className}`);
  line.dir = "auto";
  const letters = Array.from(text);
  const ranges = answer.alignment.flatMap((phrase, i) => phrase[key].map(([start, end]) => ({ start, end, i })));
  ranges.sort((a, b) => a.start - b.start);
  let done = 0;
  for (const { start, end, i } of ranges) {
    line.append(letters.slice(done, start).join(""));
    const button = make("button", `phrase c${i % COLOURS}`, letters.slice(start, end).join(""));
    button.type = "button";
    button.dataset.phrase = `${at}-${i}`;
    button.setAttribute("aria-pressed", "false");
    if (answer.alignment[i].unknown) {
      button.classList.add("unknown");
      button.title = "Unknown word";
    }
    button.addEventListener("click", () => open(at, i));
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) {
      button.addEventListener(event, () => same(button).forEach((b) => b.classList.toggle("on", on)));
    }
    line.append(button);
    done = end;
  }
  line.append(letters.slice(done).join(""));
  return line;
}

const same = (button) => document.querySelectorAll(`[data-phrase="${button.dataset.phrase}"]`);

function show() {
  byId("phrase").hidden = true;
  byId("choice").hidden = true;
  const blocks = answers.map((answer, at) => {
    const block = make("div", "sentence", side(answer, at, answer.source, "source", "source"), side(answer, at, answer.text, "target", "target"));
    if (answer.nbest.length) {
      const button = make("button", "", "Features behind the choice");
      button.type = "button";
      button.addEventListener("click", () => explain(at, 1));
      block.append(make("p", "tools", button));
    }
    return block;
  });
  byId("sentences").replaceChildren(...blocks);
}

/** Returns a table in a box that scrolls on narrow screens. */
function table(head, rows) {
  const cell = (tag, content) => (content instanceof Node ? content : make(tag, "", content));
  const heading = make("tr", "", ...head.map((h) => { const th = make("th", "", h); th.scope = "col"; return th; }));
  const body = rows.map(([className, cells]) => make("tr", className, ...cells.map((c) => cell("td", c))));
  const box = make("div", "scroll", make("table", "", make("thead", "", heading), make("tbody", "", ...body)));
  box.tabIndex = 0;
  return box;
}

/** Shows the alternatives of a phrase. */
function open(at, i) {
  const answer = answers[at];
  const phrase = answer.alignment[i];
  for (const button of document.querySelectorAll(".phrase")) {
    button.setAttribute("aria-pressed", String(button.dataset.phrase === `${at}-${i}`));
  }
  const letters = Array.from(answer.source);
  const source = phrase.source.map(([start, end]) => letters.slice(start, end).join("")).join(" … ");
  const names = [...new Set(phrase.options.flatMap((o) => Object.keys(o.features)))];
  const rows = phrase.options.map((o) => [
    o.chosen ? "chosen" : "",
    [o.text || "(nothing)", number(o.score), ...names.map((n) => (n in o.features ? number(o.features[n] * (weights[n] ?? 1)) : ""))],
  ]);
  const note = phrase.unknown
    ? "This word is unknown to the model: it is copied or dropped."
    : "Scores without context, best first: the sum of weighted features. The translation in bold was chosen; context can outweigh a higher score here.";
  const box = byId("phrase");
  box.replaceChildren(make("h2", "", `Translations of “${source}”`), make("p", "note", note), table(["translation", "score", ...names], rows));
  box.hidden = false;
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: "nearest" });
}

/** Shows how the features of the best translation and of another one add up to their scores. */
function explain(at, other) {
  const { nbest } = answers[at];
  const [best, second] = [nbest[0], nbest[other]];
  const box = byId("choice");
  const parts = [make("h2", "", `Features behind “${best.text}”`)];
  if (second) {
    const select = make("select", "");
    select.append(...nbest.slice(1).map((t, k) => new Option(`${t.text} (${number(t.score)})`, k + 1, false, k + 1 === other)));
    select.addEventListener("change", () => explain(at, Number(select.value)));
    select.id = "other";
    const label = make("label", "", "Compared with");
    label.htmlFor = "other";
    parts.push(label, select);
  } else {
    parts.push(make("p", "note", "The search has found no other translation."));
  }
  const names = [...new Set([...Object.keys(best.features), ...Object.keys(second?.features ?? {})])];
  const known = names.filter((n) => n in weights);
  const sum = (t) => known.reduce((s, n) => s + (t.features[n] ?? 0) * weights[n], 0);
  const difference = (x) => make("td", x > 0.005 ? "more" : x < -0.005 ? "less" : "", number(x));
  const row = (name, weight, value, a, b) => ["", [name, weight, value, number(a), ...(second ? [number(b), difference(a - b)] : [])]];
  const rows = known.map((n) => {
    const [a, b] = [best, second].map((t) => (t?.features[n] ?? 0) * weights[n]);
    return row(n, number(weights[n], 3), number(best.features[n] ?? 0), a, b);
  });
  const rest = [best, second].map((t) => (t ? t.score - sum(t) : 0));
  if (rest.some((x) => Math.abs(x) > 0.005)) rows.push(row("sparse features and unknown words", "", "", ...rest));
  rows.push(["chosen", row("score", "", "", best.score, second?.score)[1]]);
  const head = ["feature", "weight", "value", "weight × value", ...(second ? ["other translation", "difference"] : [])];
  parts.push(table(head, rows));
  box.replaceChildren(...parts);
  box.hidden = false;
  box.scrollIntoView({ block: "nearest" });
}

byId("text").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(translate, 200);
});
describe().then(translate).finally(() => {
  document.documentElement.dataset.ready = "true";
});
