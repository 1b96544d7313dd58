"""Records of `judge` and `isolate`: two sides' calls on the same inputs, against float64 (CP-26)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.compare.result import RunRef
from paritrace.compare.ulps import UlpErrors

JUDGED_FORMAT = "paritrace-judged"
ISOLATED_FORMAT = "paritrace-isolated"
VERSION = "1.0"


class Functions(StrEnum):
    """Whether both sides compute the same function: round-off vanishes in float64, another algorithm does not."""

    EQUAL = "equal"  # the results are equal bit for bit
    SAME = "same"
    DIFFERENT = "different"
    UNDETERMINED = "undetermined"  # there is no result in float64, or it is not float64 throughout


class Nearer(StrEnum):
    """Which side is nearer to the float64 reference. It says nothing of which is right (A-07)."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    NEITHER = "neither"
    NO_REFERENCE = "no_reference"


class JudgedTensor(Struct, frozen=True):
    """One output, or gradient of an input or parameter, of both sides.

    `apart` and `apart_float64` are the norm of the difference over the larger norm, in the recorded dtypes and in
    float64, where norms of the recorded results count too; None where all is zero or it is not known, infinite where
    one side alone has a number (JSON: null, and `why` says so). Errors of each side are against its own float64 result,
    which both share where the functions are the same. `why` says why something is undetermined.
    """

    path: str
    gradient: bool
    dtype_baseline: str
    dtype_candidate: str
    shape: tuple[int, ...]
    functions: Functions
    nearer: Nearer
    apart: float | None
    apart_float64: float | None
    baseline: UlpErrors | None = None
    candidate: UlpErrors | None = None
    why: str = ""


class JudgedCall(Struct, frozen=True):
    """One module call of both sides on the baseline's inputs.

    `functions` and `nearer` are of its outputs alone; where they differ from tensor to tensor, the worst. `refused`
    says why nothing was computed.
    """

    module_baseline: str
    module_candidate: str
    cls_baseline: str
    cls_candidate: str
    rank: int
    step: int
    number: int
    functions: Functions
    nearer: Nearer
    tensors: tuple[JudgedTensor, ...] = ()
    reproduces: bool | None = None  # the baseline's replay gave the recorded outputs bit for bit; None: not known
    remarks: tuple[str, ...] = ()
    refused: str = ""


class Judged(Struct, frozen=True):
    """What `judge --json` prints. `call` is the innermost module call around the finding, `about` says so in words."""

    format: str
    version: str
    baseline: RunRef
    candidate: RunRef
    finding: str
    about: str
    call: JudgedCall
    other_ranks: tuple[JudgedCall, ...] = ()
    seconds: float = 0.0


class Isolated(Struct, frozen=True):
    """What `isolate --json` prints: the local error of every module, in the order in which the baseline called them.

    `apart` lists places in `calls` whose function differs by itself, innermost first; a container is not among them
    when a module inside it explains it. `left_out` were in the pattern and could not be replayed, with the reason.
    """

    format: str
    version: str
    baseline: RunRef
    candidate: RunRef
    own_weights: bool
    steps: tuple[int, ...]
    calls: tuple[JudgedCall, ...]
    apart: tuple[int, ...]
    left_out: dict[str, str]
    seconds: float = 0.0
