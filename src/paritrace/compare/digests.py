"""Comparing what is known of each step without its calls: state inventory, losses, gradient norms (CA-29, A-13)."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

from paritrace.compare.figure_rows import (
    Differing,
    DigestDifference,
    FigureKeys,
    FigureRows,
    Head,
    Key,
    Values,
)
from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings
from paritrace.compare.state_groups import GRADIENT
from paritrace.evidence.calls import LossMark, StepMark
from paritrace.evidence.gaps import CaptureGap, Gap

BATCH, BATCH_ORDER = "batch", "batch_order"

POSITIONS = frozenset({"sampler", "data_position"})
GENERATORS = frozenset({"rng"})
NO_GRADIENT = Gap(CaptureGap.NOT_OBSERVED)  # of a parameter whose `grad` is None


class Digests(NamedTuple):
    """What both sides recorded per step: keys that agree, keys that differ, keys that only one side could state."""

    equal: FigureKeys
    different: Differing
    unknown: FigureKeys
    sides: tuple[FigureRows, FigureRows]  # all that each side recorded

    def by_step(self) -> "FiguresByStep":
        """Which groups differ, and which agree anywhere, at each step."""
        different = {head: frozenset(self.different.names(head)) for head in self.different.heads}
        return FiguresByStep(different, _groups(self.different.heads), _groups(self.equal.heads))

    def find(self, step: int, group: str, name: str) -> DigestDifference | None:
        """The first figure of this step and name that differs."""
        found = [f for f in self.different.of_step(step) if (f.group, f.name) == (group, name)]
        return min(found, key=lambda f: (f.at, f.microbatch), default=None)

    def agreed_before(self, found: DigestDifference) -> bool:
        """Whether a state that differs at the begin of a step was seen to agree at the begin of the step before."""
        return found.moment == "begin" and (found.step - 1, 0, "begin", found.group, found.name) in self.equal

    def first_inside(self) -> int | None:
        """The first step at which a batch, a loss or gradients differ: a state of a later step may follow."""
        return min((head[0] for head in self.different.heads if head[2] != "begin"), default=None)

    def first_at_begin(self) -> dict[str, dict[str, int]]:
        """The first step at whose begin a state differs, by group and name."""
        found: dict[str, dict[str, int]] = {}
        for head in sorted(head for head in self.different.heads if head[2] == "begin"):
            known = found.setdefault(head[3], {})
            known.update(dict.fromkeys(self.different.names(head) - known.keys(), head[0]))
        return found

    def steps_inside(self) -> set[int]:
        """The steps of which both sides stated anything but the begin, which is also the end of the step before."""
        return {head[0] for keys in (self.equal, self.different) for head in keys.heads if head[2] != "begin"}


class FiguresByStep(NamedTuple):
    """What the figures of any step come to, told once: a ladder asks for each of many steps."""

    different: dict[Head, frozenset[str]]  # the names that differ
    differing: dict[int, frozenset[str]]  # step -> groups
    agreeing: dict[int, frozenset[str]]

    def differs(self, step: int, *groups: str) -> bool:
        """Whether anything of these groups differs at this step."""
        return not self.differing.get(step, NO_GROUPS).isdisjoint(groups)

    def agrees(self, step: int, *groups: str) -> bool:
        """Whether anything of these groups was compared at this step and nothing of them differs."""
        return not self.agreeing.get(step, NO_GROUPS).isdisjoint(groups) and not self.differs(step, *groups)


NO_GROUPS = frozenset[str]()


def _groups(heads: Iterable[Head]) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    for step, _, _, group in heads:
        found.setdefault(step, set()).add(group)
    return {step: frozenset(groups) for step, groups in found.items()}


def compare_digests(baseline: Recorded, candidate: Recorded, *, settings: Settings) -> Digests:
    """Compare the two sides figure by figure; a gap on either side makes the figure unknown."""
    ours, theirs = (
        _figures(side, settings.seen_from(name, side.session.rank))
        for name, side in (("baseline", baseline), ("candidate", candidate))
    )
    found = Digests(FigureKeys(), Differing((ours, theirs)), FigureKeys(), (ours, theirs))
    summed = (_gradients(ours), _gradients(theirs))
    apart = {step for step in summed[0].keys() | summed[1].keys() if summed[0].get(step) != summed[1].get(step)}
    for head, names in ours.order:
        left, right = ours.rows[head], theirs.rows.get(head)
        if right is None or (head[3] == "grad_norm" and head[0] in apart):
            found.unknown.add_row(head, names)
        elif left == right and None not in left.values():
            found.equal.add_row(head, names)
        else:
            _compare_row(found, head, names, values=(left, right))
    for head, right in theirs.rows.items():
        found.unknown.add_row(head, right.keys() - ours.rows.get(head, {}).keys())
    _join_orders(found)
    for key in {*_idle_generators(found), *_idle_positions(found), *_ended_generators(found)}:
        found.different.remove(key)
        found.unknown.add(key)
    return found


def _compare_row(found: Digests, head: Head, names: Iterable[str], *, values: tuple[Values, Values]) -> None:
    """The same for the names of a row that is not wholly equal."""
    ours, theirs = values
    both = [(name, ours[name], theirs.get(name)) for name in names]
    found.unknown.add_row(head, [name for name, left, right in both if left is None or right is None])
    known = [(name, left, right) for name, left, right in both if left is not None and right is not None]
    found.equal.add_row(head, [name for name, left, right in known if left == right])
    found.different.add_row(head, {name: (left, right) for name, left, right in known if left != right})


def _gradients(figures: FigureRows) -> dict[int, frozenset[str]]:
    """The gradients with a value, by step: norms over other parameters are sums of unlike things, not comparable."""
    found: dict[int, set[str]] = defaultdict(set)
    for (step, _, _, group), values in figures.rows.items():
        if group == GRADIENT:
            found[step].update(name for name, value in values.items() if value is not None)
    return {step: frozenset(names) for step, names in found.items() if names}


def _join_orders(found: Digests) -> None:
    """Make one figure of a batch's elements and their order: the batch differs if either does."""
    found.equal.remove_group(BATCH_ORDER)
    found.unknown.remove_group(BATCH_ORDER)
    for key in found.different.of_groups((BATCH_ORDER,)):
        order = found.different[key]
        found.different.remove(key)
        if (*key[:3], BATCH, key[4]) in found.equal:
            found.equal.remove((*key[:3], BATCH, key[4]))
            found.different.add(order._replace(group=BATCH))


