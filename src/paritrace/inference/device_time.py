"""Device time of an artifact: elapsed, summed, busy; three numbers, for each device and clock apart (IN-9, IN-26)."""

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.busy import Spans, busy, busy_of_owners, union_ns
from paritrace.inference.context import ClockKind
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.linking import LinkTables
from paritrace.inference.records import Activity, AnyEvent, Iteration, Loss
from paritrace.inference.result import DeviceTime, IterationTime, IterationWork, LossLine
from paritrace.inference.vocabulary import ActivityKind, Domain

_NOBODY = -1


class DeviceClock(Struct, frozen=True, order=True):
    """A device as far as it is known, and the clock its work was measured by."""

    device: str
    clock_domain: str
    clock_kind: str


class Account(Struct, frozen=True):
    """`unmeasured_without_device`: device work of which not even the device is known. Nothing is bounded here."""

    devices: tuple[DeviceTime, ...]
    unmeasured_without_device: int
    iterations: tuple[IterationTime, ...]
    loss: tuple[LossLine, ...]


def account(events: Iterable[AnyEvent], *, tables: LinkTables | None = None) -> Account:
    """Return what devices did, and for whom.

    Who an activity belongs to is what the rule of `linking` says. An activity without both times, or a graph's row
    whose times are 0 (not collected), is unmeasured and counted. Busy intervals count in place of their span.

    Args:
        events: all of an artifact's, each once, in any order; gone through twice unless `tables` of them are given.
    """
    known = LinkTables(events) if tables is None else tables
    taking = _Taking(known)
    for event in events:
        if isinstance(event, Activity) and event.domain is Domain.GPU:
            taking.take_work(event)
        elif isinstance(event, Iteration):
            taking.take_iteration(event)
        elif isinstance(event, Loss):
            taking.losses.append(loss_line(event))
    return taking.finished()


def device_of(activity: Activity) -> DeviceClock | None:
    """Return the device and clock of an activity; a device without UUID is one of its trace or host alone."""
    facts = activity.context.facts
    if facts.device_uuid is not None:
        device = facts.device_uuid
    elif activity.device_id is not None:
        device = f"{activity.trace_attachment_id or facts.host or facts.producer_id}#{activity.device_id}"
    else:
        return None
    return DeviceClock(device=device, clock_domain=facts.clock_domain, clock_kind=facts.clock_kind.value)


class _OfDevice:
    """What is counted of one device and clock while events go by."""

    def __init__(self) -> None:
        self.spans, self.fine = Spans(), Spans()  # all work; what is finer than a graph as a whole
        self.kinds: Counter[str] = Counter()
        self.activities = self.unlinked = self.unmeasured = self.graph_level = 0
        self.per_owner: Counter[int] = Counter()


class _Taking:
    def __init__(self, tables: LinkTables) -> None:
        self.losses: list[LossLine] = []
        self._tables = tables
        self._devices: dict[DeviceClock, _OfDevice] = {}
        self._without_device = 0
        self._owners: dict[Ref, int] = {}
        self._refs: list[Ref] = []
        self._elapsed: dict[Ref, int | Gap[InferenceGap]] = {}

    def take_iteration(self, event: Iteration) -> None:
        self._elapsed[event.iteration_ref] = _elapsed(event)

    def take_work(self, event: Activity) -> None:
        key = device_of(event)
        if key is None:
            self._without_device += 1
            return
        of = self._devices.setdefault(key, _OfDevice())
        owner = self._owner(self._tables.found(event).iteration)
        of.activities += 1
        of.kinds[event.kind] += 1
        of.unlinked += owner == _NOBODY
        coarse = event.kind == ActivityKind.GRAPH_LEVEL.value
        of.graph_level += coarse
        if event.start_ns is None or event.end_ns is None or (coarse and event.start_ns == event.end_ns == 0):
            of.unmeasured += 1
            return
        of.per_owner[owner] += 1
        whole = ((0, event.end_ns - event.start_ns),)
        for offset_ns, duration_ns in event.intervals or whole:
            begin = event.start_ns + offset_ns
            of.spans.add(begin, begin + duration_ns, owner)
            if not coarse:
                of.fine.add(begin, begin + duration_ns, owner)

    def finished(self) -> Account:
        work: dict[Ref, list[IterationWork]] = {}
        devices = [_device_time(key, of) for key, of in sorted(self._devices.items())]
        for key, of in sorted(self._devices.items()):
            for owner, (time, _) in busy_of_owners(*of.spans.columns()).items():
                if owner != _NOBODY:
                    one = IterationWork(
                        device=key.device,
                        clock_domain=key.clock_domain,
                        busy_ns=time.busy_ns,
                        summed_ns=time.summed_ns,
                        activities=of.per_owner[owner],
                    )
                    work.setdefault(self._refs[owner], []).append(one)
        iterations = [
            IterationTime(iteration=ref, elapsed_ns=elapsed, work=tuple(work.get(ref, ())))
            for ref, elapsed in sorted(self._elapsed.items(), key=lambda one: _place(one[0]))
        ]
        losses = sorted(self.losses, key=lambda one: (one.source, one.what, one.reason.value, str(one.count)))
        return Account(tuple(devices), self._without_device, tuple(iterations), tuple(losses))

    def _owner(self, ref: Ref | None) -> int:
        if ref is None:
            return _NOBODY
        number = self._owners.setdefault(ref, len(self._refs))
        if number == len(self._refs):
            self._refs.append(ref)
        return number


def _place(ref: Ref) -> tuple[str, list[tuple[str, int, str]], str]:
    """Where an iteration stands among others: by producer, and of one producer 2 before 10."""
    parts = [*re.split("([0-9]+)", ref.id), ""]
    numbers = [digits.lstrip("0") for digits in parts[1::2]]
    counted = [(before, len(number), number) for before, number in zip(parts[::2], numbers, strict=True)]
    return ref.producer_id, counted, ref.id


def _device_time(key: DeviceClock, of: _OfDevice) -> DeviceTime:
    starts, ends, owners = of.spans.columns()
    whole = busy(starts, ends)
    fine_starts, fine_ends, _ = of.fine.columns()
    nobodys = owners == _NOBODY
    return DeviceTime(
        device=key.device,
        clock_domain=key.clock_domain,
        clock_kind=key.clock_kind,
        busy_ns=whole.busy_ns,
        summed_ns=whole.summed_ns,
        graph_level_ns=whole.busy_ns - union_ns(fine_starts, fine_ends),
        activities=of.activities,
        graph_level=of.graph_level,
        unlinked=of.unlinked,
        unlinked_busy_ns=union_ns(starts[nobodys], ends[nobodys]),
        unmeasured=of.unmeasured,
        by_kind=dict(sorted(of.kinds.items())),
    )


def _elapsed(event: Iteration) -> int | Gap[InferenceGap]:
    if event.start_ns is None or event.end_ns is None:
        return Gap(InferenceGap.NO_TIMES)
    if event.context.facts.clock_kind is not ClockKind.MONOTONIC:
        return Gap(InferenceGap.NOT_MONOTONIC, event.context.facts.clock_domain)
    return event.end_ns - event.start_ns


def loss_line(event: Loss) -> LossLine:
    """Return a loss as a line of a document."""
    count: int | Gap[InferenceGap] = Gap(InferenceGap.COUNT_UNKNOWN) if event.count is None else event.count
    return LossLine(source=event.source, what=event.what, reason=event.reason, status=event.status, count=count)
