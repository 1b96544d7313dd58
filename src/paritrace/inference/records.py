"""The events of inference evidence, one line each in `inference.jsonl` (IN-1, IN-3).

An optional field that is None is unknown, and stands in no line. Times are integer nanoseconds of the context's clock.
Correlation ids are text, so that none is rounded and sentinels stay what the source wrote (EV-2). A record whose
invariants do not hold cannot be made: its constructor raises ValueError, and reading it is an error of its line.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from paritrace.evidence.ids import Ref
from paritrace.inference.context import Context, Text, Whole
from paritrace.inference.plain_values import canonical
from paritrace.inference.vocabulary import Attribution, Basis, Domain, LinkReason, LossReason, LossStatus

FORMAT = "paritrace-inference"
VERSION = "1.0"
Nanoseconds = Annotated[int, Meta(ge=-(2**62), le=2**62 - 1)]  # so that the difference of two fits 64 bits
Interval = tuple[Whole, Whole]


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type"):
    """What every event has.

    `event_id` is unique for its run, session and producer: the same again is the same event (IN-8). `metadata` is what
    the source told beyond the fields: JSON with finite numbers, brought to its canonical form here.
    """

    context: Context
    event_id: Text
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.metadata:
            force_setattr(self, "metadata", canonical(self.metadata))


class Artifact(Event, tag="artifact", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The first event of an artifact: whose it is. `created_at_ns` is of the context's clock."""

    kind: Text
    created_at_ns: Nanoseconds
    format: str = FORMAT
    version: str = VERSION


