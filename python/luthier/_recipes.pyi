"""Types of the algorithms; made by make_stubs.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

class Recipe:
    name: str
    _info: Mapping[str, Any]
    _recipe: Any
    def __init__(self, **settings: Any) -> None: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> Any: ...

ALGORITHMS: dict[str, type[Recipe]]

def recipe_of(algorithm: str | Recipe | type[Recipe], settings: Mapping[str, Any]) -> Recipe: ...

class Mert(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        on: Literal["nbest", "forest"] | None = None,
        density: int | None = None,
        strategy: Literal["iterated", "koehn", "powell", "random", "simplex"] | None = None,
        budget: int | None = None,
        restarts: int | None = None,
        rounds: int | None = None,
        random_directions: int | None = None,
        direction_patience: int | None = None,
        smooth: Literal["none", "average", "max"] | None = None,
        window: int | None = None,
        fix: Sequence[str] | Mapping[str, Any] | str | None = None,
        bound: Sequence[str] | Mapping[str, Any] | str | None = None,
        certify: bool | None = None,
        certify_programs: int | None = None,
        certify_seconds: float | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Pro(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        pairs: Literal["sampled", "oracle", "all", "good-bad"] | None = None,
        loss: Literal["logistic", "hinge"] | None = None,
        draw: int | None = None,
        keep: int | None = None,
        min_difference: float | None = None,
        slice: float | None = None,
        max_length_sigma: float | None = None,
        lambda_: float | None = None,
        gain: Literal["sentence", "document"] | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        tolerance: float | None = None,
        max_steps: int | None = None,
        l1: str | bool | None = None,
        psi: float | None = None,
        interpolate: Literal["psi", "line-search"] | None = None,
        reset_at: int | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Apro(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        c: float | None = None,
        scale: Literal["pairs", "candidates"] | None = None,
        gain: Literal["sentence", "document"] | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        tolerance: float | None = None,
        max_steps: int | None = None,
        l1: str | bool | None = None,
        psi: float | None = None,
        interpolate: Literal["psi", "line-search"] | None = None,
        reset_at: int | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Mira(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        on: Literal["nbest", "forest"] | None = None,
        density: int | None = None,
        constraints: Literal["hope-fear", "surrogate", "oracle"] | None = None,
        c: float | None = None,
        lambda_: float | None = None,
        margin: Literal["one", "error"] | None = None,
        scale: Literal["sum", "mean"] | None = None,
        tolerance: float | None = None,
        decay: float | None = None,
        epochs: int | None = None,
        model_background: bool | None = None,
        safe_hope: bool | None = None,
        update: Literal["local", "max-bleu"] | None = None,
        weighted: bool | None = None,
        no_references: bool | None = None,
        no_average: bool | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        batch_size: int | None = None,
        shards: int | None = None,
        mixing: Literal["average", "line-search"] | None = None,
        max_rho: float | None = None,
        select_share: float | None = None,
        no_shuffle: bool | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Perceptron(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        update: Literal["local", "max-bleu"] | None = None,
        weighted: bool | None = None,
        no_references: bool | None = None,
        no_average: bool | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        batch_size: int | None = None,
        shards: int | None = None,
        mixing: Literal["average", "line-search"] | None = None,
        max_rho: float | None = None,
        select_share: float | None = None,
        no_shuffle: bool | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Oro(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        loss: Literal["hinge", "softmax"] | None = None,
        optimized: bool | None = None,
        lambda_: float | None = None,
        l1: float | None = None,
        eta0: float | None = None,
        alpha: float | None = None,
        rate: Literal["exponential", "pegasos"] | None = None,
        normalize: Literal["violated", "pairs"] | None = None,
        dual: Literal["mean", "normalized", "box", "simplex"] | None = None,
        pairs: Literal["all", "violated"] | None = None,
        tolerance: float | None = None,
        linearize: Literal["printed", "tangent"] | None = None,
        oracle: Literal["corpus", "sentence"] | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        batch_size: int | None = None,
        shards: int | None = None,
        mixing: Literal["average", "line-search"] | None = None,
        max_rho: float | None = None,
        select_share: float | None = None,
        no_shuffle: bool | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Softmax(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        on: Literal["nbest", "forest"] | None = None,
        density: int | None = None,
        oracle: Literal["corpus", "sentence"] | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        gamma: Sequence[float] | Mapping[str, Any] | float | None = None,
        lambda_: float | None = None,
        tolerance: float | None = None,
        max_steps: int | None = None,
        l1: str | bool | None = None,
        psi: float | None = None,
        interpolate: Literal["psi", "line-search"] | None = None,
        reset_at: int | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Xbleu(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        on: Literal["nbest", "forest"] | None = None,
        density: int | None = None,
        clip: Literal["expected", "candidate", "none"] | None = None,
        brevity: Literal["exact", "smooth", "none"] | None = None,
        gamma: Sequence[float] | Mapping[str, Any] | float | None = None,
        lambda_: float | None = None,
        tolerance: float | None = None,
        max_steps: int | None = None,
        l1: str | bool | None = None,
        psi: float | None = None,
        interpolate: Literal["psi", "line-search"] | None = None,
        reset_at: int | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...

class Risk(Recipe):
    def __init__(
        self,
        *,
        iterations: int | None = None,
        patience: int | None = None,
        gamma: Sequence[float] | Mapping[str, Any] | float | None = None,
        lambda_: float | None = None,
        tolerance: float | None = None,
        max_steps: int | None = None,
        l1: str | bool | None = None,
        gain: Literal["sentence", "document"] | None = None,
        smooth_unigrams: bool | None = None,
        smooth_brevity: bool | None = None,
        psi: float | None = None,
        interpolate: Literal["psi", "line-search"] | None = None,
        reset_at: int | None = None,
        nonnegative: Sequence[str] | Mapping[str, Any] | str | bool | None = None,
        standardize: bool | None = None,
    ) -> None: ...
