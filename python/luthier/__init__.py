"""Tunes the weights of anything that scores n-best lists with a linear model.

>>> import luthier as lt
>>> dev = lt.NBest(
...     texts=[["the house", "house the"], ["a cat", "one cat", "cat"]],
...     features={"logprob": [[-1.0, -0.5], [-2.0, -1.5, -1.0]], "lm": [[-3.0, -7.0], [-2.0, -4.0, -3.0]]},
...     references=["the house", "a cat"],
... )
>>> fit = lt.tune(dev, "mert", metric="chrf")
>>> fit.rerank(dev)
['the house', 'a cat']

Lists (`NBest`) come from Python lists, NumPy arrays, frames of pandas or polars, or files. `tune` learns weights by one of the
algorithms `Mert`, `Pro`, `Apro`, `Mira`, `Perceptron`, `Oro`, `Softmax`, `Xbleu` and `Risk`. `BLEU`, `CHRF` and `TER` equal
sacreBLEU's, many times as fast. `Translator` translates with a model that `train` has built from parallel text.
"""

from ._frame import Frame
from ._luthier import Error, __version__
from ._metrics import BLEU, CHRF, TER, BLEUScore, CHRFScore, Comparison, Metric, Score, Signature, TERScore, compare
from ._nbest import NBest
from ._recipes import Apro, Mert, Mira, Oro, Perceptron, Pro, Recipe, Risk, Softmax, Xbleu
from ._translate import Explanation, Option, Phrase, Translation, Translator, train
from ._tune import Fit, HeldOut, Loss, MbrChoice, Oracle, Stability, Surface, loss, mbr, oracle, rerank, surface, tune
from ._weights import Weights

__all__ = [
    "BLEU", "CHRF", "TER", "Apro", "BLEUScore", "CHRFScore", "Comparison", "Error", "Explanation", "Fit", "Frame", "HeldOut", "Loss", "MbrChoice", "Mert",
    "Metric", "Mira", "NBest", "Option", "Oracle", "Oro", "Perceptron", "Phrase", "Pro", "Recipe", "Risk", "Score", "Signature", "Softmax",
    "Stability", "Surface", "TERScore", "Translation", "Translator", "Weights", "Xbleu", "__version__", "compare", "loss",
    "mbr", "oracle", "rerank", "surface", "train", "tune",
]

for _name in __all__:
    _object = globals()[_name]
    if hasattr(_object, "__module__") and getattr(_object, "__module__", "").startswith("luthier."):
        _object.__module__ = "luthier"
del _name, _object
