"""Comparing what is known of each step without its calls: state inventory, losses, gradient norms (CA-29, A-13)."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import LossMark, StepMark
from paritrace.evidence.gaps import Gap

Key = tuple[int, int, str, str, str]
"""Step, micro-batch, moment, group, name."""

BATCH, BATCH_ORDER = "batch", "batch_order"

POSITIONS = frozenset({"sampler", "data_position"})

Figures = dict[Key, str | None]


class DigestDifference(NamedTuple):
    """One figure of a step that differs, in the words it was recorded in."""

    step: int
    microbatch: int
    moment: str
    group: str
    name: str
    baseline: str
    candidate: str
    at: int = -1  # `left` of the baseline's call before it
    other_at: int = -1  # and of the candidate's


class Digests(NamedTuple):
    """What both sides recorded per step: keys that agree, keys that differ, keys that only one side could state."""

    equal: set[Key]
    different: dict[Key, DigestDifference]
    unknown: set[Key]
    places: tuple[dict[Key, int], dict[Key, int]] = ({}, {})  # `left` of the call before each figure, by side

    def by_step(self) -> "FiguresByStep":
        """Which groups differ, and which agree anywhere, at each step."""
        return FiguresByStep(frozenset(self.different), _groups(self.different), _groups(self.equal))

    def find(self, step: int, group: str, name: str) -> DigestDifference | None:
        """The first figure of this step and name that differs."""
        found = [f for f in self.different.values() if (f.step, f.group, f.name) == (step, group, name)]
        return min(found, key=lambda f: (f.at, f.microbatch), default=None)

    def agreed_before(self, found: DigestDifference) -> bool:
        """Whether a state that differs at the begin of a step was seen to agree at the begin of the step before."""
        return found.moment == "begin" and (found.step - 1, 0, "begin", found.group, found.name) in self.equal

    def first_inside(self) -> int | None:
        """The first step at which a batch, a loss or gradients differ: a state of a later step may follow."""
        return min((key[0] for key in self.different if key[2] != "begin"), default=None)

    def steps_inside(self) -> set[int]:
        """The steps of which both sides stated anything but the begin, which is also the end of the step before."""
        return {key[0] for keys in (self.equal, self.different) for key in keys if key[2] != "begin"}

    def different_of(self, step: int | None) -> list[DigestDifference]:
        """The figures of a step that differ."""
        return [found for key, found in self.different.items() if key[0] == step]


class FiguresByStep(NamedTuple):
    """What the figures of any step come to, told once: a ladder asks for each of many steps."""

    different: frozenset[Key]
    differing: dict[int, frozenset[str]]  # step -> groups
    agreeing: dict[int, frozenset[str]]

    def differs(self, step: int, *groups: str) -> bool:
        """Whether anything of these groups differs at this step."""
        return not self.differing.get(step, NO_GROUPS).isdisjoint(groups)

    def agrees(self, step: int, *groups: str) -> bool:
        """Whether anything of these groups was compared at this step and nothing of them differs."""
        return not self.agreeing.get(step, NO_GROUPS).isdisjoint(groups) and not self.differs(step, *groups)


NO_GROUPS = frozenset[str]()


def _groups(keys: Iterable[Key]) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    for step, group in {(key[0], key[3]) for key in keys}:
        found.setdefault(step, set()).add(group)
    return {step: frozenset(groups) for step, groups in found.items()}


def compare_digests(baseline: Recorded, candidate: Recorded, *, settings: Settings) -> Digests:
    """Compare the two sides figure by figure; a gap on either side makes the figure unknown."""
    places: tuple[dict[Key, int], dict[Key, int]] = ({}, {})
    reading = (
        settings.seen_from("baseline", baseline.session.rank),
        settings.seen_from("candidate", candidate.session.rank),
    )
    keys: _Keys = {}
    ours, theirs = (
        _figures(side, own, where, keys)
        for side, own, where in zip((baseline, candidate), reading, places, strict=True)
    )
    found = Digests(set(), {}, set(), places)
    summed = (_gradients(ours), _gradients(theirs))
    apart = {step for step in summed[0].keys() | summed[1].keys() if summed[0].get(step) != summed[1].get(step)}
    equal, different = found.equal.add, found.different
    for key, left in ours.items():
        right = theirs.get(key)
        if left is None or right is None or (key[3] == "grad_norm" and key[0] in apart):
            found.unknown.add(key)
        elif left == right:
            equal(key)
        else:
            different[key] = DigestDifference(*key, left, right, places[0][key], places[1][key])
    found.unknown.update(theirs.keys() - ours.keys())
    _join_orders(found)
    for key in {
        *_idle_generators(found, ours, theirs),
        *_idle_positions(found),
        *_ended_generators(found, ours, theirs),
    }:
        del found.different[key]
        found.unknown.add(key)
    return found


def _gradients(figures: Figures) -> dict[int, frozenset[str]]:
    """The gradients with a value, by step: norms over other parameters are sums of unlike things, not comparable."""
    found: dict[int, set[str]] = defaultdict(set)
    for (step, _, _, group, name), value in figures.items():
        if group == "gradient" and value is not None:
            found[step].add(name)
    return {step: frozenset(names) for step, names in found.items()}


def _join_orders(found: Digests) -> None:
    """Make one figure of a batch's elements and their order: the batch differs if either does."""
    for keys in (found.equal, found.unknown):
        keys -= {key for key in keys if key[3] == BATCH_ORDER}
    for key in [key for key in found.different if key[3] == BATCH_ORDER]:
        whole = (*key[:3], BATCH, key[4])
        order = found.different.pop(key)
        if whole in found.equal:
            found.equal.remove(whole)
            found.different[whole] = order._replace(group=BATCH)


