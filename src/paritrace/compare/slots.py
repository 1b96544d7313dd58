"""Comparing one slot of two paired calls: what agrees, what differs, what cannot be compared (CP-7, CP-24)."""

from enum import StrEnum
from typing import NamedTuple

from paritrace.compare.result import Agreement
from paritrace.evidence.calls import Detail, Kind, Slot
from paritrace.evidence.gaps import CaptureGap, Gap


class Incomparable(StrEnum):
    """Why two slots are not comparable."""

    NOT_CAPTURED = "not_captured"  # a gap on either side
    IN_FLIGHT = "in_flight"  # the result of a collective that was not seen to complete (CA-31)
    ONE_SIDE_ONLY = "one_side_only"
    MEMORY_ORDER = "memory_order"  # the fingerprints cover the elements in different orders
    BUCKET_ORDER = "bucket_order"  # the same gradients in another order inside the bucket
    SCHEME = "scheme"  # fingerprints of different schemes
    SEMANTICS = "semantics"  # declared to mean different things
    LAYOUT = "layout"
    PARALLELISM = "parallelism"  # ranks of unlike layouts hold other parts: compared by fold (CP-12)
    CONSISTENT_ONLY = "consistent_only"  # an order-blind fingerprint matches: never called equal


class Order(NamedTuple):
    """The order in which a fingerprint covers a tensor: its dims by falling stride, and those it leaves out."""

    dims: tuple[int, ...]
    expanded: tuple[int, ...]


def memory_order(kind: Kind) -> Order:
    """Return the memory order of a kind; dims of size 1 have none, dims of stride 0 are left out."""
    real = [
        dim for dim, (size, stride) in enumerate(zip(kind.shape, kind.strides, strict=False)) if size > 1 and stride
    ]
    expanded = tuple(
        dim for dim, (size, stride) in enumerate(zip(kind.shape, kind.strides, strict=False)) if size > 1 and not stride
    )
    return Order(tuple(sorted(real, key=lambda dim: (-kind.strides[dim], dim))), expanded)


ComparableKind = tuple[str, tuple[int, ...], Order, str, int]


def comparable_kind(kind: Kind) -> ComparableKind:
    """What two kinds share when the fingerprints of their slots may be compared at all."""
    return (kind.dtype, kind.shape, memory_order(kind), kind.layout, kind.logical_nbytes)


class SlotPair(NamedTuple):
    """One slot of a paired call on both sides, with its summaries where they were recorded."""

    baseline: Slot
    candidate: Slot
    kinds: tuple[Kind, Kind]
    details: tuple[Detail | None, Detail | None]
    same_scheme: bool = True
    same_kind: bool = False  # known already to be equal in everything that decides whether fingerprints compare


class Judged(NamedTuple):
    """The agreement of one slot, with the reason when it is not comparable."""

    agreement: Agreement
    reason: Incomparable | None = None


EQUAL = Judged(Agreement.EQUAL)
DIFFERENT = Judged(Agreement.DIFFERENT)


def _not(reason: Incomparable) -> Judged:
    return Judged(Agreement.NOT_COMPARABLE, reason)


def judge(pair: SlotPair) -> Judged:
    """Say whether two slots agree. Statistics have no say: bits do, where they may be compared (CP-7)."""
    ours, theirs = pair.details
    if ours is not None and theirs is not None and ours.semantics != theirs.semantics:
        return _not(Incomparable.SEMANTICS)
    apart = None if pair.same_kind else _of_kinds(pair)
    if apart is not None:
        return apart
    gaps = [bits.gap for bits in (pair.baseline.bits, pair.candidate.bits) if isinstance(bits, Gap)]
    if gaps:
        return _not(Incomparable.IN_FLIGHT if CaptureGap.IN_FLIGHT in gaps else Incomparable.NOT_CAPTURED)
    if not pair.same_scheme:
        return _without_scheme(ours, theirs)
    if pair.same_kind or memory_order(pair.kinds[0]) == memory_order(pair.kinds[1]):
        return EQUAL if pair.baseline.bits == pair.candidate.bits else DIFFERENT
    if ours is not None and theirs is not None:  # details cover the logical order
        return EQUAL if ours.bits == theirs.bits else DIFFERENT
    return _not(Incomparable.MEMORY_ORDER)


def _of_kinds(pair: SlotPair) -> Judged | None:
    """What the kinds alone decide: dtype, shape and layout come before any value (A-03)."""
    first, second = pair.kinds
    if first.dtype != second.dtype or first.shape != second.shape:
        return DIFFERENT
    if first.layout != second.layout:
        return _not(Incomparable.LAYOUT)
    return DIFFERENT if first.logical_nbytes != second.logical_nbytes else None


def _without_scheme(ours: Detail | None, theirs: Detail | None) -> Judged:
    """Only schemes that both sides share are left: they can show a difference and never prove agreement."""
    if ours is None or theirs is None:
        return _not(Incomparable.SCHEME)
    if ours.elements and theirs.elements and ours.elements != theirs.elements:
        return DIFFERENT
    if folded_xor(ours.xor) != folded_xor(theirs.xor):
        return DIFFERENT
    if ours.degenerate and theirs.degenerate and ours.moments != theirs.moments:
        return DIFFERENT
    return _not(Incomparable.CONSISTENT_ONLY)


def folded_xor(xor: str) -> int:
    """The XOR of all regions: what captures with different numbers of regions share (CP-24)."""
    total = 0
    for start in range(0, len(xor), 8):
        total ^= int(xor[start : start + 8], 16)
    return total
