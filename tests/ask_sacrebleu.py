"""Computes scores or significance with sacreBLEU: tests/score.rs passes one JSON question on standard input."""

import json
import sys

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest


def read(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line.rstrip() for line in file]


def metrics(references):
    for tokenize in ("13a", "intl", "zh", "char", "none"):
        for lowercase in (False, True):
            name = f"bleu:tokenize={tokenize}" + (",lowercase" if lowercase else "")
            yield name, BLEU(tokenize=tokenize, lowercase=lowercase, force=True, references=references)
    for smooth, value in (("floor", None), ("floor", 0.3), ("add-k", None), ("none", None)):
        name = f"bleu:smooth={smooth}" + (f",smooth-value={value}" if value else "")
        yield name, BLEU(smooth_method=smooth, smooth_value=value, force=True, references=references)
    yield "bleu:order=2", BLEU(max_ngram_order=2, force=True, references=references)
    yield "chrf", CHRF(references=references)
    yield "chrf++", CHRF(word_order=2, references=references)
    yield "chrf:lowercase,beta=3,whitespace", CHRF(lowercase=True, beta=3, whitespace=True, references=references)
    yield "ter", TER(references=references)
    yield "ter:case", TER(case_sensitive=True, references=references)
    yield "ter:normalized,no-punct", TER(normalized=True, no_punct=True, references=references)


def score(question):
    hypotheses = read(question["hypothesis"])
    references = [read(path) for path in question["references"]]
    answers = []
    for name, metric in metrics(references):
        corpus = metric.corpus_score(hypotheses, None)
        answers.append({
            "metric": name,
            "score": corpus.score,
            "text": corpus.format(width=2, score_only=True),
            "signature": metric.get_signature().format(),
        })
    sentence = {"bleu": BLEU(effective_order=True, force=True), "chrf": CHRF(), "ter": TER()}
    for name, metric in sentence.items():
        rows = zip(hypotheses, *references)
        answers.append({"metric": name, "sentences": [metric.sentence_score(h, r).score for h, *r in rows]})
    return answers


def compare(question):
    systems = [(path, read(path)) for path in question["systems"]]
    references = [read(path) for path in question["references"]]
    named = {"BLEU": BLEU(force=True, references=references), "CHRF": CHRF(references=references),
             "TER": TER(references=references)}
    test = PairedTest(systems, named, None, test_type=question["test"])
    signatures, results = test()
    number = lambda x: None if x is None else float(x)
    return {
        "signatures": {name: s.format() for name, s in signatures.items()},
        "results": {
            name: [{k: number(v) for k, v in r.__dict__.items()} for r in rows]
            for name, rows in results.items() if name != "System"
        },
    }


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(json.dumps(score(question) if question["ask"] == "score" else compare(question)))
