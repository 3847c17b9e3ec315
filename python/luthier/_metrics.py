"""BLEU, chrF and TER with sacreBLEU's names, numbers and signatures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _check, _luthier
from ._frame import Frame
from ._luthier import Error


class Signature:
    """Settings of a metric in sacreBLEU's form."""

    def __init__(self, text: str) -> None:
        self._text = text

    def format(self, short: bool = False) -> str:
        """Returns the signature; the short form abbreviates names."""
        if not short:
            return self._text
        return "|".join(f"{_SHORT.get(k, k)}:{v}" for k, v in (p.split(":", 1) for p in self._text.split("|")))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)


#: Abbreviations of sacreBLEU.
_SHORT = {
    "nrefs": "#", "test": "t", "lang": "l", "subset": "S", "origlang": "o", "bs": "bs", "ar": "ar", "seed": "rs", "case": "c",
    "eff": "e", "tok": "tok", "smooth": "s", "version": "v", "nc": "nc", "nw": "nw", "space": "s", "norm": "nr", "punct": "pn",
    "asian": "as",
}


class Score:
    """A score: its value in `score`, the metric in `name`, and sacreBLEU's text by `str()` and `format()`."""

    name: str
    score: float

    def __init__(self, name: str, score: float) -> None:
        self.name, self.score = name, score
        self._mean = self._ci = -1.0
        self._verbose = ""

    def format(self, width: int = 2, score_only: bool = False, signature: str = "", is_json: bool = False) -> str:
        """Returns the score with `width` decimals, alone, with a signature, or as JSON."""
        value = f"{self.score:.{width}f}"
        if score_only:
            return value
        if is_json:
            settings = dict(p.split(":", 1) for p in str(signature).split("|")) if signature else {}
            fields: dict[str, Any] = {"name": self.name, "score": float(value), "signature": str(signature)}
            return json.dumps({**fields, **({"verbose_score": self._verbose} if self._verbose else {}), **settings}, indent=1, ensure_ascii=False)
        name = f"{self.name}|{signature}" if signature else self.name
        interval = f" (μ = {self._mean:.{width}f} ± {self._ci:.{width}f})" if self._mean >= 0 else ""
        return f"{name} = {value}{interval} {self._verbose}".rstrip()

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return self.format()


class BLEUScore(Score):
    """A BLEU score with its n-gram precisions, brevity penalty and lengths."""

    def __init__(self, metric: _luthier.Metric, totals: list[float], order: int) -> None:
        super().__init__("BLEU", metric.score(totals))
        self.counts = [int(x) for x in totals[:order]]
        self.totals = [int(x) for x in totals[order : 2 * order]]
        self.precisions, self.bp = metric.precisions(totals) or ([], 0.0)
        self.sys_len, self.ref_len = self.totals[0], int(totals[2 * order])
        self.ratio = self.sys_len / self.ref_len if self.ref_len else 0.0
        self._verbose = metric.details(totals) or ""
        self.prec_str = "/".join(f"{p:.1f}" for p in self.precisions)


class CHRFScore(Score):
    """A chrF score with its orders and β."""

    def __init__(self, score: float, char_order: int, word_order: int, beta: int) -> None:
        super().__init__(f"chrF{beta}" + "+" * word_order, score)
        self.char_order, self.word_order, self.beta = char_order, word_order, beta


class TERScore(Score):
    """A TER score with its number of edits and the reference length."""

    def __init__(self, score: float, num_edits: float, ref_length: float) -> None:
        super().__init__("TER", score)
        self.num_edits, self.ref_length = int(num_edits), ref_length


