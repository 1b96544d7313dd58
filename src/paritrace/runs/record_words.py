"""A record's end in words: what ended it and on what evidence, what was left, what it used. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.process.resources import SCOPE
from paritrace.process.stop_facts import Left, Signalled, Stop, StopCause, StopFacts
from paritrace.runs.record_ends import End, RecordStatus
from paritrace.runs.stop import bracketing_rise, exit_words, signal_name

if TYPE_CHECKING:
    from paritrace.process.samples import SampleSummary
    from paritrace.runs.death import DeathPage
    from paritrace.runs.record_reading import ReadRecord


def end_words(end: End) -> tuple[str, ...]:
    """Return one line for each thing to say; the first one has the cause and the evidence for it."""
    return (_headline(end), *_beside(end.facts), *_resources(end))


def record_words(read: "ReadRecord") -> Iterator[str]:
    """Yield a record as a reader may state it: who was run, its state, how it ended, what else there is."""
    yield f"record {read.name}: {_who(read)}{read.words}"
    if read.end is not None:
        yield from (f"  {line}" for line in end_words(read.end))
    yield from (f"  {line}" for line in (*read.remarks, *read.problems))


def death_words(page: "DeathPage") -> Iterator[str]:
    """Yield the page at death: who stopped first and why we say so, each rank's last signs, what was in flight."""
    yield f"at its end: {page.first}"
    yield from (f"  {line}" for line in page.why)
    for one in page.ranks:
        step = "no step ended" if isinstance(one.last_step, Gap) else f"last step that ended {one.last_step}"
        call = "no call recorded" if isinstance(one.last_call, Gap) else f"last recorded call {one.last_call}"
        yield f"  rank {one.rank}: {step}; {call}"
        yield from (f"    {frame}" for frame in (() if isinstance(one.stack, Gap) else one.stack))
    yield from (f"  in flight: {line}" for line in page.in_flight or ("nothing that was recorded",))
    yield from (f"  {source.name}: {source.state.value}: {source.detail}" for source in page.sources)


class Told(Struct, frozen=True):
    """What one record, or the page at death, says: a headline and what stands below it."""

    headline: str
    lines: tuple[str, ...]


def ends_told(records: "Sequence[ReadRecord]", death: "DeathPage | None", *, most: int) -> tuple[Told, ...]:
    """Return what the first `most` records say of their ends, how many are left out, and the page at death."""
    return told_of(
        (tuple(record_words(one)) for one in records[:most]), num_left_out=max(0, len(records) - most), death=death
    )


def told_of(records: Iterable[tuple[str, ...]], *, num_left_out: int, death: "DeathPage | None") -> tuple[Told, ...]:
    """Return the lines of records, how many of them are left out, and the page at death."""
    told = [_told(iter(words)) for words in records]
    if num_left_out:
        told.append(Told(f"and {num_left_out:,} more records", ()))
    return (*told, *(() if death is None else (_told(death_words(death)),)))


def _told(words: Iterator[str]) -> Told:
    headline, *lines = words
    return Told(headline, tuple(line.removeprefix("  ") for line in lines))


def _who(read: "ReadRecord") -> str:
    if read.start is not None:
        names, at = read.start.names, read.start.time
        agent = "" if isinstance(names.agent, Gap) else f" {names.agent}"
        return f"{names.adapter_kind.value}{agent}, begun {at}; "
    if read.invocation is not None:
        return f"{read.invocation.adapter_kind.value}, begun {read.invocation.started}; "
    return ""


def cause_words(stop: Stop | None) -> str:
    """Return the cause and what it rests on, without times."""
    if stop is None:
        return "succeeded"
    told = "" if stop.exit is None else f", {exit_words(stop.exit)}"
    match stop.cause:
        case StopCause.AGENT_EXHAUSTED_BUDGET:
            forced = "killed after the grace" if stop.force_stopped else "told to end"
            limit, used = stop.timeout_seconds or 0.0, stop.used_seconds or 0.0
            return f"{stop.cause.value}: our timeout of {limit:g} s fired after {used:.3f} s; {forced}{told}"
        case StopCause.SANDBOX_FAILED:
            return f"{stop.cause.value}: out-of-memory kill counted in a scope that is this run's alone{told}"
        case StopCause.UNCLASSIFIED:
            return f"{stop.cause.value}{told}; what caused it is not known"
        case _:
            return f"{stop.cause.value}{told}"


