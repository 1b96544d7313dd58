"""Which iteration an activity belongs to, by ids and threads, never by time alone: the rule `link/1` (IN-7, IN-24).

Pure, and the same whatever the order of events: the tables are filled from all of them first. What is derived is a
record of its own; the activities stay what their collectors told.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from paritrace.evidence.ids import Ref
from paritrace.inference.columns import UNKNOWN, Codes
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.execution_ranges import iteration_named
from paritrace.inference.identities import derived_id
from paritrace.inference.keyed_columns import KeyedColumns
from paritrace.inference.link_keys import Key, keys_of, launch_keys_of, why_no_key
from paritrace.inference.ranges import Range, ThreadRanges
from paritrace.inference.records import Activity, AnyEvent, Iteration, Link
from paritrace.inference.vocabulary import Basis, Domain, LinkReason

RULE = "link/1"
PRODUCER = "paritrace"
MOST_CANDIDATES = 16  # listed in a link; their number is always there
HOST_DOMAINS = (Domain.RUNTIME, Domain.CPU)


class Origin(NamedTuple):
    """Where a launch was made: its process, its clock, its thread."""

    pid: int | None
    clock_domain: str
    thread: str | None


class Launch(NamedTuple):
    """What is needed of a launch record."""

    event_id: str
    origin: Origin
    start_ns: int | None
    end_ns: int | None


class Found(NamedTuple):
    """What the rule says of one activity."""

    iteration: Ref | None
    basis: Basis | None
    reason: LinkReason | None
    candidates: tuple[Ref, ...] = ()
    evidence: tuple[str, ...] = ()
    detail: str = ""


Thread = tuple[str, str, str | None, str, int | None, str | None]  # run, session, trace, clock, pid, thread


class LinkTables:
    """What all events say together: iterations, ranges by thread, launches and claims by key.

    Launches and claims, of which there may be as many as activities, are columns: some 100 bytes for each.
    """

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.iterations: dict[Ref, str] = {}  # -> the smallest id of an event that reports it
        self._claims = KeyedColumns(2)  # device, iteration
        self._devices: Codes[str | None] = Codes()
        self._claimed: Codes[Ref] = Codes()
        self._launches = KeyedColumns(3)  # origin, start, end
        self._origins: Codes[Origin] = Codes()
        # Of keys that several launches or claims share: to go through them anew for each activity would be quadratic.
        self._several: dict[object, tuple[int, tuple[str, ...]]] = {}  # how many launches, and the first of them
        self._said: dict[object, tuple[dict[Ref, str], dict[Ref, str]]] = {}  # by claims of the device, and of others
        self._anchored: set[Ref] = set()
        self._named: dict[Ref, Ref] = {}  # a range -> the iteration of an engine that its name gives
        self._refs: list[Ref] = []
        ranges: dict[Thread, dict[tuple[int, int, Ref], Range]] = {}
        for event in events:
            if isinstance(event, Iteration):
                self._take_iteration(event, ranges)
            elif isinstance(event, Activity):
                self._take_activity(event)
        self._ranges = {thread: ThreadRanges(found.values()) for thread, found in ranges.items()}
        self._by_origin, self._by_claim = self._origins.values, self._claimed.values

    def found(self, activity: Activity) -> Found:
        """Return the iteration of an activity with its basis, or the reason why it has none."""
        if activity.iteration_ref is not None:
            return self._of_claim(activity, activity.iteration_ref)
        by_id = self._by_id(activity)
        if by_id is not None and by_id.reason is not LinkReason.DEVICE_DIFFERS:
            return by_id
        if activity.domain in HOST_DOMAINS and activity.thread_id is not None:
            return self._by_range(activity, _launch(activity))
        by_launch = self._by_launch(activity)
        return by_launch if by_id is None or by_launch.iteration is not None else by_id

    def _take_iteration(self, event: Iteration, ranges: dict[Thread, dict[tuple[int, int, Ref], Range]]) -> None:
        ref, known = event.iteration_ref, self.iterations.get(event.iteration_ref)
        self.iterations[ref] = event.event_id if known is None else min(known, event.event_id)
        if event.anchor is not None:
            self._anchored.add(ref)
            named = iteration_named(event.anchor)
            if named is not None:
                self._named[ref] = named
        if event.thread_id is None or event.start_ns is None or event.end_ns is None:
            return
        facts = event.context.facts
        thread = (
            facts.run_id,
            facts.session_id,
            event.trace_attachment_id,
            facts.clock_domain,
            facts.pid,
            event.thread_id,
        )
        of_thread, key = ranges.setdefault(thread, {}), (event.start_ns, event.end_ns, ref)
        if key not in of_thread:
            of_thread[key] = Range(event.start_ns, event.end_ns, len(self._refs))
            self._refs.append(ref)

    def _take_activity(self, event: Activity) -> None:
        if event.iteration_ref is not None:
            for key, number, device in keys_of(event):
                row = self._devices[device], self._claimed[event.iteration_ref]
                self._claims.add(key, number, row, event.event_id)
        if event.domain is Domain.RUNTIME:
            launch = _launch(event)
            start, end = (UNKNOWN if one is None else one for one in (launch.start_ns, launch.end_ns))
            for place, number in launch_keys_of(event):
                self._launches.add(place, number, (self._origins[launch.origin], start, end), event.event_id)

    def _of_claim(self, activity: Activity, claimed: Ref) -> Found:
        reported = self.iterations.get(claimed)
        if reported is None:
            return Found(None, None, LinkReason.DANGLING_ITERATION, (claimed,), (activity.event_id,))
        return Found(claimed, Basis.EXACT_ID, None, (), (activity.event_id, reported))

    def _by_id(self, activity: Activity) -> Found | None:
        """Return what activities that name an iteration say for its keys, None where none has one of them."""
        by_key: list[dict[Ref, str]] = []
        elsewhere: dict[Ref, str] = {}
        for key, number, device in keys_of(activity):
            here, other = self._claims_of(key, number, device)
            for ref, event_id in other.items():
                elsewhere[ref] = min(event_id, elsewhere.get(ref, event_id))
            by_key.append(here)
        said = [claims for claims in by_key if claims]
        if not said:
            return _undecided(activity, LinkReason.DEVICE_DIFFERS, elsewhere) if elsewhere else None
        together = {ref: event for claims in said for ref, event in claims.items()}
        if len(together) > 1:
            disagree = len(said) > 1 and not set(said[0]) & set(said[1])
            return _undecided(activity, LinkReason.IDS_DISAGREE if disagree else LinkReason.AMBIGUOUS, together)
        (ref, event_id), detail = next(iter(together.items())), _device_detail(activity)
        if ref not in self.iterations:
            return Found(None, None, LinkReason.DANGLING_ITERATION, (ref,), (activity.event_id, event_id))
        return Found(ref, Basis.EXACT_ID, None, (), (activity.event_id, event_id, self.iterations[ref]), detail)

    def _claims_of(self, key: Key, number: str, device: str | None) -> tuple[dict[Ref, str], dict[Ref, str]]:
        """Return what claims under a key say of the activity's device, and of others; gone through once for all."""
        known = self._said.get((key, number, device)) if self._said else None
        if known is not None:
            return known
        here: dict[Ref, str] = {}
        elsewhere: dict[Ref, str] = {}
        own, num = self._devices.known(device), 0
        for event_id, (of_device, claimed) in self._claims.of(key, number):
            told, ref = here if of_device == own else elsewhere, self._by_claim[claimed]
            told[ref] = min(event_id, told.get(ref, event_id))
            num += 1
        if num > 1:
            self._said[key, number, device] = here, elsewhere
        return here, elsewhere

    def _by_launch(self, activity: Activity) -> Found:
        why = why_no_key(activity)
        if why is not None:
            return _undecided(activity, why)
        pid, keys = activity.context.facts.pid, tuple(launch_keys_of(activity))
        if self._several and (keys, pid) in self._several:
            return _of_several(activity, *self._several[keys, pid])
        launches = {
            launch.event_id: launch
            for place, number in keys
            for launch in self._launches_of(place, number)
            if pid in (None, launch.origin.pid)
        }
        if not launches:
            facts = activity.context.facts
            if activity.trace_attachment_id is None and (facts.host is None or facts.pid is None):
                return _undecided(activity, LinkReason.NO_SCOPE)
            in_trace = activity.trace_attachment_id is not None
            return _undecided(activity, LinkReason.NO_LAUNCH_RECORD if in_trace else LinkReason.NO_CANDIDATE)
        if len(launches) > 1:
            several = self._several[keys, pid] = len(launches), tuple(sorted(launches)[:MOST_CANDIDATES])
            return _of_several(activity, *several)
        return self._by_range(activity, next(iter(launches.values())))

    def _launches_of(self, place: Key, number: str) -> Iterator[Launch]:
        for event_id, (origin, start, end) in self._launches.of(place, number):
            times = (None if one == UNKNOWN else one for one in (start, end))
            yield Launch(event_id, self._by_origin[origin], *times)

    def _by_range(self, activity: Activity, launch: Launch) -> Found:
        facts = activity.context.facts
        thread = (
            facts.run_id,
            facts.session_id,
            activity.trace_attachment_id,
            launch.origin.clock_domain,
            launch.origin.pid,
            launch.origin.thread,
        )
        ranges = self._ranges.get(thread)
        evidence = tuple(dict.fromkeys((activity.event_id, launch.event_id)))
        if ranges is None or launch.start_ns is None or launch.end_ns is None or launch.origin.thread is None:
            return Found(None, None, LinkReason.OUTSIDE_EVERY_RANGE, (), evidence)
        refs = sorted(self._refs[number] for number in ranges.holding(launch.start_ns, launch.end_ns))
        if not refs:
            return Found(None, None, LinkReason.OUTSIDE_EVERY_RANGE, (), evidence)
        if len(refs) > 1:
            return Found(None, None, LinkReason.AMBIGUOUS, tuple(refs), evidence)
        named = self._named.get(refs[0])
        if named in self.iterations:
            told = (*evidence, self.iterations[refs[0]], self.iterations[named])
            return Found(named, Basis.SAME_THREAD_RANGE, None, (), told)
        basis = Basis.STEP_RANGE_ANCHOR if refs[0] in self._anchored else Basis.SAME_THREAD_RANGE
        return Found(refs[0], basis, None, (), (*evidence, self.iterations[refs[0]]))


