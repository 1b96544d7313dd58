"""Records of a comparison's result: what `compare --json` prints and every report reads (surface.md, stable keys).

Longer than 400 lines: the records of one document, and nothing else, so that a reader has them in one place.
"""

from enum import StrEnum

from msgspec import Struct

from paritrace.compare.alignment import Review
from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.folds_result import Folds, RatioFact
from paritrace.compare.policy import PolicyResult
from paritrace.compare.resume_result import ResumeFound
from paritrace.compare.token_rows_result import TokenRowsFound
from paritrace.correspondence.vocabulary import Agreement, Basis, Unpaired
from paritrace.runs.attendance import Attendance

__all__ = ["Agreement", "Basis", "Unpaired"]  # the engine's words are part of this vocabulary

FORMAT = "paritrace-comparison"
VERSION = "1.3"


class Status(StrEnum):
    """Status of a call in exports: the first three are of paired calls."""

    OK = "ok"
    DIFFERENT = "different"
    INCOMPARABLE = "incomparable"
    UNALIGNED = "unaligned"


class DifferenceClass(StrEnum):
    """What kind of difference a slot shows (CP-7); the first that applies, in this order of precedence."""

    SHAPE = "shape"
    DTYPE = "dtype"
    NON_FINITE_APPEARED = "non_finite_appeared"
    SAME_ELEMENTS_OTHER_ORDER = "same_elements_other_order"
    SAME_VALUES_OTHER_BITS = "same_values_other_bits"
    SIGNS_ONLY = "signs_only"
    CONSTANT_SCALE = "constant_scale"
    NARROWER_DTYPE = "representable_in_narrower_dtype"
    DISCRETE_CHOICE = "discrete_choice"
    SPARSE_OR_BELOW_SAMPLING = "sparse_or_below_sampling"
    VALUES = "values"  # samples or moments show a difference of no special kind
    BITS_ONLY = "bits_only"  # fingerprints differ and nothing finer was recorded
    SCALARS = "scalars"


class Group(StrEnum):
    """Where a difference comes from, as far as the records say (CP-8)."""

    ORIGINATES = "originates"
    PROPAGATES = "propagates"
    OUTSIDE = "outside"
    REWIRED = "rewired"
    AFTER_UNALIGNED = "after_unaligned"
    UNDETERMINED = "undetermined"
    CONTAINS = "contains"  # an enclosing call of one that originates
    EXCEEDS = "exceeds"  # its output leaves the envelope while what came in is inside (CP-8b)
    CHOOSES = "chooses"  # what came in is not out, and another discrete choice was made (CP-7)
    WITHIN = "within"  # other code on both sides that adds no more than the envelope explains


class Mark(StrEnum):
    """Marks of a ladder rung (CP-29)."""

    AGREES = "="
    INSIDE = "~"  # inside the envelope; not given before envelopes exist
    BEYOND = "X"  # differs (bits only) or beyond the envelope
    UNDETERMINED = "?"
    NOT_REACHED = "."


class RunRef(Struct, frozen=True):
    run_id: str
    digest: str  # SHA-256 of run.json
    path: str


class Counts(Struct, frozen=True):
    calls_baseline: int
    calls_candidate: int
    paired: int
    ok: int
    different: int
    incomparable: int
    undetermined_baseline: int
    undetermined_candidate: int
    reordered: int


class UndeterminedPlace(Struct, frozen=True):
    side: str  # "baseline" | "candidate"
    reason: Unpaired
    step: int
    phase: str
    module: str
    file: str
    count: int


class SlotDifference(Struct, frozen=True):
    slot: str
    difference_class: DifferenceClass
    baseline: str  # what is recorded, shortly, for a person
    candidate: str
    relative_error: float | None = None  # estimated from samples (CA-28); None: not estimable
    bias: float | None = None  # mean signed relative error of the samples
    max_ulp: int | None = None
    num_samples_differing: int | None = None
    byte_ranges: tuple[tuple[int, int], ...] = ()  # half-open, logical order; where regions differ
    note: str = ""
    elements: ElementFigures | None = None  # where both runs keep the tensor whole (CP-11)
    elements_why: str = ""  # why there are none, where a run was asked to keep it


class Difference(Struct, frozen=True):
    """A differing pair, or a region that originates (CP-8a: `region` true, ids are of its first calls)."""

    rank: int
    step: int
    microbatch: int
    phase: str
    level: str
    function: str
    file: str
    line: int
    module: str
    slot: str
    difference_class: DifferenceClass
    group: Group
    baseline_record_id: int
    candidate_record_id: int
    undetermined_before: int
    region: bool = False
    region_calls: tuple[int, int] = (0, 0)  # calls of the region: baseline, candidate
    baseline_site: str = ""  # FILE:LINE of each side as recorded
    candidate_site: str = ""
    baseline_source: str = ""  # that line of the recorded source, stripped; "" when no source was recorded (CA-26)
    candidate_source: str = ""
    slots: tuple[SlotDifference, ...] = ()
    cause: str = ""  # outside: what differed before; after_unaligned: the stretch; propagates: the producer
    next_to_see: tuple[str, ...] = ()  # CP-23: callers, writers upstream, readers downstream
    collective: str = ""  # of collectives: what differs, in a sentence without its ranks


