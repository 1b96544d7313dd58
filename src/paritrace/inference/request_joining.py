"""Which request of one source is which of another: by request id only, never by time (IN-14, IN-15). Pure."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.ids import Ref
from paritrace.inference.importers.client_terms import REQUEST_ID, RESPONSE_ID
from paritrace.inference.records import AnyEvent, Request

_MADE_BY_SERVER = re.compile(r"(?:chatcmpl|cmpl)-(?P<inner>.+?)(?P<place>-\d{1,6})?\Z")


class JoinBasis(StrEnum):
    """By what two requests are one, strongest first."""

    SAME_ID = "same_id"
    SERVERS_SPELLING = "servers_spelling"  # the server's id holds the client's: `cmpl-ID-0`, `chatcmpl-ID`


class JoinReason(StrEnum):
    """Why a request has no counterpart."""

    NO_ID = "no_id"
    NO_COUNTERPART = "no_counterpart"
    AMBIGUOUS = "ambiguous"  # several requests have that id, or the one that has it has a better one: none is chosen


class Identified(Struct, frozen=True):
    """A request of one source, and the ids that it is known by."""

    ref: Ref
    ids: frozenset[str]


class Joined(Struct, frozen=True):
    """One request as two sources saw it."""

    first: Ref
    second: Ref
    basis: JoinBasis


class JoinOf(Struct, frozen=True):
    """Two sources: what was joined, and why the first one's other requests were not."""

    first: str
    second: str
    joined: tuple[Joined, ...]
    unjoined: dict[str, int]


def identified(request: Request, /, *, named: Container[Ref] = ()) -> Identified:
    """Returns a request with its ids: the client's, the server's, and its own where another party names it by that."""
    ids = {request.metadata.get(REQUEST_ID), request.metadata.get(RESPONSE_ID)}
    if request.request_ref in named:
        ids.add(request.request_ref.id)
    if request.backend_request_ref is not None:
        ids.add(request.backend_request_ref.id)
    return Identified(request.request_ref, frozenset(one for one in ids if isinstance(one, str) and one))


def sources_of(events: Iterable[AnyEvent]) -> dict[str, list[Identified]]:
    """Returns the requests of an artifact by the source that saw them; several attempts at one are one."""
    requests = [event for event in events if isinstance(event, Request)]
    named = {one.backend_request_ref for one in requests if one.backend_request_ref is not None}
    found: dict[str, dict[Ref, Identified]] = {}
    for request in requests:
        own = found.setdefault(request.context.facts.source, {})
        one = identified(request, named=named)
        before = own.get(one.ref)
        own[one.ref] = one if before is None else Identified(one.ref, before.ids | one.ids)
    return {name: list(own.values()) for name, own in sorted(found.items())}


def joins(sources: Mapping[str, Sequence[Identified]]) -> tuple[JoinOf, ...]:
    """Returns the join of every two sources."""
    names = sorted(sources)
    return tuple(
        join(first, sources[first], second, sources[second])
        for place, first in enumerate(names)
        for second in names[place + 1 :]
    )


def join(first: str, ours: Sequence[Identified], second: str, theirs: Sequence[Identified]) -> JoinOf:
    """Returns which requests are one: exactly one candidate, and that one has no other either."""
    found: list[Joined] = []
    why: Counter[str] = Counter()
    index, back = _index(theirs), _index(ours)
    for one in ours:
        if not one.ids:
            why[JoinReason.NO_ID.value] += 1
            continue
        basis, candidates = _candidates(one, index)
        if not candidates:
            why[JoinReason.NO_COUNTERPART.value] += 1
        elif len(candidates) > 1 or [other.ref for other in _candidates(candidates[0], back)[1]] != [one.ref]:
            why[JoinReason.AMBIGUOUS.value] += 1
        else:
            found.append(Joined(one.ref, candidates[0].ref, basis))
    return JoinOf(first, second, tuple(found), dict(sorted(why.items())))


_Index = dict[str, dict[Ref, Identified]]


def _index(requests: Sequence[Identified]) -> _Index:
    """Requests by every id, and by what the server's spelling holds."""
    found: _Index = {}
    for one in requests:
        for key in one.ids | _inside(one.ids):
            found.setdefault(key, {})[one.ref] = one
    return found


def _candidates(one: Identified, index: _Index) -> tuple[JoinBasis, list[Identified]]:
    """Those with one of its ids; only without any, those whose ids hold one of its own or the other way round."""
    exact = {ref: other for key in one.ids for ref, other in index.get(key, {}).items() if key in other.ids}
    if exact:
        return JoinBasis.SAME_ID, list(exact.values())
    held = {ref: other for key in one.ids | _inside(one.ids) for ref, other in index.get(key, {}).items()}
    return JoinBasis.SERVERS_SPELLING, list(held.values())


def _inside(ids: frozenset[str]) -> frozenset[str]:
    """What ids of a server hold: the client's id, with and without the prompt's place behind it."""
    inner: set[str] = set()
    for one in ids:
        found = _MADE_BY_SERVER.match(one)
        if found is not None:
            inner |= {found["inner"], found["inner"] + (found["place"] or "")}
    return frozenset(inner)
