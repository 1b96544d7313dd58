"""The documents of `paritrace infer`: what an append, a linking and an accounting say (surface.md)."""

from msgspec import Struct

from paritrace.evidence.coverage import Coverage
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.records import Link
from paritrace.inference.resolution import Conflict, Dangling
from paritrace.inference.vocabulary import LossReason, LossStatus

VERSION = "1.0"


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """The artifact that a document is about: its committed bytes, and the digest that its index has of them."""

    path: str
    run_id: str
    num_bytes: int
    folded_sha256: str | Gap[InferenceGap]


class AppendReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer init`, `append` and `import`. `written`: events by type; what was there already is counted apart.

    `recovered`: what an earlier change that was killed left, and what became of it.
    """

    format: str
    version: str
    artifact: Source
    written: dict[str, int]
    num_written: int
    already_present: int
    recovered: str
    limits: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    complete: bool | Gap[InferenceGap] = Gap(InferenceGap.NOT_ASKED)


class LinkCounts(Struct, frozen=True, forbid_unknown_fields=True):
    """Links of the activities of one domain. `linked_fraction` has the activities as its denominator."""

    activities: int
    linked: int
    by_basis: dict[str, int]
    by_reason: dict[str, int]
    linked_fraction: float | Gap[InferenceGap]


class LinkReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer link`: `gpu` is what the fraction of device work rests on; `by_domain` has all.

    `coverage`: device activities against what their sources say of losses; unknown where one lost some, or is silent.
    """

    format: str
    version: str
    artifact: Source
    rule: str
    gpu: LinkCounts
    by_domain: dict[str, LinkCounts]
    linked_fraction: float | Gap[InferenceGap]
    coverage: Coverage
    written: int
    already_present: int
    superseded: int


class LinkExplanation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer link --explain ID`: one activity's link as the rule derives it now, with the lines it rests on."""

    format: str
    version: str
    artifact: Source
    activity_id: str
    activity_line: int
    link: Link
    because: str
    evidence_lines: dict[str, int]


class DeviceTime(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Work of one device by one clock. Devices and clocks are never added together.

    `busy_ns`: the union of all measured work; `summed_ns`: its sum, larger where work ran side by side;
    `graph_level_ns`: the part of the union that only a whole graph's row covers, with gaps nobody recorded (IN-26).
    """

    device: str
    clock_domain: str
    clock_kind: str
    busy_ns: int
    summed_ns: int
    graph_level_ns: int
    activities: int
    graph_level: int
    unlinked: int
    unlinked_busy_ns: int
    unmeasured: int
    by_kind: dict[str, int]


class IterationTime(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One iteration: its own elapsed time, and device work by device and clock; three numbers that never mix."""

    iteration: Ref
    elapsed_ns: int | Gap[InferenceGap]
    work: tuple["IterationWork", ...] = ()


class IterationWork(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one iteration ran on one device by one clock."""

    device: str
    clock_domain: str
    busy_ns: int
    summed_ns: int
    activities: int


class LossLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A loss as its source told it."""

    source: str
    what: str
    reason: LossReason
    status: LossStatus
    count: int | Gap[InferenceGap]


class RequestShare(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of an iteration's busy time that a named model gives to one request."""

    request: Ref
    share_ns: int


class SharedWork(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An iteration's busy time on one device, shared by a named model: shares and remainder are the measured union."""

    model: str
    iteration: Ref
    device: str
    clock_domain: str
    busy_ns: int
    shares: tuple[RequestShare, ...]
    remainder_ns: int


class SourceCounts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an importer said of one source when it was read: what it counted there, and what it cannot say."""

    component: str
    attachments: tuple[str, ...]
    complete: bool
    counts: dict[str, int]
    limits: tuple[str, ...]


class StepsOfTrace(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ranges that an engine left in a trace, against the iterations that it logged (IN-12).

    `pairs`: range and iteration, by counts that occur once on each side and in one order; the others are undetermined,
    by why. `in_order`: how many more stand in equal order, an estimate.
    """

    trace: str
    pid: int | Gap[InferenceGap]
    engine: str
    ranges: int
    iterations: int
    num_pairs: int
    pairs: tuple[tuple[Ref, Ref], ...]
    pairs_left_out: int
    undetermined: dict[str, int]
    in_order: int
    by_requests_only: bool


class AccountReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer account`. Lists are bounded; `num_iterations` and `left_out` say by how much."""

    format: str
    version: str
    artifact: Source | None
    devices: tuple[DeviceTime, ...]
    unmeasured_without_device: int
    num_iterations: int
    iterations: tuple[IterationTime, ...]
    iterations_left_out: int
    loss: tuple[LossLine, ...]
    loss_left_out: int
    shares: tuple[SharedWork, ...] = ()
    shares_left_out: int = 0
    sources: tuple[SourceCounts, ...] = ()
    steps: tuple[StepsOfTrace, ...] = ()


class ShowReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer show`: what an artifact holds, what contradicts itself, what it refers to in vain."""

    format: str
    version: str
    artifact: Source
    sessions: tuple[str, ...]
    contexts: int
    events: dict[str, int]
    conflicts: tuple[Conflict, ...]
    conflicts_left_out: int
    dangling: tuple[Dangling, ...]
    dangling_left_out: int
    components: tuple["ComponentLine", ...]
    loss: tuple[LossLine, ...]
    loss_left_out: int
    index: str


class ComponentLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A capability event, told for people."""

    component: str
    session_id: str
    available: bool
    supported: int
    enabled: int
    collected: int
    reason: str = ""


class RecoverReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`infer recover`: the bytes that were no events, kept as attachments; none where all was well."""

    format: str
    version: str
    artifact: Source
    recovered: str
    kept: tuple["KeptBytes", ...]


class KeptBytes(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Bytes of an artifact that are no event: where they stand, and the attachment that keeps a copy of them."""

    first_byte: int
    num_bytes: int
    reason: LossReason
    attachment_id: str
    sha256: str
