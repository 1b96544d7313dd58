"""A session's status and replies in words for people."""

from collections.abc import Mapping
from typing import Any

from paritrace.clock import rfc3339
from paritrace.session.api_records import Event
from paritrace.session.bounds import Bound
from paritrace.session.commands import Kind, Reply, Result
from paritrace.session.engines.seam import TurnedAway
from paritrace.session.journal import Line
from paritrace.session.metrics import KeptMetrics, Sample
from paritrace.session.status import RankView, Status


def progress_words(status: Status, /) -> str:
    """Return the status in one line."""
    told = [f"{status.state.value}" + ("" if status.agreed else " (ranks differ)")]
    if status.target is not None:
        told.append(f"step {status.step} of {status.target}")
    elif status.step is not None:
        told.append(f"step {status.step}")
    if status.phase and status.phase not in {"ready", status.state.value}:
        told.append(status.phase)
    eta = status.progress.get("eta_seconds")
    if isinstance(eta, int | float) and status.target is not None:
        told.append(f"about {eta:.0f} s left")
    told += [f"{name} {_figure(value)}" for name, value in list(status.metrics.items())[:4]]
    return ", ".join(told)


def trouble_words(status: Status, /) -> str:
    """Return what ended a session's work, a line for each reason."""
    lines = [f"error; root cause: {status.root_cause or 'is being looked for'}"]
    lines += [
        f"    - {'coordinator' if one.rank < 0 else f'rank {one.rank}'}: {one.words} [{one.code}]"
        for one in status.error
    ]
    if status.failure_report is not None:
        lines.append(f"    report: {status.failure_report}")
    return "\n".join(lines)


def status_words(status: Status, /) -> str:
    """Return the whole status for a terminal."""
    lines = [
        f"session {status.session_id}, generation {status.generation}, {status.world_size} ranks by {status.engine}",
        progress_words(status),
        f"command epoch {status.epoch}, configuration revision {status.config_revision}, {status.queued} commands wait",
    ]
    if status.control != "full":
        lines.append(f"control {status.control}")
    if status.command is not None:
        lines.append(f"under way: {status.command['kind']} ({status.command['round']}), id {status.command['id']}")
        if status.command["kind"] == Kind.CLOSE:
            lines.append("  it waits for the ranks: `paritrace session close DIR --now` does not")
    if status.laggard is not None:
        lines.append(f"laggard: rank {status.laggard}")
    if status.coordinator_operation is not None:
        lines.append(status.coordinator_operation)
    if status.checkpoint_state is not None:
        lines.append(f"identical to {status.checkpoint_state.path} (step {status.checkpoint_state.step})")
    lines += [_rank_words(view) for view in status.ranks]
    lines += [_turned_away_words(one) for one in status.turned_away]
    lines += [f"warning: {words}" for words in status.warnings]
    return "\n".join(lines + ([trouble_words(status)] if status.error else []))


def reply_words(reply: Reply, /) -> str:
    """Return what became of a command, with all reasons of all ranks."""
    at = "" if reply.step is None else f" at step {reply.step}"
    target = reply.facts.get("target")
    if reply.result is Result.APPLIED and isinstance(target, int) and target != reply.step:
        at += f", goes on to step {target}"
    lines = [f"{reply.kind.value}: {reply.result.value}{at}"]
    lines += [
        f"    - {'coordinator' if one.rank < 0 else f'rank {one.rank}'}: {one.words} [{one.code}]"
        for one in reply.reasons
    ]
    lines += [f"    note: {note}" for note in reply.notes]
    if reply.result is Result.UNKNOWN:
        lines.append(f"    ask again: paritrace session reconcile DIR {reply.command_id}")
    return "\n".join(lines)


def _rank_words(view: RankView) -> str:
    state = "silent" if view.state is None else view.state.value
    told = [f"  rank {view.rank}: {state}, step {view.step}, epoch {view.epoch}"]
    if view.pid is not None:
        told.append(f"pid {view.pid}")
    if view.heartbeat_age_seconds is not None:
        told.append(f"heard {view.heartbeat_age_seconds:.1f} s ago")
    return ", ".join([*told, *view.findings])


def _turned_away_words(one: TurnedAway) -> str:
    who = "a process" if one.rank is None else f"a process that said it was rank {one.rank}"
    times = "" if one.times == 1 else f", {one.times} times"
    return f"turned away: {who}, from {one.address}{times}: {one.why}"


def _figure(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def bounds_words(bounds: tuple[Bound, ...], /) -> str:
    """Return every wait with its reason."""
    return "\n".join(f"{one.name:<16} {one.seconds:>8g} s  {one.reason}" for one in bounds)


def event_words(event: Event, /) -> str:
    """Return an event in one line."""
    return f"{event.number:>6} {rfc3339(event.unix_ns)} {event.what} {_facts(event.facts)}"


def line_words(line: Line, /) -> str:
    """Return a line of the journal in one line."""
    return f"{line.sequence:>6} {rfc3339(line.unix_ns)} generation {line.generation} {line.what} {_facts(line.facts)}"


def sample_words(sample: Sample, /) -> str:
    """Return a sample of metrics in one line."""
    told = [f"{name} {_figure(value)}" for name, value in sample.metrics.items()]
    told += [f"{sample.left_out} not kept"] if sample.left_out else []
    where = f"generation {sample.generation} revision {sample.config_revision} step {sample.step}"
    return f"{sample.number:>6} {rfc3339(sample.unix_ns)} {where}: {', '.join(told)}"


def kept_words(kept: KeptMetrics, /) -> str:
    """Return how many of the samples are kept; steps between two of them were not looked at."""
    told = f"{len(kept.samples):,} of {kept.num_taken:,} samples are kept"
    told += f", now one of {kept.every:,}" if kept.every > 1 else ""
    told += f"; {kept.num_torn:,} lines cannot be read" if kept.num_torn else ""
    return f"{told}; rank 0 tells of its latest step about once a second"


def config_words(document: Mapping[str, Any], /) -> str:
    """Return a configuration, a line for each value: applied, source, default, limits."""
    lines = [f"{len(document['settings'])} values for {document.get('world_size')} ranks"]
    for one in document["settings"]:
        told = f"{one['name']} = {one['value']!r}  from {one['source']}"
        if one.get("default") is not None:
            told += f", default {one['default']!r}"
        limits = ", ".join(f"{name} {value}" for name, value in one.get("limits", {}).items())
        asked = f", requested {one['requested']!r}" if "requested" in one else ""
        lines.append("  " + told + asked + (f", {limits}" if limits else ""))
    return "\n".join([*lines, *(f"  note: {note}" for note in document.get("notes", ()))])


def _facts(facts: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items() if name != "arguments")
