"""Metrics print what sacreBLEU prints."""

import json
import sys

import numpy as np
import pytest

import luthier as lt
from conftest import ROOT

sacrebleu = pytest.importorskip("sacrebleu")

HYPOTHESES = [
    "The quick brown fox jumps over the lazy dog .",
    "It is 3,000 miles (or so) -- isn't it?",
    "",
    "a b c",
    "Ein Test: „Anführung“, 1.5 % … & more!",
    "これは テスト です 。",
]
REFERENCES = [
    [
        "The fast brown fox jumped over the lazy dog .",
        "It's 3,000 miles or so, isn't it?",
        "an empty hypothesis",
        "a b c d",
        "Ein Test: \"Anführung\", 1,5 % ... & mehr!",
        "これ は 試験 です 。",
    ],
    [
        "A quick brown fox jumps over a lazy dog .",
        "It is three thousand miles (or so), is it not?",
        "nothing here",
        "a b",
        "Test: Anführung, 1.5% and more",
        "これは テスト でした 。",
    ],
]
CASES = [
    ("BLEU", {}),
    ("BLEU", {"lowercase": True}),
    ("BLEU", {"tokenize": "intl"}),
    ("BLEU", {"tokenize": "char"}),
    ("BLEU", {"tokenize": "none", "smooth_method": "floor", "smooth_value": 0.1}),
    ("BLEU", {"smooth_method": "add-k", "smooth_value": 1}),
    ("BLEU", {"smooth_method": "none", "max_ngram_order": 2}),
    ("BLEU", {"effective_order": True}),
    ("CHRF", {}),
    ("CHRF", {"word_order": 2}),
    ("CHRF", {"lowercase": True, "whitespace": True, "beta": 3, "char_order": 4}),
    ("TER", {}),
    ("TER", {"case_sensitive": True, "no_punct": True}),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES])
def test_corpus_and_sentences_equal_sacrebleu(name, settings, references):
    ours, theirs = getattr(lt, name)(**settings), getattr(sacrebleu, name)(**settings)
    expected = theirs.corpus_score(HYPOTHESES, references)
    found = ours.corpus_score(HYPOTHESES, references)
    assert str(found) == str(expected)
    assert found.score == pytest.approx(expected.score, rel=1e-10)
    assert found.name == expected.name
    signature = str(theirs.get_signature())
    assert _without_version(str(ours.get_signature())) == _without_version(signature)
    assert found.format(width=4) == expected.format(width=4)
    assert found.format(score_only=True) == expected.format(score_only=True)
    for attribute in ["counts", "totals", "precisions", "bp", "sys_len", "ref_len", "num_edits", "ref_length", "char_order"]:
        if settings.get("smooth_method") == "add-k" and attribute in ("counts", "totals"):
            continue  # sacreBLEU has added k to them
        if hasattr(expected, attribute):
            assert getattr(found, attribute) == pytest.approx(getattr(expected, attribute)), attribute
    if name == "BLEU" and "effective_order" not in settings:
        return  # sacreBLEU warns
    for i, text in enumerate(HYPOTHESES):
        refs = [r[i] for r in references]
        assert str(ours.sentence_score(text, refs)) == str(theirs.sentence_score(text, refs))


def _without_version(signature):
    """Signature without the version of the program and the order of n-grams, which sacreBLEU does not show."""
    return "|".join(p for p in signature.split("|") if not p.startswith(("version:", "order:")))


def test_json_and_short_signatures():
    ours, theirs = lt.BLEU(), sacrebleu.BLEU()
    found = ours.corpus_score(HYPOTHESES, REFERENCES)
    expected = theirs.corpus_score(HYPOTHESES, REFERENCES)
    got = json.loads(found.format(is_json=True, signature=str(ours.get_signature())))
    wanted = json.loads(expected.format(is_json=True, signature=str(theirs.get_signature())))
    assert got["score"] == wanted["score"] and got["verbose_score"] == wanted["verbose_score"]
    assert _without_version(ours.get_signature().format(short=True)).rsplit("|v:", 1)[0] == theirs.get_signature().format(short=True).rsplit("|v:", 1)[0]


def test_resamples_and_comparison_equal_sacrebleu():
    from sacrebleu.significance import PairedTest

    hypotheses = [t for t in HYPOTHESES for _ in range(5)]
    other = [t.replace("quick", "fast").replace("test", "Test") for t in hypotheses[::-1]][::-1]
    references = [[t for t in stream for _ in range(5)] for stream in REFERENCES]
    ours, theirs = lt.BLEU(), sacrebleu.BLEU()
    expected = theirs.corpus_score(hypotheses, references, n_bootstrap=200)
    assert str(ours.corpus_score(hypotheses, references, n_bootstrap=200)) == str(expected)
    named = [("baseline", hypotheses), ("other", other)]
    for test, key in [("bs", "bootstrap"), ("ar", "randomization")]:
        metric = sacrebleu.BLEU(references=references)
        _, results = PairedTest(named, {"BLEU": metric}, references=None, test_type=test, n_samples=100)()
        found = lt.compare(hypotheses, {"other": other}, references, metric=lt.BLEU(), test=key, samples=100)
        assert found["p_value"][1] == pytest.approx(results["BLEU"][1].p_value)


def test_metrics_by_name():
    assert lt.Metric("wer").corpus_score(["a b c"], [["a b d"]]).score == pytest.approx(100 / 3)
    assert lt.Metric("chrf++").corpus_score(HYPOTHESES, REFERENCES).score == lt.CHRF(word_order=2).corpus_score(HYPOTHESES, REFERENCES).score