def _idle_generators(found: Digests) -> list[Key]:
    """Differing states of generators that no side was seen to draw from: their seeds differ and nothing reads them."""
    moved = {name for figures in found.sides for name in _moved_generators(figures)}
    return [key for key in found.different.of_groups(GENERATORS) if key[4] not in moved]


def _idle_positions(found: Digests) -> list[Key]:
    """Differing states of samplers and loaders in steps whose batches agree: they gave the same data all the same."""
    other_data = {head[0] for head in found.different.heads if head[3] in (BATCH, BATCH_ORDER)}
    return [key for key in found.different.of_groups(POSITIONS) if key[0] not in other_data]


def _ended_generators(found: Digests) -> list[Key]:
    """Differing states of generators in a step that one side alone went into.

    The begin of a step is taken when its first batch is read, after what was drawn for it; the last one of a session
    is taken when the session ends, before anything was drawn: two moments, of which a difference says nothing.
    """
    entered = [{head[0] for head in figures.rows if head[2] != "begin"} for figures in found.sides]
    differing = found.different.of_groups(GENERATORS)
    return [key for key in differing if (key[0] in entered[0]) != (key[0] in entered[1])]


def _moved_generators(figures: FigureRows) -> set[str]:
    """The generators whose state changed from one step's begin to another's."""
    seen: dict[str, set[str]] = {}
    for head, values in figures.rows.items():
        for name, value in values.items() if head[3] in GENERATORS else ():
            if value is not None:
                seen.setdefault(name, set()).add(value)
    return {name for name, values in seen.items() if len(values) > 1}


def _figures(side: Recorded, settings: Settings) -> FigureRows:
    """Every figure of one side, with where it stood among the calls."""
    found = FigureRows()
    spelled: dict[int, tuple[tuple[int, ...], tuple[str, ...]]] = {}
    for state in side.states:
        names = side.state_names[state.names]
        if state.names not in spelled:
            spelled[state.names] = _spelled(names.names, settings)
        where, spellings = spelled[state.names]
        values = [state.values[place] for place in where[: bisect_left(where, len(state.values))]]
        head = (state.step, state.microbatch, state.moment, names.group)
        row = dict(zip(spellings, values if _all_texts(values) else map(_value, values), strict=False))
        found.add(head, row, at=side.stood_at[id(state)])
        if names.group == GRADIENT and None in row.values():
            absent = (name for name, value in zip(spellings, values, strict=False) if value == NO_GRADIENT)
            found.absent[head] = found.absent.get(head, frozenset()) | frozenset(absent)
    for mark, key, value in _marks(side):
        found.add(key[:4], {key[4]: _value(value)}, at=side.stood_at[id(mark)])
    return found


def _spelled(names: Iterable[str], settings: Settings) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The places of the names of a group that are not left out, rising, and how they are spelled."""
    found = [(place, settings.spelled(name)) for place, name in enumerate(names)]
    kept = [(place, name) for place, name in found if not settings.ignores(name)]
    return tuple(place for place, _ in kept), tuple(name for _, name in kept)


def _marks(side: Recorded) -> Iterator[tuple[LossMark | StepMark, Key, object]]:
    seen = Counter[tuple[int, int]]()
    for loss in side.losses:
        earlier = seen[loss.step, loss.microbatch]
        seen[loss.step, loss.microbatch] += 1
        name = "loss" if not earlier else f"loss[{earlier}]"
        yield loss, (loss.step, loss.microbatch, "loss", "loss", name), loss.value
    for step in side.steps:
        yield step, (step.step, 0, "grad_norm", "grad_norm", "grad_norm"), step.grad_norm


def _all_texts(values: list[Any]) -> "TypeGuard[list[str]]":
    return set(map(type, values)) <= {str}


def _value(value: object) -> str | None:
    return value if type(value) is str else None if isinstance(value, Gap) else str(value)