def _idle_generators(found: Digests, ours: Figures, theirs: Figures) -> list[Key]:
    """Differing states of generators that no side was seen to draw from: their seeds differ and nothing reads them."""
    differing = [key for key in found.different if key[3] == "rng"]
    moved = {name for figures in (ours, theirs) for name in _moved_generators(figures)}
    return [key for key in differing if key[4] not in moved]


def _idle_positions(found: Digests) -> list[Key]:
    """Differing states of samplers and loaders in steps whose batches agree: they gave the same data all the same."""
    other_data = {key[0] for key in found.different if key[3] in (BATCH, BATCH_ORDER)}
    return [key for key in found.different if key[3] in POSITIONS and key[0] not in other_data]


def _ended_generators(found: Digests, ours: Figures, theirs: Figures) -> list[Key]:
    """Differing states of generators in a step that one side alone went into.

    The begin of a step is taken when its first batch is read, after what was drawn for it; the last one of a session
    is taken when the session ends, before anything was drawn: two moments, of which a difference says nothing.
    """
    entered = [{key[0] for key in figures if key[2] != "begin"} for figures in (ours, theirs)]
    return [key for key in found.different if key[3] == "rng" and (key[0] in entered[0]) != (key[0] in entered[1])]


def _moved_generators(figures: Figures) -> set[str]:
    """The generators whose state changed from one step's begin to another's."""
    values: dict[str, set[str]] = {}
    for key, value in figures.items():
        if key[3] == "rng" and value is not None:
            values.setdefault(key[4], set()).add(value)
    return {name for name, seen in values.items() if len(seen) > 1}


_Keys = dict[tuple[int, int, str, str, tuple[str, ...]], list[Key]]
"""The keys of a state's figures by what they are made of: both sides share them."""


def _figures(side: Recorded, settings: Settings, places: dict[Key, int], known: _Keys) -> Figures:
    """Every figure of one side; `places` takes up where each stood among the calls."""
    found: Figures = {}
    spelled: dict[int, tuple[tuple[int, ...], tuple[str, ...]]] = {}
    for state in side.states:
        names = side.state_names[state.names]
        if state.names not in spelled:
            spelled[state.names] = _spelled(names.names, settings)
        where, spellings = spelled[state.names]
        num_values = bisect_left(where, len(state.values))
        row = (state.step, state.microbatch, state.moment, names.group, spellings[:num_values])
        keys = known.get(row)
        if keys is None:
            keys = known[row] = [(*row[:4], name) for name in row[4]]
        values = [state.values[place] for place in where[:num_values]]
        found |= zip(keys, values if _all_texts(values) else map(_value, values), strict=True)
        places |= dict.fromkeys(keys, side.stood_at[id(state)])
    for mark, key, value in _marks(side):
        found[key], places[key] = _value(value), side.stood_at[id(mark)]
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
