"""The rule that compares two sessions by segment: which steps were taken alike, and which states part (SE-15)."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from paritrace.session.segments import Capture, Mark, Piece

FORMAT = "paritrace-session-comparison"
VERSION = "1.1"

Configs = Mapping[int, Mapping[str, Any]]
"""Values by revision, of those revisions whose file could be read."""


class Agreement(StrEnum):
    """Whether two of a kind are the same."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not_comparable"  # one side does not say


class Content(Struct, frozen=True):
    """What a checkpoint holds, apart from where and when it was made. `states`: the workload's own digests, by rank."""

    files: str  # SHA-256 over the names and digests of all files
    states: dict[str, str | None]


class Side(Struct, frozen=True):
    """What is known of one session. `configs` lacks the revisions that cannot be read, `contents` (by the digest of a
    checkpoint) the checkpoints."""

    session_id: str
    workload: str
    arguments: dict[str, Any]
    world_size: int
    lineage: tuple[Piece, ...]
    configs: Configs
    contents: Mapping[str, Content] = {}


class Difference(Struct, frozen=True, forbid_unknown_fields=True):
    """One condition that differs, or cannot be compared, in words for each side."""

    what: str  # config.NAME, config, inputs, schedule, world_size, workload, arguments
    agreement: Agreement
    base: str
    cand: str


class Stretch(Struct, frozen=True, forbid_unknown_fields=True):
    """Consecutive steps that both sessions took, each under one segment; `end_step` None: not known on either side."""

    first_step: int
    end_step: int | None
    base_segment: int
    cand_segment: int
    agreement: Agreement
    differences: tuple[Difference, ...] = ()
    base_captures: tuple[Capture, ...] = ()
    cand_captures: tuple[Capture, ...] = ()


class Alone(Struct, frozen=True, forbid_unknown_fields=True):
    """Steps that one session alone took."""

    side: str  # base, cand
    first_step: int
    end_step: int | None


class StatePair(Struct, frozen=True, forbid_unknown_fields=True):
    """Checkpoints that both sessions have of the state before a step."""

    step: int
    agreement: Agreement
    base: Mark
    cand: Mark


class SegmentComparison(Struct, frozen=True, forbid_unknown_fields=True):
    """Two sessions, stretch by stretch. Conditions of a whole session stand in `differences`."""

    base: str  # session ids
    cand: str
    differences: tuple[Difference, ...]
    stretches: tuple[Stretch, ...]
    alone: tuple[Alone, ...]
    states: tuple[StatePair, ...]
    format: str = FORMAT
    version: str = VERSION

    @property
    def first_unlike(self) -> Stretch | None:
        """The first stretch under conditions that are not known to be the same."""
        return next((one for one in self.stretches if one.agreement != Agreement.EQUAL), None)

    @property
    def last_equal_state(self) -> StatePair | None:
        """The last of the states that are equal before the first that differs."""
        first = self.first_unlike_state
        equal = [
            one for one in self.states if one.agreement == Agreement.EQUAL and (first is None or one.step < first.step)
        ]
        return equal[-1] if equal else None

    @property
    def first_unlike_state(self) -> StatePair | None:
        """The first state whose digests differ."""
        return next((one for one in self.states if one.agreement == Agreement.DIFFERENT), None)


def compared(base: Side, cand: Side, /) -> SegmentComparison:
    """Return how two sessions compare: their lineages, cut where either has a boundary, condition by condition."""
    stretches: list[Stretch] = []
    alone: list[Alone] = []
    for first, end in _cuts(base.lineage, cand.lineage):
        pair = _piece_at(base.lineage, first), _piece_at(cand.lineage, first)
        if pair[0] is not None and pair[1] is not None:
            stretches.append(_stretch(first, end, (base, pair[0]), (cand, pair[1])))
        elif pair[0] is not None or pair[1] is not None:
            alone.append(Alone("base" if pair[1] is None else "cand", first, end))
    return SegmentComparison(
        base=base.session_id,
        cand=cand.session_id,
        differences=tuple(_of_sessions(base, cand)),
        stretches=tuple(stretches),
        alone=tuple(alone),
        states=tuple(_states(base, cand)),
    )


def _cuts(*lineages: tuple[Piece, ...]) -> Iterator[tuple[int, int | None]]:
    """The stretches between all boundaries; the last is open where a piece's end is not known."""
    pieces = [piece for lineage in lineages for piece in lineage]
    edges = sorted({edge for piece in pieces for edge in (piece.first_step, piece.end_step) if edge is not None})
    is_open = any(piece.end_step is None for piece in pieces)
    for place, first in enumerate(edges):
        if place + 1 < len(edges):
            yield first, edges[place + 1]
        elif is_open:
            yield first, None


