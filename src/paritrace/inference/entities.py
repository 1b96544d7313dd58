"""Which thing an event speaks of: two different events of one thing are a conflict (IN-8)."""

from typing import assert_never

from paritrace.evidence.ids import Ref
from paritrace.inference.records import (
    Activity,
    AnyEvent,
    Artifact,
    Capabilities,
    ClockAlignment,
    Iteration,
    Link,
    Loss,
    Membership,
    Request,
    Stage,
)

Key = tuple[object, ...]


def event_key(event: AnyEvent) -> Key:
    """Return what makes an event the same one: session, producer and id; an artifact is of one run."""
    facts = event.context.facts
    return ("event", facts.session_id, facts.producer_id, event.event_id)


def entity_key(event: AnyEvent) -> Key | None:
    """Return the thing that an event describes, None where it describes none or may be said again and again.

    References carry their producer, so that equal ids of two producers are two things (EV-3).
    """
    match event:
        case Activity():  # first: most events are
            return ("activity", event.activity_ref.producer_id, event.activity_ref.id)
        case Request():
            return ("request", *_of(event.request_ref), *_of(event.attempt_ref))
        case Iteration():
            return ("iteration", *_of(event.iteration_ref))
        case Stage():
            return ("stage", *_of(event.stage_ref))
        case Membership():
            refs = (event.request_ref, event.attempt_ref, event.iteration_ref)
            return ("membership", *(part for ref in refs for part in _of(ref)), event.role)
        case Artifact():
            return ("artifact",)
        case Capabilities() | ClockAlignment() | Link() | Loss():
            return None
        case _:
            assert_never(event)


def named(key: Key) -> str:
    """Return a key in words for people."""
    return " ".join(str(part) for part in key if part is not None)


def _of(ref: Ref | None) -> tuple[str | None, str | None]:
    return (None, None) if ref is None else (ref.producer_id, ref.id)
