"""Records of one session's call journal `calls.jsonl`: definitions, calls, details, states and marks.

A line that starts with `{` is a definition or a mark, tagged by `type`; a line that starts with `[` is a row, tagged
by its first element (`c` call, `d` detail, `s` state, `w` completion, `a` addresses of tokens, `r` rows of tokens).
Ids of definitions are per session and are defined on an earlier line than their first use (CA-4), so that a killed
capture reads. The first line is `JournalHeader`. docs/formats/calls.md is the format's description.

Longer than 400 lines: the records of one format, and nothing else, so that a reader has them in one place.
"""

from enum import IntEnum, IntFlag, StrEnum

from msgspec import Struct, field

from paritrace.evidence.allocator import OutOfAcceleratorMemory
from paritrace.evidence.blackbox import BlackBox, Trigger
from paritrace.evidence.callsites import RewrittenFile
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import (
    Collective,
    CollectiveCounts,
    Group,
    Mesh,
    Placement,
    Replicated,
)
from paritrace.evidence.dumps import Dumped, Golden, GoldenGradient
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap
from paritrace.evidence.rows import RowAddresses, TokenRows

FORMAT = "paritrace-calls"
VERSION = "1.3"


class Level(StrEnum):
    DIGEST = "digest"
    MODULE = "module"
    CALLSITE = "callsite"
    OP = "op"
    KERNEL = "kernel"