def link(events: Iterable[AnyEvent], *, tables: LinkTables | None = None) -> Iterator[Link]:
    """Yield a link for each activity: what iteration it belongs to and by what, or why that is not known.

    Args:
        events: all of an artifact's, in any order; gone through twice unless `tables` of them are given.
    """
    known = LinkTables(events) if tables is None else tables
    for event in events:
        if isinstance(event, Activity):
            yield link_of(event, known)


def link_of(activity: Activity, tables: LinkTables, /, *, supersedes: tuple[str, ...] = ()) -> Link:
    """Return the link of one activity."""
    facts = activity.context.facts
    context = _context(facts.run_id, facts.session_id)
    return link_record(activity, tables.found(activity), context=context, supersedes=supersedes)


def link_record(activity: Activity, found: Found, *, context: Context, supersedes: tuple[str, ...] = ()) -> Link:
    """Return a link as a record, its id made from its content."""
    candidates = found.candidates[:MOST_CANDIDATES]
    content = (found.iteration, found.basis, found.reason, *candidates, found.evidence, found.detail, supersedes)
    facts = context.facts
    return Link(
        context=context,
        event_id=derived_id("link", facts.run_id, activity.activity_ref, RULE, len(found.candidates), *content),
        activity_ref=activity.activity_ref,
        rule=RULE,
        iteration_ref=found.iteration,
        basis=found.basis,
        reason=found.reason,
        candidates=candidates,
        num_candidates=len(found.candidates),
        evidence=found.evidence,
        supersedes=supersedes,
        metadata={"detail": found.detail} if found.detail else {},
    )


