"""How the parts of a tensor lie in its whole: by recorded placement, by declaration, or alike on all ranks (CP-12)."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from paritrace.compare.folds_dims import RANKS, AxisRule, Dims, How
from paritrace.compare.load import Recorded
from paritrace.evidence.boxes import Box, whole
from paritrace.evidence.calls import Kind
from paritrace.evidence.distributed import Placement
from paritrace.evidence.folds import FoldGap, partition_gap
from paritrace.evidence.gaps import Gap


class Axis(NamedTuple):
    """A rank's place along one axis of the ranks."""

    coordinate: int
    size: int


class Part(NamedTuple):
    """What one rank holds of a tensor. `kind` is None where none was recorded; `axes` are those of the rank."""

    rank: int
    kind: Kind | None
    placement: Placement | None
    coordinate: tuple[int, ...]  # in the mesh of the placement
    axes: Mapping[str, Axis]


class Piece(NamedTuple):
    """One part of a partition, and the places in the list of parts of those that hold it; `box` may be unknown."""

    box: Box | None
    members: tuple[int, ...]


class Layout(NamedTuple):
    """A partition of a whole. `shape` is None where no kind was recorded.

    `pending`: the pieces are whole terms of one sum instead. `assumed`: nothing says that the ranks are replicas, but
    their kinds are alike; whoever uses it must see that their values are.
    """

    shape: tuple[int, ...] | None
    pieces: tuple[Piece, ...]
    pending: bool = False
    assumed: bool = False


Located = Layout | Gap[FoldGap]
_Key = tuple[object, ...]


def axes_of(side: Sequence[Recorded], rank: int) -> dict[str, Axis]:
    """The axes of a rank: those of its meshes, and `ranks`."""
    axes: dict[str, Axis] = {}
    for recorded in side:
        if recorded.session.rank == rank:
            axes[RANKS] = Axis(rank, recorded.session.row.world_size)
            for mesh in recorded.distributed.meshes.values():
                places = zip(mesh.dims, mesh.coordinate, mesh.shape, strict=False)
                axes |= {name: Axis(at, size) for name, at, size in places if name}
    return axes


def part_of(recorded: Recorded, kind: int, axes: Mapping[str, Axis]) -> Part:
    """The part that a rank holds, by the kind of what it read."""
    placement = recorded.distributed.placements.get(kind)
    mesh = None if placement is None else recorded.distributed.meshes.get(placement.mesh)
    coordinate = () if mesh is None else mesh.coordinate
    return Part(recorded.session.rank, recorded.kinds.get(kind), placement, coordinate, axes)


def locate(parts: Sequence[Part], *, dims: Dims | None, num_absent: int, pending: bool = False) -> Located:
    """Say how parts make up a whole. A recorded placement comes before a declared one.

    `num_absent`: ranks of this run without a session. `pending`: terms of a sum are wanted, not refused.
    """
    if not parts:
        return Gap(FoldGap.NO_PARTS)
    placed = sum(part.placement is not None for part in parts)
    if placed == len(parts):
        found = _recorded(parts, pending=pending)
    elif placed:
        return Gap(FoldGap.NO_PLACEMENT, "placed on some ranks only")
    elif dims is not None and (len(parts) > 1 or num_absent):
        found = _declared(parts, dims.rules, pending=pending)
    else:
        return Gap(FoldGap.RANK_MISSING) if num_absent else _alike(parts)
    if isinstance(found, Gap) and found.gap is FoldGap.INCOMPLETE and num_absent:
        return Gap(FoldGap.RANK_MISSING)
    return found


def _alike(parts: Sequence[Part]) -> Located:
    """Plain tensors: of one rank the whole; of several, replicas if their kinds are alike (and then their values)."""
    kinds = {(part.kind.dtype, part.kind.shape) if part.kind else None for part in parts}
    if len(kinds) > 1:
        return Gap(FoldGap.NO_PLACEMENT)
    kind = parts[0].kind
    box = None if kind is None else whole(kind.shape)
    piece = Piece(box, tuple(range(len(parts))))
    return Layout(None if kind is None else kind.shape, (piece,), assumed=len(parts) > 1)


def _recorded(parts: Sequence[Part], *, pending: bool) -> Located:
    placements = [part.placement for part in parts if part.placement is not None]
    if len({placement.shape for placement in placements}) > 1 or any(not part.coordinate for part in parts):
        return Gap(FoldGap.OUTSIDE, "the ranks do not agree on the whole")
    told = {how for placement in placements for how in placement.placements}
    if not all(how == "R" or how.startswith(("S(", "_S(", "P(")) for how in told):
        return Gap(FoldGap.NO_PLACEMENT, ", ".join(sorted(told)))
    terms = any(how.startswith("P") for how in told)
    if terms and not pending:
        return Gap(FoldGap.PENDING_SUM)
    boxes = [_box(part) for part in parts]
    keys: list[_Key] = []
    for part, placement, box in zip(parts, placements, boxes, strict=True):
        along = tuple(zip(placement.placements, part.coordinate, strict=False))
        sharded = tuple(at for how, at in along if not how.startswith(("R", "P")))
        keys.append((box if box is not None else sharded, tuple(at for how, at in along if how.startswith("P"))))
    return _partition(parts, placements[0].shape, keys=keys, boxes=boxes, terms=terms)