class CollectiveKind(StrEnum):
    """What is said of the collectives of a group (CP-2a, CP-21)."""

    REDUCED = "reduced"  # gradients that one side alone reduces, or another number of times
    ONE_SIDED = "one_sided"  # recorded on one side only
    FIELDS = "fields"  # a pair with another group, reduction, root or peer
    ORDER = "order"  # the same collectives in another order
    COUNT = "count"  # another number in a step, by the group's own sequence number


class CollectiveDifference(Struct, frozen=True):
    """A statement about the collectives of one group, on all the ranks where it holds.

    `records` are the ids behind it, as (rank, baseline's, candidate's), -1 where a side has none. `complete` is false
    where a side's recording is: then the record stands on one side, and nothing is said to be missing.
    """

    kind: CollectiveKind
    sentence: str
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    phase: str
    group: str
    operation: str
    parameters: tuple[str, ...]
    baseline: str  # the collective as that side recorded it, shortly; "" where it has none
    candidate: str
    records: tuple[tuple[int, int, int], ...]
    complete: bool = True


class Finding(Struct, frozen=True):
    """One line for a person, with its strength, which is "bits only" where no envelope judges it (CP-8b, CP-10a).

    `measured` is the sampled relative error, `expected` the median of it over the draws, `ratio` how far out the figure
    named `figure` is, and `reached` the largest ratio of that figure which is still inside. `input_error` is the
    largest sampled error of what came in, `gain` how many times that the output's is, `usual_gain` the draws' median.
    `bias` is the shift of the samples to one side in standard errors, `bias_reached` what of it stays inside.
    """

    id: str  # "F1"
    sentence: str
    strength: str
    place: Difference
    measured: float | None = None
    expected: float | None = None
    ratio: float | None = None
    consequences: int = 0
    ranks: tuple[int, ...] = ()  # all ranks of which it is true; empty in documents older than 1.1
    figure: str = ""  # error | norm | bias | gain
    reached: float | None = None
    input_error: float | None = None
    gain: float | None = None
    usual_gain: float | None = None
    bias: float | None = None
    bias_reached: float | None = None


class EnvelopeUsed(Struct, frozen=True):
    """What the candidate was judged by: runs of the baseline, perturbed or repeated (CP-10, CP-10a).

    `false_rate` is the largest probability that a candidate which is one more draw leaves it anywhere, on any of
    the compared ranks: it is one rate for all of them together.
    `judged` outputs and figures of steps have a width to be judged by; `largest` is the furthest of them, in what stays
    inside. `why` says why nothing was judged, where nothing was.
    """

    kind: str  # "perturbed baselines" | "repeats"
    num_draws: int
    false_rate: float | None = None
    judged: int = 0
    beyond: int = 0
    largest: float | None = None
    why: str = ""


class SelfDifference(Struct, frozen=True):
    """A place where repeats of the baseline first differ from it, and how many of them do so there."""

    place: Difference
    num_repeats: int


class Repeats(Struct, frozen=True):
    """The baseline held against its own repeats (A-08, CP-10): what differs there is no work of the change.

    `places` are the earliest first; a repeat that differs and in which no place can be named is in `num_differing`
    alone. `num_unknown` repeats could not be held against it.
    """

    num_repeats: int
    num_differing: int
    num_unknown: int
    places: tuple[SelfDifference, ...]


class Outside(Struct, frozen=True):
    """A parameter, buffer, RNG, batch or optimizer state that differed before any call read it (CA-29)."""

    rank: int
    step: int
    moment: str
    group: str
    name: str
    baseline: str
    candidate: str


class Change(Struct, frozen=True):
    """Something around the runs that differs (CA-30)."""

    kind: str  # code | config | argv | package | environment | determinism | device | git
    name: str
    baseline: str
    candidate: str


class OneSided(Struct, frozen=True):
    """CP-21: calls recorded on one side only, between two paired neighbours."""

    side: str
    rank: int
    step: int
    module: str
    function: str
    file: str
    line: int
    count: int
    record_id: int
    after_pair: tuple[int, int]  # (baseline id, candidate id) of the paired neighbour before; -1 at the stream's end
    before_pair: tuple[int, int]


class Settled(Struct, frozen=True):
    """CP-30: what is known around a difference that cannot be named."""

    last_equal: Difference | None
    first_different: Difference | None
    between_baseline: int
    between_candidate: int
    why: dict[str, int]
    would_settle: tuple[str, ...]


class SideCoverage(Struct, frozen=True):
    """What one side recorded: `complete` only if expected steps were declared, seen, and nothing was lost."""

    steps_seen: tuple[int, ...]
    expected_steps: int | None
    complete: bool
    status: str  # session status as readers see it (EV-17)
    gaps: dict[str, int]
    bytes_lost: int
    not_captured: tuple[str, ...]
    ranks: tuple[Attendance, ...] = ()  # which ranks wrote a session and a receipt, restart by restart (CA-16)
    remarks: tuple[str, ...] = ()  # of the capture itself: black box, triggers, levels given up
    not_compared: tuple[str, ...] = ()  # sessions without a partner: the other run has no such rank or restart


