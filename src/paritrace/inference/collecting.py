"""Collectors of an append: what they are asked, what they return, and what becomes of one that fails (IN-5, IN-23)."""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError, ParitraceError
from paritrace.inference.context import Context
from paritrace.inference.drawing import Marks, collected_of, drawn_into, marks_of, metadata_of
from paritrace.inference.gathering import Gathering
from paritrace.inference.identities import derived_id
from paritrace.inference.importing import Account, Imported
from paritrace.inference.records import Capabilities, Observation
from paritrace.inference.vocabulary import Component
from paritrace.runs.attaching import Reference

DEADLINE_SECONDS = 600.0  # a profiler that is asked for its trace writes it out first: minutes for some gigabytes
_MOST_WORDS = 300


class Collected(Struct, frozen=True):
    """What a collector gives: events, what it can do, files to register, and a summary for its capability event."""

    events: Iterable[Observation]
    supported: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    collected: tuple[str, ...] = ()
    attachments: tuple[Reference, ...] = ()
    summary: dict[str, object] | None = None


class EngineAdapter(Protocol):
    """Asks an engine for requests, iterations, stages and memberships."""

    def collect(self, *, run_id: str, session_id: str) -> Collected:
        """Return what is there by now; the same evidence again has the same event ids."""
        ...


class TraceCollector(Protocol):
    """Gives the device work of a session."""

    def collect(self, *, run_id: str, session_id: str) -> Collected | Imported:
        """Return what is there by now, or a source that is open for reading; the same again has the same event ids."""
        ...


class Told(Struct, frozen=True):
    """One component's part of an append: its events, its capability event, its attachments."""

    gathering: Gathering
    capability: Capabilities
    attachments: tuple[Reference, ...] = ()
    marks: Marks = {}  # of files that events were read from, before they were


class Asking(Struct, frozen=True):
    """How collectors are asked. `context` is that of the appending session, for capability events (IN-20)."""

    context: Context
    deadline_seconds: float = DEADLINE_SECONDS
    keep_going: bool = False


def ask(component: Component, collector: EngineAdapter | TraceCollector | None, asking: Asking) -> Told:
    """Ask one component, within its deadline.

    Raises:
        EvidenceError: Refused: `collector_failed`, or `bad_event`, when it is not to be kept going without it.
        HostError: Refused, code `collector_timeout`.
    """
    if collector is None:
        return _absent(component, asking, reason="no collector was given")
    try:
        return _within(lambda: _told(component, collector, asking), component, asking.deadline_seconds)
    except ParitraceError as error:
        if not asking.keep_going:
            raise
        return _absent(component, asking, reason=f"{error.code}: {error.message}"[:_MOST_WORDS])


def drawn(imported: Imported, gathering: Gathering, /, *, component: str, context: Context) -> tuple[Told, Account]:
    """Take all of an opened source, its account as the capability event of `component`."""
    marks = marks_of(imported.attachments)
    account = drawn_into(gathering, imported, of=component)
    names = collected_of(account)
    offered = Collected(events=(), supported=names, enabled=names, collected=names)
    event = capability(context, component=component, offered=offered, metadata=metadata_of(imported, account))
    return Told(gathering, event, imported.attachments, marks), account


def capability(
    context: Context, *, component: str, offered: Collected | None, metadata: dict[str, object]
) -> Capabilities:
    """Return a component's capability event, its id made from its content."""
    lists = ((), (), ()) if offered is None else (offered.supported, offered.enabled, offered.collected)
    facts = context.facts
    made_id = derived_id(
        "capabilities", facts.run_id, facts.session_id, component, offered is not None, lists, metadata
    )
    return Capabilities(
        context=context,
        event_id=made_id,
        component=component,
        available=offered is not None,
        supported=tuple(lists[0]),
        enabled=tuple(lists[1]),
        collected=tuple(lists[2]),
        metadata=metadata,
    )


def _absent(component: Component, asking: Asking, *, reason: str) -> Told:
    event = capability(asking.context, component=component.value, offered=None, metadata={"reason": reason})
    return Told(gathering=_gathering(asking), capability=event)


def _told(component: Component, collector: EngineAdapter | TraceCollector, asking: Asking) -> Told:
    facts = asking.context.facts
    collected = collector.collect(run_id=facts.run_id, session_id=facts.session_id)
    gathering = _gathering(asking)
    if isinstance(collected, Imported):
        return drawn(collected, gathering, component=component.value, context=asking.context)[0]
    gathering.take_all(collected.events, of=f"the {component.value}")
    metadata: dict[str, object] = {} if collected.summary is None else {"summary": collected.summary}
    event = capability(asking.context, component=component.value, offered=collected, metadata=metadata)
    return Told(gathering=gathering, capability=event, attachments=tuple(collected.attachments))


def _gathering(asking: Asking) -> Gathering:
    return Gathering(run_id=asking.context.facts.run_id, session_id=asking.context.facts.session_id)


def _within(work: Callable[[], Told], component: Component, seconds: float) -> Told:
    """Do the work in a thread that is left alone when its time is up: nothing that it does later is looked at."""
    answers: list[Told | Exception] = []

    def run() -> None:
        try:
            answers.append(work())
        except Exception as error:  # noqa: BLE001  a collector is somebody else's code, and its failure is an answer
            answers.append(error)

    thread = threading.Thread(target=run, name=f"paritrace-{component.value}", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise HostError(
            f"the {component.value} did not answer within {seconds:g} s",
            code="collector_timeout",
            fix="give it more time, or append what the other one has with --keep-going; nothing was appended",
        )
    answer = answers[0]
    if isinstance(answer, ParitraceError):
        raise answer
    if isinstance(answer, Exception):
        raise EvidenceError(
            f"the {component.value} raised {type(answer).__name__}",
            code="collector_failed",
            fix="see what it printed; --keep-going appends what the other one has; nothing was appended",
        ) from answer
    return answer
