"""Records of alignment maps: what a person says of the pairs of one kept comparison, and what came of it (CP-14)."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

FORMAT = "paritrace-alignment-map"
VERSION = "1.0"
NOBODY = "--"
"""Stands for a side that is left undetermined."""

Nobody = Literal["--"]


class Decision(StrEnum):
    CONFIRM = "confirm"  # the artifact pairs these two, rightly
    REPLACE = "replace"  # these two belong together, whatever the artifact says of each
    REJECT = "reject"  # the artifact pairs these two, wrongly
    UNDETERMINED = "undetermined"  # this call has no counterpart that anybody could name


class Relation(StrEnum):
    """How tensors that were selected by hand are compared."""

    SAME = "same"  # one and one, field by field
    XOR_PARTITION = "xor_partition"  # the parts of one side against the whole of the other, by flat-u32-le-v1
    ELEMENTS_PARTITION = "elements_partition"  # the same by elements-u64
    UNDETERMINED = "undetermined"  # named, and left open


class PairReview(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of one pair; ids are record ids of calls on `rank`, `--` is nobody.

    Sessions are needed only where a rank was started several times. `about` is for people and means nothing.
    """

    decision: Decision
    rank: int
    baseline: int | Nobody
    candidate: int | Nobody
    reason: str = ""
    baseline_session: str = ""
    candidate_session: str = ""
    about: str = ""


class SlotRef(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recorded tensor of a call: an input (`i`) or output (`o`) by its slot's name."""

    rank: int
    record: int
    direction: Literal["i", "o"]
    slot: str
    session: str = ""

    def __str__(self) -> str:
        return f"rank {self.rank}, {self.record}.{self.direction}:{self.slot}"


class SlotReview(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tensors that a person selects, across files, functions and ranks; a partition has one whole on one side."""

    relation: Relation
    baseline: tuple[SlotRef, ...]
    candidate: tuple[SlotRef, ...]
    reason: str = ""
    about: str = ""


class AlignmentMap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A review, bound to one artifact by the SHA-256 of its manifest. `reason` stands where an entry has none."""

    format: Literal["paritrace-alignment-map"]
    version: Literal["1.0"]
    artifact_sha256: str
    reviewer: str
    reason: str = ""
    pairs: tuple[PairReview, ...] = ()
    slots: tuple[SlotReview, ...] = ()


class ReviewedPair(Struct, frozen=True):
    """What came of one decision; `status` is that of the pair after it."""

    decision: Decision
    rank: int
    baseline: int | None
    candidate: int | None
    reason: str
    status: str
    displaced: tuple[tuple[str, int], ...] = ()  # (side, record id) of calls that lost their partner by it


class ReviewedSlots(Struct, frozen=True):
    """Selected tensors compared. `agreement`: equal, different, not_comparable (with its reason) or undetermined."""

    relation: Relation
    baseline: tuple[SlotRef, ...]
    candidate: tuple[SlotRef, ...]
    reason: str
    agreement: str
    why: str = ""
    facts: tuple[str, ...] = ()


class Review(Struct, frozen=True):
    """Where an aligned comparison comes from, and what was said. `withdrawn`: findings on pairs that were dissolved."""

    source_sha256: str  # of the source's manifest
    map_sha256: str
    reviewer: str
    reason: str
    pairs: tuple[ReviewedPair, ...]
    slots: tuple[ReviewedSlots, ...]
    withdrawn: tuple[str, ...] = ()