class LadderRow(Struct, frozen=True):
    """The ladder of one rank, or of one step over all ranks; `marks` has one mark per rung, in the ladder's order.

    `rank` is -1 in a row of all ranks. `coordinate`: where the rank stands in its mesh, as `dp 0, tp 1`.
    """

    step: int
    marks: str
    rank: int = -1
    coordinate: str = ""


class LedgerEntry(Struct, frozen=True):
    """How far the output of a paired call is from the baseline's, by its samples; of several outputs the furthest.

    `error` is relative; None: values that are not finite appeared. `expected` is the median error of the draws and
    `inside_up_to` the largest error that stays inside; both None where nothing was judged. `beyond`: None without a
    judgement; `figure`: by which figure it was judged (it may be out by another than the error).
    `undetermined_before`: calls of the baseline without a partner since the entry before.
    """

    rank: int
    step: int
    phase: str
    module: str
    function: str
    baseline_record_id: int
    candidate_record_id: int
    error: float | None
    expected: float | None = None
    inside_up_to: float | None = None
    beyond: bool | None = None
    figure: str = ""
    undetermined_before: int = 0


class Ledger(Struct, frozen=True):
    """Entries in order of execution, rank by rank; of `total` that there are, all or some that lie evenly."""

    entries: tuple[LedgerEntry, ...]
    total: int


class Limit(Struct, frozen=True):
    code: str
    text: str


class DeclaredMap(Struct, frozen=True):
    """A map that the user declared (CP-5), with what it names on the ranks that were compared; None: none of them.

    `names` recorded names are read otherwise, and of those `met` have a counterpart on the other side. A map whose
    `met` is 0 did nothing. `without_counterpart` are the first of those that have none.
    """

    rule: str
    of: str  # module | file | function
    names: int | None
    met: int | None
    without_counterpart: tuple[str, ...] = ()


class Comparison(Struct, frozen=True):
    format: str
    version: str
    baseline: RunRef
    candidate: RunRef
    verdict: str  # "not_evaluated" without a policy, else what it says: "pass", "fail", "undetermined" (CP-13)
    ranks_compared: tuple[int, ...]
    ranks_missing: tuple[int, ...]
    steps_compared: tuple[int, ...]
    levels_compared: tuple[str, ...]
    counts: Counts
    undetermined_by_reason: dict[str, dict[str, int]]  # "baseline" | "candidate" -> reason -> calls
    undetermined_by_place: tuple[UndeterminedPlace, ...]
    pairs_by_basis: dict[str, int]
    findings: tuple[Finding, ...]
    ladder: dict[str, Mark]
    ladder_step: int
    changed: tuple[Change, ...]
    origins: tuple[Difference, ...]
    first_difference: Difference | None
    outside: tuple[Outside, ...]
    recorded_on_one_side: tuple[OneSided, ...]
    settled: Settled | None
    coverage: dict[str, SideCoverage]  # "baseline" | "candidate"
    limits: tuple[Limit, ...]
    settings: dict[str, str]  # --ignore, --strip-prefix, --steps, --ranks as used
    reports: dict[str, str]
    schemes: dict[str, str] = {}  # role -> scheme both sides were compared by, e.g. {"bits": "xxh3-64"} (CP-7)
    folds: Folds | None = None  # runs of unlike layouts, related whole against whole (CP-12)
    ratios: tuple[RatioFact, ...] = ()  # whole-number ratios of losses and gradient norms
    collectives: tuple[CollectiveDifference, ...] = ()
    envelope: EnvelopeUsed | None = None  # None: no draws of the baseline were given or lie beside it
    resume: ResumeFound | None = None  # None: `--resume` was not asked for (CP-28)
    token_rows: TokenRowsFound | None = None  # None: neither run has any (CP-27)
    first_by_rank: tuple[Difference, ...] = ()  # each rank in its own order of execution; there is no order across
    maps: tuple[DeclaredMap, ...] = ()  # declared by the user, since 1.2
    policy: PolicyResult | None = None  # since 1.2; None: no policy was given
    ladder_by_rank: tuple[LadderRow, ...] = ()  # at `ladder_step`; of many ranks the first, since 1.3
    ladder_by_step: tuple[LadderRow, ...] = ()  # over all ranks; of many steps those around `ladder_step`, since 1.3
    ledger: Ledger | None = None  # since 1.3; None: no size was measured
    review: Review | None = None  # since 1.2; of a comparison that `paritrace align` made (CP-14)
    repeats: Repeats | None = None  # since 1.2; None: the baseline was not held against repeats of its own


LADDER = (
    "code",
    "config",
    "data",
    "weights",
    "rng",
    "forward",
    "loss",
    "backward",
    "reduced grads",
    "grad norm",
    "optimizer",
    "weights+1",
)
AROUND_RUNGS = frozenset({"code", "config"})  # rungs around the runs: shown, and no difference of what was computed