class Phase(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class SourceKind(StrEnum):
    """How `Site.file` is to be read (CP-19)."""

    MAIN = "main"  # the main script of the run: `file` is "<main>"
    WORKLOAD = "workload"  # path inside the workload's root
    INSTALLED = "installed"  # DISTRIBUTION/path inside it
    OTHER = "other"  # anything else, for example "<stdin>" or a notebook cell


class OriginKind(StrEnum):
    """What a slot reads when no recorded call produced it (CA-27)."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    GRADIENT = "gradient"
    OPTIMIZER_STATE = "optimizer_state"
    BATCH = "batch"
    RNG = "rng"
    CONSTANT = "constant"
    SAVED = "saved"  # a tensor saved by the forward call for its backward
    UNKNOWN = "unknown"


class Flag(IntFlag):
    """Bits of `Call.flags`."""

    INPLACE = 1
    RECOMPUTE = 2
    RAISED = 4
    LINK_AMBIGUOUS = 8
    COMPILED = 16  # the call is one compiled region: what happens inside was not observed
    VIEW = 32  # every output is a view of an input
    NO_GRAD = 64


class How(IntEnum):
    """How a fingerprint came about."""

    READ = 0
    INHERITED = 1  # taken from an earlier summary of the same, unwritten bytes (CA-32)


# --- definitions and marks (objects) -----------------------------------------------------------------------------


class JournalHeader(Definition, frozen=True, tag="journal"):
    format: str
    version: str
    session_id: str
    rank: int
    incarnation: int
    started_unix_ns: int
    levels: tuple[Level, ...]
    schemes: dict[str, str]  # role -> scheme name, e.g. {"bits": "xxh3-64", "elements": "elements-u64"}
    regions: int


class Function(Definition, frozen=True, tag="function"):
    """`name` is `aten.addmm.default` at level op, the class `torch.nn.modules.linear.Linear` at level module."""

    id: int
    name: str
    level: Level


class Site(Definition, frozen=True, tag="site"):
    """A place in a source file; `column` is 0-based, -1 when unknown. `digest` names the source text (CA-26)."""

    id: int
    kind: SourceKind
    file: str
    line: int
    column: int
    function: str
    digest: str | Gap[CaptureGap]
    path: str = ""  # absolute path: evidence only, never compared


class Scope(Definition, frozen=True, tag="scope"):
    """One entry of a module: its qualified name in the root module and its nth call in (step, phase, parent).

    Scope 0 is the root and is not written. `parent` is the enclosing scope's id.
    """

    id: int
    parent: int
    module: str
    cls: str
    nth: int


class Context(Definition, frozen=True, tag="context"):
    id: int
    step: int
    microbatch: int
    phase: Phase
    labels: dict[str, str | int] = field(default_factory=dict[str, str | int])  # paritrace.context(...)


class Kind(Definition, frozen=True, tag="kind"):
    """The kind of a tensor. Strides in elements; `logical_nbytes` = num_elements * itemsize.

    The fingerprint of a slot covers the elements in *memory order* (dims by falling stride, dims of stride 0 left
    out); for a contiguous tensor that is the logical order. Fingerprints of two slots are compared only when
    `order(kind)` is equal on both sides.
    """

    id: int
    dtype: str  # "float32", "bfloat16", …; "rng" for a generator's state
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str  # "strided", …
    device: str
    requires_grad: bool
    num_elements: int
    logical_nbytes: int
    tensor_class: str = "Tensor"


class Name(Definition, frozen=True, tag="name"):
    """An interned string: slot names, autograd node names, thread names."""

    id: int
    text: str


class Origin(Definition, frozen=True, tag="origin"):
    """Something a slot can read that no recorded call produced."""

    id: int
    kind: OriginKind
    name: str


class Scalars(Definition, frozen=True, tag="scalars"):
    """The non-tensor arguments of a call: name -> text of a number, bool, dtype or short enum-like string."""

    id: int
    values: dict[str, str]


class StateNames(Definition, frozen=True, tag="state_names"):
    """The names of one group of a state inventory, in order (CA-29)."""

    id: int
    # parameter | buffer | gradient | optimizer_state | optimizer_config | rng | batch | batch_order | scheduler |
    # scaler | sampler | data_position | fp8 | loss
    group: str
    names: tuple[str, ...]
    kinds: tuple[int, ...]  # Kind ids, -1 where there is none


class LossMark(Definition, frozen=True, tag="loss"):
    """A tensor that backward() started from; `value` is `float.hex()` of it, or its `repr` when not finite."""

    step: int
    microbatch: int
    value: str | Gap[CaptureGap]


class StepMark(Definition, frozen=True, tag="step"):
    """A step has ended. `grad_norm` is `float.hex()` of the L2 norm over all gradients before the optimizer."""

    step: int
    started_ns: int
    ended_ns: int
    calls: int
    backwards: int
    optimizer_steps: int
    grad_norm: str | Gap[CaptureGap]


class LevelMark(Definition, frozen=True, tag="level"):
    """From here on these levels are captured; `reason` says why they changed."""

    step: int
    levels: tuple[Level, ...]
    reason: str


class GapMark(Definition, frozen=True, tag="gap"):
    """A counted gap, with what is known of its place."""

    reason: CountedGap
    count: int
    detail: str
    step: int


class LossOfBytes(Definition, frozen=True, tag="loss_of_bytes"):
    """A torn tail found by a writer that continues a journal (EV-7)."""

    offset: int
    length: int


class ConfigMark(Definition, frozen=True, tag="config"):
    """Settings the workload carries, flattened to dotted names: `source` is "model", "optimizer" or "user"."""

    source: str
    values: dict[str, str]


class CodeMark(Definition, frozen=True, tag="code"):
    """The workload's own source files loaded by the end of the session: `Site.file` spelling -> digest."""

    files: dict[str, str]


class NotCaptured(Definition, frozen=True, tag="not_captured"):
    """Named parts of the state inventory that this capture does not read (CA-29, A-18)."""

    names: tuple[str, ...]


class EndMark(Definition, frozen=True, tag="end"):
    """The writer closed this journal; the reader checks the counts (CA-13).

    `lines` counts the lines before this one, the header included.
    """

    lines: int
    calls: int
    details: int
    states: int
    gaps: dict[str, int]


Mark = (
    JournalHeader
    | Function
    | Site
    | Scope
    | Context
    | Kind
    | Name
    | Origin
    | Scalars
    | StateNames
    | LossMark
    | StepMark
    | LevelMark
    | GapMark
    | LossOfBytes
    | ConfigMark
    | CodeMark
    | NotCaptured
    | Group
    | Mesh
    | Placement
    | Replicated
    | Collective
    | CollectiveCounts
    | BlackBox
    | Trigger
    | OutOfAcceleratorMemory
    | Dumped
    | Golden
    | GoldenGradient
    | RewrittenFile
    | EndMark
)


# --- rows (arrays) -----------------------------------------------------------------------------------------------


class Slot(Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """One tensor argument or result of a call.

    `bits`: 16 hex digits of the strong fingerprint (scheme `bits` of the header) or a gap. `source`: for inputs
    `(record id, output slot index)` of the producing call, or the id of an `Origin`; -1 for outputs.
    """

    name: int
    kind: int
    bits: str | Gap[CaptureGap]
    source: tuple[int, int] | int = -1
    how: How = How.READ


class Call(Struct, array_like=True, frozen=True, gc=False, tag="c", forbid_unknown_fields=True):
    """One observed call (CA-4).

    `id` is the sequence number on entering, `left` on leaving: a call encloses another if its interval does.
    `parent` is the id of the enclosing module call, -1 at the root. `link` is the id of the forward call whose output
    owns the autograd node (backward calls), of the original call (recompute), or -1; `node` names the autograd node
    (`AddmmBackward0`, `AccumulateGrad:layer.weight`), -1 outside backward. Times are monotonic, in ns since the
    session started.
    """

    id: int
    left: int
    parent: int
    function: int
    site: int
    workload_site: int
    scope: int
    context: int
    thread: int
    flags: int
    link: int
    node: int
    scalars: int
    start_ns: int
    duration_ns: int
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


class Moments(Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """Over finite values; `None` where there is no finite value."""

    min: float | None
    max: float | None
    sum: float | None
    sum_squares: float | None
    abs_max: float | None


class Counts(Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    nan: int
    positive_infinity: int
    negative_infinity: int
    zero: int
    negative_zero: int
    subnormal: int
    low_bits_zero: int  # float32 elements whose low 16 bits are zero (went through bfloat16)


class Detail(Struct, array_like=True, frozen=True, gc=False, tag="d", forbid_unknown_fields=True):
    """The full summary of one slot (CA-5, CA-6, CA-7, CA-28); follows its call's line.

    `side` is "i" or "o", `slot` the index in that list. `xor`: 8 hex digits per region (`flat-u32-le-v1`), `regions`:
    16 hex digits of xxh3-64 per region, both in logical contiguous order; `bits`: xxh3-64 of the whole in logical
    order. `elements`: 16 hex digits (`elements-u64`). `samples`: hex of K elements in the tensor's own dtype, at the
    logical indices of `sample_indices(num_elements)`. `moments` and `counts` are `None` exactly when `statistics_gap`
    says why.
    """

    call: int
    side: str
    slot: int
    bits: str
    xor: str
    regions: str
    elements: str
    moments: Moments | None
    counts: Counts | None
    samples: str
    degenerate: bool
    statistics_gap: Gap[CaptureGap] | None = None
    semantics: str | None = None


class State(Struct, array_like=True, frozen=True, gc=False, tag="s", forbid_unknown_fields=True):
    """One group of the state inventory at one moment of a step (CA-29).

    `moment`: "begin" (weights, buffers, rng, optimizer state before the step), "batch", "grads" (before the optimizer
    step). The state after step n is the "begin" state of step n + 1. `values` are aligned with `StateNames`: 16 hex
    digits of the group's scheme (`elements-u64` for tensors, xxh3-64 for anything else) or a gap. Group "batch_order"
    is xxh3-64 of the batch in logical order, since sums of elements do not see an exchange.
    Of scheduler, scaler, sampler, data_position and fp8 a value of up to 64 characters stands in clear.
    """

    step: int
    microbatch: int
    moment: str
    names: int
    values: tuple[str | Gap[CaptureGap], ...]


class StateSamples(Struct, array_like=True, frozen=True, gc=False, tag="t", forbid_unknown_fields=True):
    """Sampled elements of the tensors of one group of the inventory, where level `module` is captured (CA-28, CP-10a).

    Follows the `State` row with the same `step`, `microbatch`, `moment` and `names`. `samples` are aligned with the
    names: hex as in `Detail.samples`, "" where the `State` row has a gap.
    """

    step: int
    microbatch: int
    moment: str
    names: int
    samples: tuple[str, ...]


class Completed(Struct, array_like=True, frozen=True, gc=False, tag="w", forbid_unknown_fields=True):
    """A collective has completed: what its outputs hold by then (CA-31).

    The call's own row has `in_flight` outputs. `bits` are aligned with them; details of outputs follow this row. `by`
    says what showed it: "wait" (`Work.wait`), "wait_tensor", or "backward" (the reducer waited for its buckets before
    backward returned). A collective without this row was never seen to complete.
    """

    call: int
    by: str
    at_ns: int
    bits: tuple[str | Gap[CaptureGap], ...]


Row = Call | Detail | State | StateSamples | Completed | RowAddresses | TokenRows
