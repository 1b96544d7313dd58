"""Whose clock and whose word an event is: the context, kept once per artifact (IN-2)."""

import hashlib
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
CONTEXT_PREFIX = "ctx-"
_CONTEXT_ID_DIGITS = 32


class ClockKind(StrEnum):
    """What the times of an event are; only a monotonic clock gives durations (IN-3)."""

    MONOTONIC = "monotonic"
    WALL = "wall"
    DEVICE = "device"  # a device's own, or a trace's


class CollectionMode(StrEnum):
    """How evidence came about: by asking for it, by looking on, or out of a file of somebody else."""

    ACTIVE = "active"
    PASSIVE = "passive"
    IMPORTED = "imported"


class Provenance(StrEnum):
    """Whose word it is."""

    OBSERVED = "observed"
    REPORTED = "reported"  # by the engine or the tool
    ESTIMATED = "estimated"


class ContextFacts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of where an event comes from. Unknown is None, never a default.

    `clock_domain`: the name of the clock (`HOST/BOOT/monotonic_ns`; a trace has a domain of its own).
    """

    run_id: Text
    session_id: Text
    producer_id: Text
    source: Text
    clock_domain: Text
    clock_kind: ClockKind
    collection_mode: CollectionMode
    provenance: Provenance
    source_version: Text | None = None
    engine: Text | None = None
    engine_version: Text | None = None
    backend: Text | None = None
    backend_version: Text | None = None
    host: Text | None = None
    device_uuid: Text | None = None
    pid: Whole | None = None
    rank: Whole | None = None
    local_rank: Whole | None = None
    world_size: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None


class Context:
    """Facts with the id under which a file defines them; equal facts have equal ids.

    Make one for each source and share it among its events: `Context(ContextFacts(...))` digests the facts once.
    """

    __slots__ = ("facts", "id")

    def __init__(self, facts: ContextFacts) -> None:
        self.facts = facts
        digest = hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()
        self.id = CONTEXT_PREFIX + digest[:_CONTEXT_ID_DIGITS]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Context) and self.id == other.id and self.facts == other.facts)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Context({self.facts!r})"


class ContextDefinition(Struct, frozen=True, tag_field="type", tag="context", forbid_unknown_fields=True):
    """The line of an artifact that gives a context its id, before the first event that names it."""

    context_id: Text
    context: ContextFacts