def test_pairwise_scores_are_sentence_scores():
    hypotheses, references = HYPOTHESES[:2], REFERENCES[0][:2]
    for metric in [lt.CHRF(), lt.TER()]:
        matrix = metric.pairwise(hypotheses, references)
        expected = [[metric.sentence_score(h, [r]).score for r in references] for h in hypotheses]
        assert matrix.tolist() == expected


def test_sentence_scores_of_a_text():
    found = lt.CHRF().sentence_scores(HYPOTHESES, REFERENCES)
    expected = [lt.CHRF().sentence_score(h, [r[i] for r in REFERENCES]).score for i, h in enumerate(HYPOTHESES)]
    assert isinstance(found, np.ndarray) and found.tolist() == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lt.BLEU().corpus_score("text", [["text"]]), "hypotheses is a string"),
        (lambda: lt.BLEU().corpus_score(["text"], ["text"]), "references is a list of strings"),
        (lambda: lt.BLEU().corpus_score(["a", "b"], [["a"]]), "2 hypotheses, but references[0] has 1; expected"),
        (lambda: lt.BLEU().corpus_score(["a", None], [["a", "b"]]), "hypotheses has None at 1"),
        (lambda: lt.BLEU().corpus_score(["a"]), "no references"),
        (lambda: lt.BLEU(tokenize="nothing"), "nothing"),
        (lambda: lt.BLEU(smooth_method="sometimes"), "sometimes"),
        (lambda: lt.Metric("blue"), "blue"),
        (lambda: lt.TER().sentence_score("a", "a"), "references is a string"),
        (lambda: lt.TER().sentence_score("a", []), "references"),
        (lambda: lt.compare(["a"], ["b"], [["a"]], test="t"), "expected 'bootstrap' or 'randomization'"),
        (lambda: lt.compare(["a"], ["b"], [["a"]], samples=0), "samples is 0"),
        (lambda: lt.compare(["a"], [], [["a"]]), "systems is empty"),
        (lambda: lt.compare(["a"], ["b"], [["a"]], seed="x"), "seed is 'x'"),
        (lambda: lt.BLEU(max_ngram_order="x"), "max_ngram_order is 'x', expected a whole number"),
        (lambda: lt.BLEU(lowercase="yes"), "lowercase is 'yes', expected True or False"),
        (lambda: lt.BLEU(tokenize=3), "tokenize is 3, expected the name of a tokeniser"),
        (lambda: lt.BLEU(smooth_method="floor", smooth_value="x"), "smooth_value is 'x', expected a number"),
        (lambda: lt.CHRF(beta=1.5), "beta is 1.5, expected a whole number"),
        (lambda: lt.Metric(3), "the metric is 3, expected a name such as 'bleu'"),
        (lambda: lt.BLEU().corpus_score(None, [["a"]]), "hypotheses is of type NoneType, expected a list of strings"),
        (lambda: lt.BLEU().corpus_score(["a"], [["a"]], n_bootstrap="x"), "n_bootstrap is 'x'"),
        (lambda: lt.BLEU().corpus_score(["a"], [["a"]], threads=-1), "threads is -1"),
        (lambda: lt.BLEU().corpus_score(["a"], [3]), "references[0] is of type int"),
        (lambda: lt.BLEU().sentence_score(3, ["a"]), "the hypothesis is 3, expected a string"),
    ],
)
def test_wrong_calls(call, words):
    with pytest.raises(lt.Error) as raised:
        call()
    assert words in str(raised.value)


def odd_texts():
    """Words of the odd text in tests/score.rs, in random order, three quarters of them near a reference."""
    import random
    import re

    source = (ROOT / "tests" / "score.rs").read_text(encoding="utf-8")
    source = source[source.index("const WORDS") :]
    quoted = re.findall(r'^        "(.*)",$', source[: source.index("];")], re.MULTILINE)
    words = [re.sub(r"\\u\{([0-9a-f]+)\}", lambda m: chr(int(m[1], 16)), w) for w in quoted]
    assert len(words) > 40
    rng = random.Random(1)
    draw = lambda: [rng.choice(words) for _ in range(rng.choice([0, 1, 1, 4, 8, 15, 30]))]
    references = [[" ".join(draw()) for _ in range(150)] for _ in range(2)]
    near = lambda text: " ".join(w if rng.random() > 0.2 else rng.choice(words) for w in text.split(" "))
    return [near(r) if rng.random() > 0.25 else " ".join(draw()) for r in references[0]], references


def same_as_sacrebleu(hypotheses, references):
    """Compares all metrics and settings that the command line is compared with, on texts without white space at their ends."""
    hypotheses, references = [t.rstrip() for t in hypotheses], [[t.rstrip() for t in stream] for stream in references]
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        from ask_sacrebleu import metrics
    finally:
        sys.path.pop(0)
    names = []
    for name, theirs in metrics(references):
        ours = lt.Metric(name)
        found, expected = ours.corpus_score(hypotheses, references), theirs.corpus_score(hypotheses, None)
        assert found.score == pytest.approx(expected.score, rel=1e-10), name
        assert found.format(score_only=True) == expected.format(score_only=True), name
        assert _without_version(str(ours.get_signature())) == _without_version(theirs.get_signature().format()), name
        names.append(name)
    assert len(names) >= 20


def test_cases_of_the_command_line_on_odd_text():
    same_as_sacrebleu(*odd_texts())


def test_cases_of_the_command_line_on_real_text(data):
    import gzip

    references = gzip.open(data / "multi30k/test.en.gz", "rt", encoding="utf-8").read().splitlines()
    hypotheses = (data / "moses/test.mert.out").read_text(encoding="utf-8").splitlines()
    same_as_sacrebleu(hypotheses, [references])