class Request(Event, tag="request", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request of a client, or one attempt at it. `status` is the source's own word."""

    request_ref: Ref
    attempt_ref: Ref | None = None
    backend_request_ref: Ref | None = None
    start_ns: Nanoseconds | None = None
    end_ns: Nanoseconds | None = None
    status: Text | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    kv_bytes: Whole | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_order(self.start_ns, self.end_ns)


class Iteration(Event, tag="iteration", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step of a scheduler, or a range of a trace that marks one.

    `anchor`: the range's name as the trace has it (`ProfilerStep#7`, `execute_context_…`): such a trace-local iteration
    links by `step_range_anchor`, one without by `same_thread_range`. A range names its `thread_id` and the attachment
    of its trace, and both of its times.
    """

    iteration_ref: Ref
    batch_ref: Ref | None = None
    start_ns: Nanoseconds | None = None
    end_ns: Nanoseconds | None = None
    thread_id: Text | None = None
    trace_attachment_id: Text | None = None
    anchor: Text | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_order(self.start_ns, self.end_ns)


class Stage(Event, tag="stage", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A named part of a request or of an iteration: queue, prefill, decode."""

    stage_ref: Ref
    name: Text
    request_ref: Ref | None = None
    iteration_ref: Ref | None = None
    start_ns: Nanoseconds | None = None
    end_ns: Nanoseconds | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    kv_bytes: Whole | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_order(self.start_ns, self.end_ns)
        if self.request_ref is None and self.iteration_ref is None:
            raise ValueError("a stage belongs to a request or to an iteration")


class Membership(Event, tag="membership", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request took part in an iteration; `role` is the source's word (prefill, decode)."""

    request_ref: Ref
    iteration_ref: Ref
    role: Text
    attempt_ref: Ref | None = None
    tokens: Whole | None = None
    kv_bytes: Whole | None = None


class Activity(Event, tag="activity", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A piece of work on a device or a host thread, as its collector told it; it never changes (IN-7).

    `iteration_ref` is the collector's own claim, and given if and only if `attribution` is linked. `correlation_scope`
    names inside what correlation ids are unique (a trace). `thread_id`: the thread of a launch or of host work.
    `device_id`: the device by its trace's name for it, its only name where the context has no `device_uuid`.
    `intervals`: `(offset from start_ns, duration)`, sorted and apart, of work that was busy only then.
    """

    activity_ref: Ref
    kind: Text
    domain: Domain
    attribution: Attribution = Attribution.UNRESOLVED
    name: Text | None = None
    iteration_ref: Ref | None = None
    correlation_scope: Ref | None = None
    trace_attachment_id: Text | None = None
    device_id: Text | None = None
    runtime_correlation_id: str | None = None
    cuda_correlation_id: str | None = None
    thread_id: Text | None = None
    stream_id: Text | None = None
    graph_id: Text | None = None
    start_ns: Nanoseconds | None = None
    end_ns: Nanoseconds | None = None
    intervals: tuple[Interval, ...] = ()

    def __post_init__(self) -> None:
        if self.metadata:  # the check of every event, spelled out: there are millions of these
            super().__post_init__()
        start_ns, end_ns = self.start_ns, self.end_ns
        if start_ns is not None and end_ns is not None and end_ns < start_ns:
            _require_order(start_ns, end_ns)
        if (self.iteration_ref is None) != (self.attribution is Attribution.UNRESOLVED):
            raise ValueError("an activity is linked if and only if it names an iteration")
        if self.intervals:
            _require_apart(self.intervals, self.start_ns, self.end_ns)


class Capabilities(
    Event, tag="capabilities", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a component can, is set to, and did collect (IN-20)."""

    component: Text
    available: bool
    supported: tuple[Text, ...] = ()
    enabled: tuple[Text, ...] = ()
    collected: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for names in (self.supported, self.enabled, self.collected):
            if len(set(names)) != len(names):
                raise ValueError("a capability is listed twice")
        if not set(self.collected) <= set(self.enabled) <= set(self.supported):
            raise ValueError("collected must be enabled, and enabled must be supported")
        if self.supported and not self.available:
            raise ValueError("an unavailable component has no capabilities")


class ClockAlignment(
    Event, tag="clock_alignment", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """`to = from + offset_ns`, within `uncertainty_ns`, for times of `from` in the closed validity; None: no bound."""

    from_clock_domain: Text
    to_clock_domain: Text
    offset_ns: Nanoseconds
    uncertainty_ns: Whole
    valid_from_ns: Nanoseconds | None = None
    valid_to_ns: Nanoseconds | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_order(self.valid_from_ns, self.valid_to_ns)
        if self.from_clock_domain == self.to_clock_domain:
            raise ValueError("a clock is not aligned with itself")


class Link(Event, tag="link", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the rule `rule` derives of one activity: its iteration and by what, or why none (IN-7).

    `evidence`: ids of the events it rests on; `supersedes`: ids of links of the same activity that it takes the place
    of. `candidates` holds the first few of `num_candidates`.
    """

    activity_ref: Ref
    rule: Text
    iteration_ref: Ref | None = None
    basis: Basis | None = None
    reason: LinkReason | None = None
    candidates: tuple[Ref, ...] = ()
    num_candidates: Whole = 0
    evidence: tuple[Text, ...] = ()
    supersedes: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.iteration_ref is None) != (self.basis is None) or (self.basis is None) == (self.reason is None):
            raise ValueError("a link has an iteration with its basis, or a reason")


class Loss(Event, tag="loss", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a source lost, or says of its losses. `count` None: the source gives no number.

    `source`: the attachment or file that it is about. `what`: what was lost (`activity records`, `bytes`).
    """

    source: Text
    what: Text
    reason: LossReason
    status: LossStatus = LossStatus.REPORTED
    count: Whole | None = None
    first_byte: Whole | None = None
    num_bytes: Whole | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.status is LossStatus.ZERO_REPORTED) != (self.count == 0):
            raise ValueError("a loss of 0 is zero_reported, and only that")
        if self.status is LossStatus.NOT_REPORTED and self.count is not None:
            raise ValueError("what is not reported has no count")
        if (self.first_byte is None) != (self.num_bytes is None):
            raise ValueError("a byte range has a first byte and a number of bytes")


Observation = Artifact | Request | Iteration | Stage | Membership | Activity | Capabilities | ClockAlignment | Loss
AnyEvent = Observation | Link


def _require_order(start_ns: int | None, end_ns: int | None) -> None:
    if start_ns is not None and end_ns is not None and end_ns < start_ns:
        raise ValueError(f"the end, {end_ns} ns, lies before the start, {start_ns} ns")


def _require_apart(intervals: tuple[Interval, ...], start_ns: int | None, end_ns: int | None) -> None:
    if start_ns is None or end_ns is None:
        raise ValueError("busy intervals need both times of their activity")
    free_from = 0
    for offset_ns, duration_ns in intervals:
        if offset_ns < free_from:
            raise ValueError("busy intervals are sorted and do not overlap")
        free_from = offset_ns + duration_ns
    if free_from > end_ns - start_ns:
        raise ValueError("a busy interval lies outside its activity")
