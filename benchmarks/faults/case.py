"""Records of the planted-fault suite: what is planted, what the right answer is, what the tool said (CP-18)."""

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change of a source file of the workload: the line(s) `old`, which occur exactly once, become `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class WeightChange:
    """A change of the state dict that the candidate starts from: one element, or noise on the whole parameter."""

    parameter: str
    amount: float
    element: tuple[int, ...] | None = None  # None: normal noise of this deviation on every element


class Launch(StrEnum):
    """How a side is started; everything but `process` and `placed` starts the two-rank workload."""

    PROCESS = "process"
    TORCHRUN = "torchrun"
    TORCHRUN_PORT = "torchrun, its own port"
    BY_HAND = "by hand, rank 1 before rank 0"
    PLACED = "process, the workload that knows its layers"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One side of a pair of runs: the workload with these changes, started with these arguments."""

    launch: Launch = Launch.PROCESS

    edits: tuple[Edit, ...] = ()
    arguments: tuple[str, ...] = ()
    weights: tuple[WeightChange, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # file of the workload -> its name in this checkout
    directory: str = "checkout"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Where an expert would point: one acceptable place.

    `at` is a piece of the source line in the candidate (or, failing that, the baseline); empty where no line is
    meant. `module` may be empty for calls outside every module. `names` are the parameters, batch or generator
    that an `outside` statement has to name. `ranks` are those that the statement has to hold for, and no others; empty
    for a single process.
    """

    groups: tuple[str, ...]
    step: int = 0
    phase: str = ""
    file: str = ""
    at: str = ""
    module: str = ""
    function: str = ""
    names: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    microbatch: int | None = None  # None: of any
    beside: bool = False  # the call that reads what was planted first, where nothing closer is judged: adjacent


@dataclass(frozen=True, kw_only=True)
class ExpectedCheck:
    """What `check` of the faulty run alone has to say: an invariant that fails first at this step, for these names.

    Empty `names`: the invariant has none, or nearly every parameter is concerned.
    """

    invariant: str
    names: tuple[str, ...] = ()
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A real bug mechanism; `source` names the public report that it is taken from, where there is one.

    `expected` and `check` list acceptable answers of `compare` and `check`; `check` is empty where one run alone does
    not show the mistake.
    """

    name: str
    mechanism: str
    expected: tuple[Expected, ...]
    candidate: Variant
    check: tuple[ExpectedCheck, ...] = ()
    baseline: Variant = field(default_factory=Variant)
    steps: str = "0:2"
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Control:
    """A pair that holds no bug. `strict`: every bit agrees; otherwise only the forward pass of step 0 must.

    `bits_differ`: some calls truly differ (torch broadcasts its table of buckets), so that differing calls are no
    claim; an origin is one anywhere.

    `options` are given to `compare`, as a person would who knows what was changed.
    """

    name: str
    mechanism: str
    candidate: Variant = field(default_factory=Variant)
    baseline: Variant = field(default_factory=Variant)
    strict: bool = True
    steps: str = "0:2"
    options: tuple[str, ...] = ()
    bits_differ: bool = False


class Answer(StrEnum):
    """How the tool's answer stands to the expected one."""

    EXACT = "exact"  # the first place it names is the planted one
    ADJACENT = "adjacent"  # the first call beside the planted line, in the same module and step
    UNDETERMINED = "undetermined"  # it says that it cannot tell, at the planted place or beside it
    MISSED = "missed"  # nothing named, or another place
    SILENT = "silent"  # a control without a claim: the right answer
    FALSE_CLAIM = "false claim"  # a control with a claim


@dataclass(frozen=True, kw_only=True)
class Score:
    """One scored pair, or one scored check of the faulty run alone."""

    name: str
    is_control: bool
    answer: Answer
    said: str
    undetermined: int
    calls: int
    seconds: float
    asked: str = "compare"  # the command that was asked

    @property
    def good(self) -> bool:
        return self.answer not in (Answer.MISSED, Answer.FALSE_CLAIM)

    @property
    def undetermined_share(self) -> float:
        return self.undetermined / self.calls if self.calls else 0.0