def _undecided(activity: Activity, reason: LinkReason, candidates: Iterable[Ref] = ()) -> Found:
    return Found(None, None, reason, tuple(sorted(candidates)), (activity.event_id,))


def _of_several(activity: Activity, num: int, first: tuple[str, ...]) -> Found:
    return Found(None, None, LinkReason.AMBIGUOUS, (), (activity.event_id, *first), f"{num} launches")


def _device_detail(activity: Activity) -> str:
    return "" if activity.context.facts.device_uuid is not None else "matched without a device uuid on either side"


def _launch(event: Activity) -> Launch:
    facts = event.context.facts
    origin = Origin(facts.pid, facts.clock_domain, event.thread_id)
    return Launch(event.event_id, origin, event.start_ns, event.end_ns)


@lru_cache(maxsize=64)
def _context(run_id: str, session_id: str) -> Context:
    """Return the context of links: derived from what was observed, of no host and no time."""
    return Context(
        ContextFacts(
            run_id=run_id,
            session_id=session_id,
            producer_id=PRODUCER,
            source="paritrace infer link",
            source_version=RULE,
            clock_domain="untimed",
            clock_kind=ClockKind.WALL,
            collection_mode=CollectionMode.PASSIVE,
            provenance=Provenance.OBSERVED,
        )
    )
