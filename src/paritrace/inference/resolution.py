"""The events of an artifact as one account in any order: equal ones are one, conflicts and dangles named (IN-8)."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from paritrace.evidence.ids import Ref
from paritrace.inference.entities import Key, entity_key, event_key, named
from paritrace.inference.identities import event_bytes
from paritrace.inference.records import Activity, AnyEvent, Iteration, Link, Membership, Request, Stage


class Conflict(Struct, frozen=True, forbid_unknown_fields=True):
    """Several different events of one identity: none of them is preferred to the others by anything but its id."""

    identity: str
    event_ids: tuple[str, ...]


class Dangling(Struct, frozen=True, forbid_unknown_fields=True):
    """A reference to something that no event reports."""

    event_id: str
    kind: str  # request, attempt, iteration, activity
    ref: Ref


class Resolved(Struct, frozen=True):
    """`events`: each identity once, in the order of identities; of two that conflict, the one of smaller bytes."""

    events: tuple[AnyEvent, ...]
    conflicts: tuple[Conflict, ...]
    dangling: tuple[Dangling, ...]


def resolve(events: Iterable[AnyEvent]) -> Resolved:
    """Return the events as one account; the result is the same for every order of the events.

    Conflicts and dangling references are listed, and raise nothing. All events are held in memory.
    """
    by_event: dict[Key, dict[bytes, AnyEvent]] = {}
    for event in events:
        by_event.setdefault(event_key(event), {})[event_bytes(event)] = event
    conflicts = [
        Conflict(named(key), tuple(sorted(one.event_id for one in found.values())))
        for key, found in by_event.items()
        if len(found) > 1
    ]
    kept = [found[min(found)] for _, found in sorted(by_event.items(), key=lambda item: named(item[0]))]
    things, more = _things(kept)
    return Resolved(
        events=tuple(things),
        conflicts=tuple(sorted((*conflicts, *more), key=lambda one: (one.identity, one.event_ids))),
        dangling=tuple(sorted(dangling(things), key=lambda one: (one.kind, one.ref, one.event_id))),
    )


def dangling(events: Iterable[AnyEvent]) -> Iterator[Dangling]:
    """Yield what events refer to and no event reports; goes through the events twice."""
    held = list(events)
    known = {name for event in held for name in reported(event)}
    for event in held:
        for kind, ref in references(event):
            if ref is not None and (kind, ref) not in known:
                yield Dangling(event.event_id, kind, ref)


def reported(event: AnyEvent) -> Iterator[tuple[str, Ref | None]]:
    """Yield what an event reports, so that another one may refer to it: its kind and its name."""
    match event:
        case Request():
            yield "request", event.request_ref
            yield "attempt", event.attempt_ref
        case Iteration():
            yield "iteration", event.iteration_ref
        case Activity():
            yield "activity", event.activity_ref
        case _:
            return


def references(event: AnyEvent) -> Iterator[tuple[str, Ref | None]]:
    """Yield what an event refers to: its kind and its name."""
    match event:
        case Stage():
            yield "request", event.request_ref
            yield "iteration", event.iteration_ref
        case Membership():
            yield "request", event.request_ref
            yield "attempt", event.attempt_ref
            yield "iteration", event.iteration_ref
        case Activity():
            yield "iteration", event.iteration_ref
        case Link():
            yield "activity", event.activity_ref
            yield "iteration", event.iteration_ref
        case _:
            return


def _things(events: list[AnyEvent]) -> tuple[list[AnyEvent], list[Conflict]]:
    """Return the events without a second one of the same thing, and the conflicts among those."""
    by_thing: dict[Key, list[AnyEvent]] = {}
    for event in events:
        key = entity_key(event)
        if key is not None:
            by_thing.setdefault(key, []).append(event)
    dropped: set[int] = set()
    conflicts: list[Conflict] = []
    for key, several in by_thing.items():
        if len(several) < 2:
            continue
        several.sort(key=lambda one: one.event_id)
        dropped.update(id(one) for one in several[1:])
        if len({_told(one) for one in several}) > 1:
            conflicts.append(Conflict(named(key), tuple(one.event_id for one in several)))
    return [event for event in events if id(event) not in dropped], conflicts


def _told(event: AnyEvent) -> bytes:
    return event_bytes(replace(event, event_id="-"))