class Metric:
    """A metric by its name on the command line: `bleu`, `chrf++`, `wer`, `0.5*bleu+0.5*chrf`.

    Texts are tokenised by 13a for BLEU, as in sacreBLEU; `bleu:tokenize=none` is for tokenised text. A name that is given to
    `tune` and other functions of lists does not tokenise.

    >>> Metric("wer").corpus_score(["the house"], [["the small house"]])
    WER = 33.33
    """

    _references: list[list[str]] | None = None

    def __init__(self, spec: str) -> None:
        self._metric = _luthier.Metric(_check.text("the metric", spec, "a name such as 'bleu'"), "13a")

    def _score(self, totals: list[float], metric: _luthier.Metric) -> Score:
        return Score(metric.name(), metric.score(totals))

    @_check.refusing
    def corpus_score(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]] | None = None,
        n_bootstrap: int = 1,
        *,
        threads: int | None = None,
    ) -> Any:
        """Returns the score of a text. `references[j][i]` is the j-th reference of hypothesis i, as in sacreBLEU.

        With `n_bootstrap` above 1 the score has a 95 % interval from that many resamples of the segments.
        """
        n_bootstrap = _check.whole("n_bootstrap", n_bootstrap)
        hypotheses, streams = _texts("hypotheses", hypotheses), self._streams(references)
        threads = _check.at_least("threads", threads, 1)
        self._count = len(streams)
        if n_bootstrap > 1:
            totals, mean, interval = self._metric.totals_and_interval(hypotheses, streams, n_bootstrap, threads)
            score = self._score(totals, self._metric)
            score._mean, score._ci = mean, interval
            self._samples = n_bootstrap
            return score
        return self._score(self._metric.totals(hypotheses, streams, threads), self._metric)

    @_check.refusing
    def sentence_score(self, hypothesis: str, references: Sequence[str]) -> Any:
        """Returns the score of a single sentence."""
        if isinstance(references, str):
            raise Error("references is a string, expected a list of references of the sentence")
        _check.text("the hypothesis", hypothesis)
        references = _texts("references", references)
        self._count = len(references)
        metric = self._sentence_metric()
        return self._score(metric.sentence(hypothesis, references), metric)

    @_check.refusing
    def sentence_scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, threads: int | None = None
    ) -> np.ndarray:
        """Returns the scores of all sentences of a text; references as in `corpus_score`."""
        texts, streams = _texts("hypotheses", hypotheses), self._streams(references)
        return self._sentence_metric().sentences(texts, streams, _check.at_least("threads", threads, 1))

    @_check.refusing
    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str], *, threads: int | None = None) -> np.ndarray:
        """Returns the score of every hypothesis (row) against every reference (column)."""
        texts, others = _texts("hypotheses", hypotheses), _texts("references", references)
        return self._sentence_metric().pairwise(texts, others, _check.at_least("threads", threads, 1))

    def get_signature(self) -> Signature:
        """Returns the settings in sacreBLEU's form; the number of references is that of the last call."""
        samples = getattr(self, "_samples", 1)
        test = f"bs:{samples}|seed:12345" if samples > 1 else ""
        return Signature(self._metric.signature(getattr(self, "_count", None), test))

    def _sentence_metric(self) -> _luthier.Metric:
        return self._metric.for_sentences()

    def _streams(self, references: Any) -> list[list[str]]:
        if references is None:
            references = self._references
        if references is None:
            raise Error("no references: give them to the call, or to the metric with references=")
        references = _check.listed("references", references, "references[j][i], the j-th reference of hypothesis i")
        if references and isinstance(references[0], str):
            raise Error("references is a list of strings, expected references[j][i], the j-th reference of hypothesis i: [references]")
        return [_texts(f"references[{j}]", stream) for j, stream in enumerate(references)]

    def __repr__(self) -> str:
        return f"<luthier.{type(self).__name__} {self._metric.spec()}>"


class BLEU(Metric):
    """BLEU as sacreBLEU computes it.

    >>> bleu = BLEU()
    >>> bleu.corpus_score(["The house is very small."], [["The house is small."]])
    BLEU = 37.99 83.3/60.0/25.0/16.7 (BP = 1.000 ratio = 1.200 hyp_len = 6 ref_len = 5)
    """

    def __init__(
        self,
        lowercase: bool = False,
        force: bool = False,
        tokenize: str | None = None,
        smooth_method: str = "exp",
        smooth_value: float | None = None,
        max_ngram_order: int = 4,
        effective_order: bool = False,
        trg_lang: str = "",
        references: Sequence[Sequence[str]] | None = None,
    ) -> None:
        _check.flag("force", force)
        _check.text("trg_lang", trg_lang, "the code of a language, such as 'ja'")
        max_ngram_order = _order("max_ngram_order", max_ngram_order, 1)
        _check.text("smooth_method", smooth_method)
        smooth_value = None if smooth_value is None else _check.finite("smooth_value", smooth_value)
        if tokenize is None:
            tokenize = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}.get(trg_lang, "13a")
        _check.text("tokenize", tokenize, "the name of a tokeniser, such as '13a'")
        options = [f"order={max_ngram_order}", f"tokenize={tokenize}", f"smooth={smooth_method}"]
        if smooth_value is not None and smooth_method in ("floor", "add-k"):
            options.append(f"smooth-value={smooth_value!r}")
        options += ["lowercase"] * _check.flag("lowercase", lowercase)
        options += ["effective-order"] * _check.flag("effective_order", effective_order)
        super().__init__(f"bleu:{','.join(options)}")
        self.lowercase, self.tokenize, self.smooth_method, self.smooth_value = lowercase, tokenize, smooth_method, smooth_value
        self.max_ngram_order, self.effective_order = max_ngram_order, effective_order
        self._references = None if references is None else self._streams(references)

    def _score(self, totals: list[float], metric: _luthier.Metric) -> BLEUScore:
        return BLEUScore(metric, totals, self.max_ngram_order)

    def _sentence_metric(self) -> _luthier.Metric:
        return self._metric


