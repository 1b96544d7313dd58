"""Which gathered events are new to an artifact, and which contradict it (IN-5, IN-8)."""

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paritrace.errors import EvidenceError
from paritrace.inference.context import Context
from paritrace.inference.gathering import Gathered, Gathering
from paritrace.inference.identity_rows import Rows, as_rows, context_row, repeated, states

_MOST_NAMED = 10


class Chosen(Struct, frozen=True):
    """`keep`: for each gathering, which events are new; `identities`: their rows in pieces, contexts included."""

    keep: tuple[NDArray[np.bool_], ...]
    contexts: tuple[Context, ...]  # to be defined, in the order of first use
    identities: tuple[bytes, ...]
    written: dict[str, int]  # by type
    already_present: int


def choose(gatherings: Sequence[Gathering], *, known: Rows) -> Chosen:
    """Return what is new.

    Raises:
        EvidenceError: Refused, code `event_conflict`: two different events of one identity, each named.
    """
    parts = [one.gathered() for one in gatherings]
    rows = np.concatenate([part.rows for part in parts])
    found = _checked(rows, known, gatherings, parts)
    keep = found == 0
    entities = [
        part.entity_rows[keep[begin : begin + len(part.rows)][part.entity_events]] for part, begin in _at(parts)
    ]
    split = tuple(keep[begin : begin + len(part.rows)] for part, begin in _at(parts))
    contexts = _contexts(gatherings, parts, split, known)
    context_rows = b"".join(map(context_row, contexts))
    identities = (context_rows, rows[keep].tobytes(), *(one.tobytes() for one in entities))
    return Chosen(
        keep=split,
        contexts=contexts,
        identities=identities,
        written=_counted(gatherings, parts, split),
        already_present=int((~keep).sum()),
    )


def _checked(rows: Rows, known: Rows, gatherings: Sequence[Gathering], parts: Sequence[Gathered]) -> NDArray[np.int8]:
    """Return the states of all events, their identities and those of their things held against all others."""
    found = np.maximum(states(rows, known=known), repeated(rows)[0])
    entity_rows = np.concatenate([part.entity_rows for part in parts])
    entity_events = np.concatenate([part.entity_events + begin for part, begin in _at(parts)])
    of_things = np.maximum(states(entity_rows, known=known), repeated(entity_rows)[0])
    wrong = np.unique(np.concatenate((np.flatnonzero(found == 2), entity_events[of_things == 2])))
    if len(wrong):
        named = tuple(_named(int(one), gatherings, parts) for one in wrong[:_MOST_NAMED])
        raise EvidenceError(
            f"{len(wrong)} of {len(rows)} events contradict what is there, or each other: one id, two contents",
            code="event_conflict",
            fix="give what differs an id of its own, or leave it out; nothing was appended",
            details=named,
        )
    return found


def _at(parts: Sequence[Gathered]) -> list[tuple[Gathered, int]]:
    """Return each part with the number of its first event among all."""
    begins = np.cumsum([0, *(len(part.rows) for part in parts)])
    return [(part, int(begin)) for part, begin in zip(parts, begins, strict=False)]


def _named(number: int, gatherings: Sequence[Gathering], parts: Sequence[Gathered]) -> str:
    for gathering, (part, begin) in zip(gatherings, _at(parts), strict=True):
        if number < begin + len(part.rows):
            told = msgspec.json.decode(gathering.line(number - begin), type=dict[str, object])
            return f"{told['type']} event {told['event_id']}"[:300]
    raise AssertionError(number)


def _contexts(
    gatherings: Sequence[Gathering],
    parts: Sequence[Gathered],
    keep: Sequence[NDArray[np.bool_]],
    known: Rows,
) -> tuple[Context, ...]:
    used: dict[str, Context] = {}
    for gathering, part, mask in zip(gatherings, parts, keep, strict=True):
        numbers = part.contexts[mask]
        firsts = np.sort(np.unique(numbers, return_index=True)[1])
        for number in numbers[firsts]:
            context = gathering.contexts[int(number)]
            used.setdefault(context.id, context)
    if not used:
        return ()
    found = states(as_rows(b"".join(map(context_row, used.values()))), known=known)
    return tuple(context for context, state in zip(used.values(), found, strict=True) if state == 0)


def _counted(
    gatherings: Sequence[Gathering], parts: Sequence[Gathered], keep: Sequence[NDArray[np.bool_]]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for gathering, part, mask in zip(gatherings, parts, keep, strict=True):
        for number, count in enumerate(np.bincount(part.kinds[mask], minlength=len(gathering.kinds))):
            if count:
                counts[gathering.kinds[number]] = counts.get(gathering.kinds[number], 0) + int(count)
    return dict(sorted(counts.items()))