def _piece_at(lineage: tuple[Piece, ...], step: int) -> Piece | None:
    """The piece that holds a step; one whose end is not known holds all that follow."""
    return next(
        (one for one in lineage if one.first_step <= step and (one.end_step is None or step < one.end_step)), None
    )


def _stretch(first: int, end: int | None, base: tuple[Side, Piece], cand: tuple[Side, Piece]) -> Stretch:
    differences = (*_of_config(base, cand), *_of_inputs(base[1], cand[1]), *_of_schedule(base[1], cand[1]))
    kinds = {one.agreement for one in differences}
    return Stretch(
        first_step=first,
        end_step=end,
        base_segment=base[1].segment.number,
        cand_segment=cand[1].segment.number,
        agreement=Agreement.DIFFERENT
        if Agreement.DIFFERENT in kinds
        else Agreement.NOT_COMPARABLE
        if kinds
        else Agreement.EQUAL,
        differences=differences,
        base_captures=_captures(base[1], first, end),
        cand_captures=_captures(cand[1], first, end),
    )


def _captures(piece: Piece, first: int, end: int | None) -> tuple[Capture, ...]:
    return tuple(one for one in piece.segment.captures if first <= one.step and (end is None or one.step < end))


def _of_config(base: tuple[Side, Piece], cand: tuple[Side, Piece]) -> Iterator[Difference]:
    revisions = base[1].segment.config_revision, cand[1].segment.config_revision
    values = base[0].configs.get(revisions[0]), cand[0].configs.get(revisions[1])
    if values[0] is None or values[1] is None:
        words = [
            f"revision {revision}" + ("" if known is not None else ", which cannot be read")
            for revision, known in zip(revisions, values, strict=True)
        ]
        yield Difference("config", Agreement.NOT_COMPARABLE, *words)
        return
    for name in sorted({*values[0], *values[1]}):
        told = tuple(repr(one[name]) if name in one else "no such field" for one in (values[0], values[1]))
        if told[0] != told[1]:
            yield Difference(f"config.{name}", Agreement.DIFFERENT, told[0], told[1])


def _of_inputs(base: Piece, cand: Piece) -> Iterator[Difference]:
    digests = base.segment.inputs_digest, cand.segment.inputs_digest
    told = tuple(digest or "no identity recorded" for digest in digests)
    if None in digests:
        yield Difference("inputs", Agreement.NOT_COMPARABLE, *told)
    elif digests[0] != digests[1]:
        yield Difference("inputs", Agreement.DIFFERENT, *told)


def _of_schedule(base: Piece, cand: Piece) -> Iterator[Difference]:
    found = base.segment.schedule, cand.segment.schedule
    if found[0] != found[1]:
        told = ("none" if one is None else f"{one.digest[:12]} from step {one.from_step}" for one in found)
        yield Difference("schedule", Agreement.DIFFERENT, *told)


def _of_sessions(base: Side, cand: Side) -> Iterator[Difference]:
    rows = (
        ("workload", base.workload, cand.workload),
        ("world_size", base.world_size, cand.world_size),
        ("arguments", base.arguments, cand.arguments),
    )
    for what, ours, theirs in rows:
        if ours != theirs:
            yield Difference(what, Agreement.DIFFERENT, str(ours), str(theirs))


def _states(base: Side, cand: Side) -> Iterator[StatePair]:
    """Pairs of the steps at which both have a checkpoint; of several at one step the most telling pair."""
    ours, theirs = _marks(base.lineage), _marks(cand.lineage)
    for step in sorted(set(ours) & set(theirs)):
        pairs = [
            StatePair(step, _state_agreement(base, one, cand, other), one, other)
            for one in ours[step]
            for other in theirs[step]
        ]
        yield min(pairs, key=lambda pair: list(Agreement).index(pair.agreement))


def _state_agreement(base: Side, one: Mark, cand: Side, other: Mark) -> Agreement:
    """A checkpoint's own digest is that of its manifest, which names its session: only its content is compared.

    Files that are the same bytes are the same state. Files that differ may be: then the workload's digests say, if any.
    """
    if one.digest == other.digest:
        return Agreement.EQUAL
    ours, theirs = base.contents.get(one.digest), cand.contents.get(other.digest)
    if ours is None or theirs is None:
        return Agreement.NOT_COMPARABLE
    if ours.files == theirs.files:
        return Agreement.EQUAL
    if None in (*ours.states.values(), *theirs.states.values()) or not (ours.states and theirs.states):
        return Agreement.NOT_COMPARABLE
    return Agreement.EQUAL if ours.states == theirs.states else Agreement.DIFFERENT


def _marks(lineage: tuple[Piece, ...]) -> dict[int, list[Mark]]:
    found: dict[int, list[Mark]] = {}
    for piece in lineage:
        for mark in piece.marks:
            found.setdefault(mark.step, []).append(mark)
    return found