def _box(part: Part) -> Box | None:
    """Where the part lies; None where it is no box, or that is not known."""
    if part.placement is None or part.kind is None or len(part.placement.offset) != len(part.placement.shape):
        return None
    return Box(part.placement.offset, part.kind.shape)


def _declared(parts: Sequence[Part], rules: Sequence[AxisRule], *, pending: bool) -> Located:
    if any(part.kind is None for part in parts):
        return Gap(FoldGap.NO_PLACEMENT, "no shape was recorded")
    if any(rule.axis not in part.axes for rule in rules for part in parts):
        return Gap(FoldGap.NO_SUCH_AXIS, ", ".join(sorted({rule.axis for rule in rules})))
    terms = any(rule.how is How.PARTIAL for rule in rules)
    if terms and not pending:
        return Gap(FoldGap.PENDING_SUM)
    sharded = [rule for rule in rules if rule.how is How.SHARD]
    for rule in sharded:
        if {part.axes[rule.axis].coordinate for part in parts} != set(range(parts[0].axes[rule.axis].size)):
            return Gap(FoldGap.INCOMPLETE, f"axis {rule.axis}")
    boxes = _joined(parts, sharded)
    if isinstance(boxes, Gap):
        return boxes
    summed = [rule.axis for rule in rules if rule.how is How.PARTIAL]
    keys: list[_Key] = [
        (box, tuple(part.axes[axis].coordinate for axis in summed)) for part, box in zip(parts, boxes, strict=True)
    ]
    shape = tuple(max(box.offset[dim] + box.shape[dim] for box in boxes) for dim in range(len(boxes[0].shape)))
    return _partition(parts, shape, keys=keys, boxes=boxes, terms=terms)


def _joined(parts: Sequence[Part], rules: Sequence[AxisRule]) -> list[Box] | Gap[FoldGap]:
    """The boxes of parts that are laid side by side along the declared dims, in the order of their coordinates."""
    shapes = [part.kind.shape for part in parts if part.kind is not None]
    rank = len(shapes[0])
    if len({len(shape) for shape in shapes}) > 1 or any(not -rank <= rule.dim < rank for rule in rules):
        return Gap(FoldGap.OUTSIDE, "the tensor has no such dim")
    offsets = [[0] * rank for _ in parts]
    for dim in {rule.dim % rank for rule in rules}:
        along = [rule.axis for rule in rules if rule.dim % rank == dim]
        places = [tuple(part.axes[axis].coordinate for axis in along) for part in parts]
        sizes = {(place, shape[dim]) for place, shape in zip(places, shapes, strict=True)}
        if len(sizes) > len(set(places)):
            return Gap(FoldGap.OUTSIDE, f"ranks at one place of {', '.join(along)} have unlike sizes")
        size_at = dict(sorted(sizes))
        starts = {place: sum(size for other, size in size_at.items() if other < place) for place in size_at}
        for offset, place in zip(offsets, places, strict=True):
            offset[dim] = starts[place]
    return [Box(tuple(offset), shape) for offset, shape in zip(offsets, shapes, strict=True)]


def _partition(
    parts: Sequence[Part],
    shape: tuple[int, ...],
    *,
    keys: Sequence[_Key],
    boxes: Sequence[Box | None],
    terms: bool,
) -> Located:
    """Parts with equal keys are replicas; the rest must cover the whole once (each term of a sum on its own)."""
    members: dict[_Key, list[int]] = {}
    for place, (part, key) in enumerate(zip(parts, keys, strict=True)):
        if part.kind is None or part.kind.num_elements:
            members.setdefault(key, []).append(place)
    pieces = tuple(Piece(boxes[places[0]], tuple(places)) for places in members.values())
    if terms:
        complete = all(piece.box == whole(shape) for piece in pieces)
        return Layout(shape, pieces, pending=True) if complete else Gap(FoldGap.PENDING_SUM, "terms of parts")
    known = [piece.box for piece in pieces if piece.box is not None]
    if len(known) == len(pieces):
        if not known and not prod(shape):  # a whole without elements
            return Layout(shape, ())
        gap = partition_gap(shape, known)
        return Layout(shape, pieces) if gap is None else gap
    held = [parts[piece.members[0]].kind for piece in pieces]
    counted = sum(kind.num_elements for kind in held if kind is not None)
    num_elements: int = prod(shape)
    return Layout(shape, pieces) if counted == num_elements else Gap(FoldGap.NOT_ONE_BOX)
