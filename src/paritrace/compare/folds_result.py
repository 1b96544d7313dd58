"""Records of a comparison by fold: what runs of unlike layouts share, whole against whole (CP-12)."""

from enum import StrEnum

from msgspec import Struct


class FoldStatus(StrEnum):
    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_CHECKABLE = "not_checkable"


class FoldCount(Struct, frozen=True):
    """How many wholes of one group agree at one moment; `parts` is the most parts one whole has, by side."""

    step: int
    moment: str  # "begin" | "batch" | "grads"
    group: str  # "parameter", "buffer", "optimizer_state", "gradient", "batch"
    agree: int
    differ: int
    not_checkable: int
    parts: tuple[int, int]  # baseline, candidate

    @property
    def total(self) -> int:
        return self.agree + self.differ + self.not_checkable


class FoldedState(Struct, frozen=True):
    """One whole that differs, or that could not be compared; `facts` say what the parts show, for a person."""

    step: int
    moment: str
    group: str
    name: str  # in the baseline's words
    status: FoldStatus
    parts: tuple[int, int]
    reason: str = ""  # not checkable: side and reason
    facts: tuple[str, ...] = ()


class FoldedSlot(Struct, frozen=True):
    """Errors of one module-level tensor between unlike layouts, by moments and samples; not a verdict.

    All are relative: `norm_error` of the L2 norm, `mean_error` of the sum against norm * sqrt(n), `range_error` of the
    bounds against the largest magnitude, `sample_error` (L2) over `num_samples` elements at logical indices that both
    sides recorded. None: not to be told. `ratio`: the one factor between all samples.
    """

    step: int
    microbatch: int
    phase: str
    module: str
    nth: int
    slot: str
    ranks: tuple[tuple[int, ...], tuple[int, ...]]  # whose parts were folded, or which replicas were compared
    norm_error: float | None
    mean_error: float | None
    range_error: float | None
    sample_error: float | None
    num_samples: int
    ratio: float | None = None
    facts: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        known = (self.norm_error, self.mean_error, self.range_error, self.sample_error)
        return max((value for value in known if value is not None), default=0.0)


class RatioFact(Struct, frozen=True):
    """A whole-number ratio between figures of both sides, at every value of the first step; nothing is attributed.

    `ratio` is `larger` side over the other; `values` of `of_values` figures over all steps show it.
    """

    figure: str  # "loss" | "grad_norm"
    ratio: int
    larger: str  # "baseline" | "candidate"
    values: int
    of_values: int
    first_step: int
    text: str


class Folds(Struct, frozen=True):
    """`states` and `slots` hold the first or largest; the counts are of all."""

    why: tuple[str, ...]  # what is unlike between the layouts
    scheme: str
    incarnations: tuple[int, int]  # baseline, candidate
    ranks: tuple[tuple[int, ...], tuple[int, ...]]  # with a session, by side
    world_sizes: tuple[int, int]
    counts: tuple[FoldCount, ...]
    states: tuple[FoldedState, ...]
    num_slots: int  # module-level tensors compared by moments and samples
    slots: tuple[FoldedSlot, ...]  # by step, the largest errors first
    slots_not_compared: dict[str, int]  # reason -> tensors
    declared: tuple[str, ...] = ()  # --dims and --map as given
