"""Digests and ids of events, and what makes two of them one (IN-8, IN-20)."""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from paritrace.evidence.ids import Ref
from paritrace.inference.context import Context
from paritrace.inference.records import AnyEvent

_ID_DIGITS = 32


def encode_context(value: object) -> str:
    """Return what stands in a line for a context: its id."""
    if isinstance(value, Context):
        return value.id
    raise TypeError(f"a {type(value).__name__} stands in no event")


_encoder = msgspec.json.Encoder(enc_hook=encode_context, order="sorted")


def event_bytes(event: AnyEvent) -> bytes:
    """Return the canonical line of an event, without its newline: sorted keys, the context by its id."""
    return _encoder.encode(event)


def lines_of(events: Sequence[AnyEvent]) -> bytes:
    """Return the canonical lines of events, each with its newline; quicker than one by one."""
    return _encoder.encode_lines(events)


def event_digest(event: AnyEvent) -> str:
    """Return the SHA-256 of an event's canonical line; equal events have equal digests."""
    return hashlib.sha256(event_bytes(event)).hexdigest()


def events_digest(events: Iterable[AnyEvent]) -> str:
    """Return the SHA-256 of a set of events, whatever their order and however often each is there."""
    whole = hashlib.sha256()
    for digest in sorted({hashlib.sha256(event_bytes(event)).digest() for event in events}):
        whole.update(digest)
    return whole.hexdigest()


def derived_id(kind: str, *parts: object) -> str:
    """Return an id made from content alone: the same parts give the same id, in every process.

    Args:
        parts: what tells this from every other of its kind: text, numbers, None, references.
    """
    plain = [[part.producer_id, part.id] if isinstance(part, Ref) else part for part in parts]
    return f"{kind}:{hashlib.sha256(msgspec.json.encode(plain, order='sorted')).hexdigest()[:_ID_DIGITS]}"