class CHRF(Metric):
    """chrF, and chrF++ with `word_order=2`, as sacreBLEU computes it.

    White space at the end of a text does not count, as on sacreBLEU's command line; sacreBLEU's class counts it with `whitespace=True`.

    >>> CHRF(word_order=2).corpus_score(["The house is very small."], [["The house is small."]])
    chrF2++ = 77.31
    """

    def __init__(
        self,
        char_order: int = 6,
        word_order: int = 0,
        beta: int = 2,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
        references: Sequence[Sequence[str]] | None = None,
    ) -> None:
        char_order, word_order = _order("char_order", char_order, 1), _order("word_order", word_order, 0)
        beta = _order("beta", beta, 1)
        if _check.flag("eps_smoothing", eps_smoothing):
            raise Error("eps_smoothing=True is not supported; sacreBLEU has it for comparison with older programs")
        options = [f"char-order={char_order}", f"word-order={word_order}", f"beta={beta}"]
        options += ["lowercase"] * _check.flag("lowercase", lowercase) + ["whitespace"] * _check.flag("whitespace", whitespace)
        super().__init__(f"chrf:{','.join(options)}")
        self.char_order, self.word_order, self.beta = char_order, word_order, beta
        self.lowercase, self.whitespace = lowercase, whitespace
        self._references = None if references is None else self._streams(references)

    def _score(self, totals: list[float], metric: _luthier.Metric) -> CHRFScore:
        return CHRFScore(metric.score(totals), self.char_order, self.word_order, self.beta)


class TER(Metric):
    """TER as sacreBLEU computes it.

    >>> TER().corpus_score(["the house is very small"], [["the house is small"]])
    TER = 25.00
    """

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
        references: Sequence[Sequence[str]] | None = None,
    ) -> None:
        if _check.flag("asian_support", asian_support):
            raise Error("asian_support=True is not supported; segment the text first")
        options = ["normalized"] * _check.flag("normalized", normalized) + ["no-punct"] * _check.flag("no_punct", no_punct)
        options += ["case"] * _check.flag("case_sensitive", case_sensitive)
        super().__init__("ter" + (f":{','.join(options)}" if options else ""))
        self.normalized, self.no_punct, self.case_sensitive = normalized, no_punct, case_sensitive
        self._references = None if references is None else self._streams(references)

    def _score(self, totals: list[float], metric: _luthier.Metric) -> TERScore:
        return TERScore(metric.score(totals), totals[0], totals[1] / 60)


def _order(what: str, value: Any, least: int) -> int:
    return _check.at_least(what, _check.whole(what, value), least) or 0


def _texts(what: str, texts: Any) -> list[str]:
    texts = texts if isinstance(texts, list) else _check.listed(what, texts, "a list of strings")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise Error(f"{what} has {_check.shown(text)} at {i}, expected a string")
        if not text.isascii():
            _check.text(f"{what}[{i}]", text)
    return texts


def metric_of(metric: str | Metric) -> str:
    """Returns the name of a metric with its settings."""
    if isinstance(metric, Metric):
        return metric._metric.spec()
    if not isinstance(metric, str):
        raise Error(f"the metric is of type {type(metric).__name__}, expected a name such as 'bleu' or a metric such as BLEU()")
    return _check.text("the metric", metric)


class Comparison(Frame):
    """Result of a significance test: a row per system, the baseline first, and the signature in `signature`."""

    signature: Signature

    def __init__(self, columns: Any, signature: str) -> None:
        super().__init__(columns)
        self.signature = Signature(signature)

    def __repr__(self) -> str:
        return f"{self}\n{self.signature}"


@_check.refusing
def compare(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | Sequence[str],
    references: Sequence[Sequence[str]],
    metric: str | Metric = "bleu",
    *,
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Comparison:
    """Tests whether systems differ significantly from a baseline; p-values equal sacreBLEU's.

    `metric` is a name, with which BLEU tokenises by 13a, or a metric such as `BLEU(tokenize="none")`. `systems` are translations of one system, of several in a list, or a dictionary with their names. `test` is `bootstrap` or
    `randomization`. Columns: score, difference from the baseline, mean and half the width of the 95 % interval over
    resamples, p-value.

    >>> compare(["a b c d e", "f g h"], ["a b c d f", "f g h"], [["a b c d f", "f g h"]], samples=100).columns
    ['system', 'score', 'difference', 'mean', 'interval', 'p_value']
    """
    texts: list[Any]
    if isinstance(systems, Mapping):
        names, texts = [_check.text("the name of a system", name) for name in systems], list(systems.values())
    else:
        texts = _check.listed("systems", systems, "a list of translations, or a mapping of names to them")
        if texts and isinstance(texts[0], str):
            texts = [texts]
        names = [f"system {i + 1}" for i in range(len(texts))]
    scorer = metric if isinstance(metric, Metric) else Metric(metric_of(metric))
    named = [("baseline", baseline), *zip(names, texts)]
    all_texts = [_texts(name, t) for name, t in named]
    if len(all_texts) < 2:
        raise Error("systems is empty, expected at least one system to compare with the baseline")
    _check.choice("test", test, ("bootstrap", "randomization"))
    samples, threads = _check.at_least("samples", samples, 1), _check.at_least("threads", threads, 1)
    seed = None if seed is None else _check.whole("seed", seed)
    rows, signature = _luthier.compare(scorer._metric, all_texts, scorer._streams(references), test, samples, seed, threads)
    score, delta, mean, interval, p = zip(*rows)
    columns = {"system": ["baseline", *names], "score": np.array(score), "difference": np.array(delta), "mean": np.array(mean)}
    return Comparison({**columns, "interval": np.array(interval), "p_value": list(p)}, signature)