def _headline(end: End) -> str:
    code = "" if end.error is None else f" [{end.error.code}]"
    beside = "" if end.stop is None or end.stop.oom_in_scope is None else f"; memory kill: {end.stop.oom_in_scope}"
    return f"{_cause(end)}{code}, {_when(end)}{beside}"


def _cause(end: End) -> str:
    wait, passed_on = end.facts.wait, _passed_on(end.facts)
    if end.status is RecordStatus.CANCELLED and passed_on:
        told = "" if wait is None else f"; it ended with {exit_words(wait)}"
        return f"cancelled: {' and '.join(map(signal_name, passed_on))} came to us and was passed on{told}"
    if end.stop is not None and isinstance(wait, Signalled) and wait.signal in passed_on:
        return f"{end.stop.cause.value}, {exit_words(wait)}, which came to us and was passed on"
    return cause_words(end.stop)


def _when(end: End) -> str:
    """After a timeout the end is another time than that of our timer (SC-1)."""
    facts = end.facts
    if facts.timer is None or facts.timer.fired_ns is None or facts.host_ended_ns is None:
        return f"after {end.elapsed_seconds:.3f} s"
    return f"it ended {(facts.host_ended_ns - facts.timer.set_ns) / 1e9:.3f} s after its start"


def _passed_on(facts: StopFacts) -> list[int]:
    return list(dict.fromkeys(one.signal for one in facts.sent if one.why == "forwarded"))


def _beside(facts: StopFacts) -> Iterator[str]:
    rise = bracketing_rise(facts)
    if rise is not None:
        scope = rise.after.scope
        by = rise.after.oom_kill - rise.before.oom_kill
        yield (
            f"{rise.after.source}: oom_kill +{by} in {scope.version.value} {scope.path}"
            f" between two reads around the end; exclusive: {facts.exclusivity.value}"
        )
        if not facts.victims:
            yield "  which process was killed is not known: neither a wait status nor the kernel's log names it"
    for victim in facts.victims if rise is not None else ():
        yield f"  victim: process {victim.pid} ({victim.source.value}: {victim.detail})"
    for killer in facts.killers:
        yield f"another killer left a trace: {killer}"
    for stopped in facts.stopped:
        yield f"it was stopped by {signal_name(stopped.signal)} meanwhile"
    if passed_on := _passed_on(facts):
        yield f"signals passed on to it: {', '.join(map(signal_name, passed_on))}"
    for left in facts.left:
        yield f"left behind: {_left(left)}"
    yield from facts.remarks


def _left(left: Left) -> str:
    holds = f"; holds {' and '.join(left.holds)}" if left.holds else ""
    return f"process {left.pid} ({left.name}), {left.relation}{holds}"


def _resources(end: End) -> Iterator[str]:
    if not isinstance(end.waited_cpu_seconds, Gap):
        yield f"CPU {end.waited_cpu_seconds:.3f} s: its own and of what it waited for"
    if end.resources is not None:
        memory, count = end.resources.resident_memory_bytes, end.resources.process_count
        told = memory.gap.value if isinstance(memory, Gap) else f"{memory:,} bytes"
        yield f"before it was ended: {SCOPE}: {count} processes, sum of resident memory {told}"
    if end.sampled is not None:
        yield _sampled(end.sampled)


def _sampled(sampled: "SampleSummary") -> str:
    peak, covered = sampled.sampled_peak_bytes, sampled.covered_fraction
    share = f"covered: {covered.gap.value}" if isinstance(covered, Gap) else f"{covered:.0%} of the time covered"
    if isinstance(peak, Gap):
        return f"no sample could be taken of its memory: {peak.gap.value}"
    return f"sampled_peak {peak:,} bytes of resident memory (shared pages once per process); {share}"
