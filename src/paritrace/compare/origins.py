"""Where differences come from: one group per differing call, regions that originate, consequences counted (CP-8).

Longer than 400 lines: the rules decide one call after another in order, on state that all of them share.
"""

from bisect import bisect_left, bisect_right, insort

import numpy as np

from paritrace.compare.agreement import Agreements, Sides
from paritrace.compare.blames import PRECEDENCE, Blame, Blames, Numbers, Origins, Root
from paritrace.compare.call_columns import CallColumns
from paritrace.compare.collective_origins import UnlikeCollectives
from paritrace.compare.digests import Digests
from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.flows import UNKNOWN, FromCall, FromOrigin, FromUncompared, Source, Views, source_at
from paritrace.compare.input_sources import OTHERWISE, input_sources
from paritrace.compare.lookups import compact, looked_up
from paritrace.compare.regions import STATEFUL, Regions
from paritrace.compare.result import Group
from paritrace.compare.telling import told_call, told_source, told_state
from paritrace.compare.verdicts import Verdict
from paritrace.compare.writers import in_the_optimizer, told_writers, unpaired_writers
from paritrace.evidence.calls import Level, OriginKind, Phase

NEVER = (1 << 63) - 1  # a step


def find_origins(sides: Sides, verdicts: Agreements, *, digests: Digests, regions: Regions) -> Origins:
    """Blame every pair that differs in bits, in the order in which the baseline finished them."""
    return _Search(sides, verdicts, digests=digests, regions=regions).run()


class _Search:
    def __init__(self, sides: Sides, verdicts: Agreements, *, digests: Digests, regions: Regions) -> None:
        self._sides = sides
        self._verdicts = verdicts
        self._digests = digests
        self._regions = regions
        calls = sides.baseline.calls
        apart = verdicts.verdicts.told(
            [bool(v.inputs or v.outputs or v.collective) for v in verdicts.verdicts.kinds], bool
        )
        differing = np.flatnonzero(apart)
        order = differing[np.argsort(calls.column("left")[differing], kind="stable")]
        self._found = Origins(blames=Blames(order, len(calls)))
        self._by_id = order[np.argsort(calls.column("id")[order], kind="stable")]
        self._differing = compact(calls.column("id")[self._by_id], "q")  # their ids, also of those not looked at yet
        self._sources: list[int] = []  # ids of those that are not mere consequences
        self._latest: Root | None = None
        self._first_step: int | None = None
        self._told_outside: set[FromOrigin] = set()
        self._unlike_collectives = UnlikeCollectives(sides)
        self._steps_with_operators = sides.baseline.steps_with_operators() | sides.candidate.steps_with_operators()
        self._first_inside = digests.first_inside()
        self._first_of_state = digests.first_at_begin()
        self._inputs = input_sources(sides, verdicts.verdicts)
        self._ids = calls.values("id")
        pairing = sides.pairing
        self._views = (Views(sides.baseline, pairing.partner_a), Views(sides.candidate, pairing.partner_b))

    def run(self) -> Origins:
        blames = self._found.blames
        order: list[int] = blames.order.tolist()
        for place, i in enumerate(order):
            if self._latest is not None:
                self._run_behind(place)
                break
            self._look_at(i, place)
        blames.ended = len(order)
        self._blame_states()
        return self._found

    def _run_behind(self, start: int) -> None:
        """Behind a first difference plain consequences need no look: they go back to what their makers go back to.

        What reads a state that differs since a step before goes back to the first difference, whose call is the one
        before `start`, unless an unlike collective may take its place.
        """
        blames, makers = self._found.blames, np.asarray(self._inputs.makers)
        first = np.asarray(self._inputs.first)[blames.order]
        kinds = self._verdicts.verdicts.kinds
        collective = self._verdicts.verdicts.told([kind.collective for kind in kinds], bool)[blames.order]
        states = np.zeros(len(makers), np.bool_) if collective.any() else self._old_states()
        followed = np.where(states, blames.order[start - 1], makers)
        made = np.where(first >= 0, followed[np.maximum(first, 0)] if len(followed) else -1, -1)
        places = np.arange(len(first))
        before = blames.places[np.maximum(made, 0)]
        told = np.ones(len(blames.places), np.bool_)
        told[self._inputs.calls[followed < 0]] = False
        plain = told[blames.order] & ~collective & (places >= start)
        plain &= (made >= 0) & (before >= 0) & (before < places)
        blames.take_plain(blames.order[plain], _anchors(blames, plain, made), self._consequence)
        for place in (np.flatnonzero(~plain[start:]) + start).tolist():
            self._look_at(int(blames.order[place]), place)
        blames.ended = len(first)
        self._count_plain(blames.order[plain])

    def _old_states(self) -> Numbers:
        """The differing inputs that are a named state which differs since a step before the call's."""
        makers, origins = np.asarray(self._inputs.makers), self._inputs.origins
        since = [self._first_difference_of(origin) if origin.kind in STATEFUL else None for origin in origins]
        steps = {context.id: context.step for context in self._sides.baseline.recorded.contexts.values()}
        step = looked_up(self._sides.baseline.calls.column("context")[self._inputs.calls], steps)
        first = np.array([*(NEVER if known is None else known for known in since), NEVER], np.int64)
        found: Numbers = step > first[np.where(makers < OTHERWISE, OTHERWISE - 1 - makers, -1)]
        return found

    def _look_at(self, i: int, place: int) -> None:
        self._found.blames.ended = place
        blame = self._blame(i, self._verdicts.verdicts[i])
        self._found.blames.single[i] = blame
        self._note(i, blame)

    def _count_plain(self, calls: Numbers) -> None:
        """Count plain consequences of what they go back to."""
        blames = self._found.blames
        values, which = np.unique(blames.anchors(calls), return_inverse=True)
        counts: list[int] = np.bincount(which, minlength=len(values)).tolist()
        for anchor, count in zip(values.tolist(), counts, strict=True):
            root = self._root(anchor)
            itself = root[0] == "call" and bool(blames.anchors(root[1]) == anchor)
            self._found.consequences[root] += count - itself

    def _blame_states(self) -> None:
        """Of the first step at which a figure differs: those that unpaired calls may have written, not told already."""
        different = self._digests.different
        first = min((head[0] for head in different.heads), default=None)
        order = self._found.blames.order
        told = int(self._sides.baseline.calls.values("left")[int(order[0])]) if len(order) else None
        for found in different.of_step(first):
            new = told is None or found.at < told
            if new and (blame := self._of_writers(found)) is not None:
                self._found.states[found[:5]] = blame

    def _note(self, i: int, blame: Blame) -> None:
        if blame.group not in (Group.PROPAGATES, Group.CONTAINS):
            insort(self._sources, self._ids[i])
        if self._first_step is None:
            self._first_step = self._sides.baseline.context_of(i)[0]
        if blame.outside is not None:
            self._told_outside.add(blame.outside)
        if blame.root is not None:
            if self._latest is None or (blame.root == ("call", i) and self._verdicts.verdicts[i].collective):
                self._latest = blame.root  # gradients and weights follow their reduction before all else
            if blame.root != ("call", i):
                self._found.consequences[blame.root] += 1

    def _blame(self, i: int, verdict: Verdict) -> Blame:
        if verdict.collective:
            return self._unlike_collectives.blame(i)
        if not verdict.inputs:
            return self._without_input(i, verdict)
        at = self._inputs.first[i]
        blames = [self._of_differing(i, place, at + number) for number, place in enumerate(verdict.inputs)]
        return blames[0] if len(blames) == 1 else min(blames, key=lambda blame: PRECEDENCE.index(blame.group))

    def _of_differing(self, i: int, place: int, at: int) -> Blame:
        """The same as `_of_input`, where what both sides read is known already."""
        maker = self._inputs.makers[at]
        if maker >= 0:
            return self._following(at)
        if maker == OTHERWISE:
            return self._of_input(i, place)
        origin = self._inputs.origins[OTHERWISE - 1 - maker]
        blame = self._of_names(i, origin, origin)
        return blame._replace(slot=place) if blame.root else blame._replace(slot=place, root=("call", i))

    def _following(self, at: int) -> Blame:
        """A plain consequence: both sides read an output of one pair that differs."""
        maker = self._inputs.makers[at]
        return Blame(Group.PROPAGATES, told_call(self._sides, maker), self._root(maker), self._inputs.places[at])

    def _consequence(self, i: int) -> Blame:
        at = self._inputs.first[i]
        maker = self._inputs.makers[at]
        if maker >= 0:
            return self._following(at)
        origin = self._inputs.origins[OTHERWISE - 1 - maker]
        return self._of_state(i, origin)._replace(slot=self._inputs.places[at])

    # --- calls whose inputs agree ------------------------------------------------------------------------------

    def _without_input(self, i: int, verdict: Verdict) -> Blame:
        inner = self._inner(i)
        if inner is not None:
            return inner
        if self._only_observes(i):
            if self._latest is not None:
                return Blame(Group.PROPAGATES, "a gradient observed after an earlier difference", self._latest)
            told = "a gradient was observed here; the calls that made it were not recorded"
            return Blame(Group.UNDETERMINED, told, ("call", i))
        if verdict.unseen_inputs:
            return self._of_unseen(i, verdict)
        return Blame(Group.ORIGINATES, root=("call", i))

    def _of_unseen(self, i: int, verdict: Verdict) -> Blame:
        """An input that could not be compared may still come from somewhere that is known to differ."""
        for place in verdict.unseen_inputs:
            blame = self._through(i, place)
            if blame is not None:
                return blame
        return Blame(Group.UNDETERMINED, "an input could not be compared", ("call", i))

    def _through(self, i: int, place: int) -> Blame | None:
        """Follow an input that could not be compared upstream, through pairs of which nothing is known."""
        waiting, seen = [(i, place)], {(i, place)}
        while waiting:
            left, right = self._source_pair(*waiting.pop())
            if not isinstance(left, FromCall) or not isinstance(right, FromCall):
                continue
            if self._sides.pairing.partner_a[left.call] != right.call:
                blame = self._of_makers(i, left, right)
                if blame.group in (Group.AFTER_UNALIGNED, Group.PROPAGATES):
                    return blame
            elif left.call in self._found.blames:
                return Blame(Group.PROPAGATES, told_call(self._sides, left.call), self._root(left.call))
            else:
                verdict = self._verdicts.verdicts.get(left.call)
                more = [] if verdict is None else [(left.call, unseen) for unseen in verdict.unseen_inputs]
                waiting += [step for step in more if step not in seen]
                seen.update(more)
        return None

    def _source_pair(self, i: int, place: int) -> tuple[Source, Source]:
        """Where both sides read this input from; unknown for a slot that only one side has."""
        ours, theirs = self._sides.baseline, self._sides.candidate
        if place < 0:
            return UNKNOWN, UNKNOWN
        slot = ours.calls.inputs_of(i)[place]
        name, names = ours.words.names[slot], theirs.words.names
        others = theirs.calls.inputs_of(self._sides.pairing.partner_a[i])
        other = next((s for s in others if names[s] == name), None)
        return source_at(ours, slot), UNKNOWN if other is None else source_at(theirs, other)

    def _only_observes(self, i: int) -> bool:
        """A gradient at a module's output: the record shows a value and computed nothing."""
        side = self._sides.baseline
        backward = side.context_of(i)[2] == Phase.BACKWARD
        return backward and side.level_of(i) is Level.MODULE and not side.calls[i].inputs

    def _inner(self, i: int) -> Blame | None:
        """The innermost originates: an enclosing call contains it (CP-8)."""
        call = self._sides.baseline.calls[i]
        sources = _within(self._sources, call.id, call.left)
        if sources:
            first = self._sides.baseline.index_of[sources[0]]
            return Blame(Group.CONTAINS, root=self._found.blames[first].root)
        index_of, blames = self._sides.baseline.index_of, self._found.blames
        span = range(bisect_right(self._differing, call.id), bisect_left(self._differing, call.left))
        inner = next((self._differing[at] for at in span if int(self._by_id[at]) in blames), None)
        if inner is not None:
            root = self._root(index_of[inner])
            if root != ("call", i):
                return Blame(Group.PROPAGATES, "a call inside reads something that differed before", root)
        return self._inner_region(i)

    def _inner_region(self, i: int) -> Blame | None:
        places = self._regions_inside(i)
        for place in reversed(places):
            border = self._regions.border(frozenset((place,)))
            if border.agrees:
                self._found.regions.setdefault(place, i)
                return Blame(Group.CONTAINS, root=("region", place))
        if not places:
            return None
        return Blame(Group.AFTER_UNALIGNED, "calls inside are unaligned", ("region", places[-1]))

    def _regions_inside(self, i: int) -> list[int]:
        """The stretches with a call inside this pair of calls, in the order of the side that has them."""
        ours, theirs = self._sides.baseline.calls, self._sides.candidate.calls
        j = self._sides.pairing.partner_a[i]
        found = {
            place: None
            for belongs, calls, index in (
                (self._regions.stretches.of_a, ours, i),
                (self._regions.stretches.of_b, theirs, j),
            )
            for inner in _inside(calls, index)
            if (place := belongs[inner]) >= 0
        }
        return list(found)

    # --- calls with a differing input --------------------------------------------------------------------------

    def _of_input(self, i: int, place: int) -> Blame:
        left, right = self._source_pair(i, place)
        match left, right:
            case FromCall(), FromCall():
                blame = self._of_makers(i, left, right)
            case FromOrigin(), FromOrigin():
                blame = self._of_names(i, left, right)
            case (FromCall() as maker, _) if self._sides.pairing.partner_a[maker.call] < 0:
                blame = self._of_unaligned(self._places(0, maker.call))
            case (_, FromCall() as maker) if self._sides.pairing.partner_b[maker.call] < 0:
                blame = self._of_unaligned(self._places(1, maker.call))
            case (FromUncompared(), _) | (_, FromUncompared()):
                blame = Blame(Group.UNDETERMINED, "what made this input is not part of the comparison")
            case _ if UNKNOWN in (left, right):
                undecided = Blame(Group.UNDETERMINED, "what made this input was not recorded")
                blame = self._of_unrecorded(i, undecided)
            case _:
                blame = Blame(
                    Group.REWIRED,
                    self._moved(left, right),
                )
        return blame._replace(slot=place) if blame.root else blame._replace(slot=place, root=("call", i))

    def _of_makers(self, i: int, left: FromCall, right: FromCall) -> Blame:
        pairing = self._sides.pairing
        partner, other = pairing.partner_a[left.call], pairing.partner_b[right.call]
        if partner == right.call:
            if left.output != right.output:
                return Blame(Group.REWIRED, "another output of the same call is read")
            return self._of_maker(i, left, right)
        if partner >= 0 and other >= 0:
            return Blame(
                Group.REWIRED,
                self._moved(left, right),
            )
        places: frozenset[int] = frozenset()
        if partner < 0:
            places |= self._places(0, left.call)
        if other < 0:
            places |= self._places(1, right.call)
        blame = self._of_unaligned(places)
        for maker, aligned in ((left.call, partner >= 0), (pairing.partner_b[right.call], other >= 0)):
            if aligned and blame.group is Group.AFTER_UNALIGNED and self._output_differs(maker):
                return Blame(Group.PROPAGATES, told_call(self._sides, maker), self._root(maker))
        return blame

    def _of_maker(self, i: int, left: FromCall, right: FromCall) -> Blame:
        """Both sides read the same output of a paired call."""
        verdict = self._verdicts.verdicts.get(left.call)
        if verdict is not None and (
            left.output in verdict.outputs
            or (left.output in verdict.unseen_outputs and left.call in self._found.blames)
        ):
            return Blame(Group.PROPAGATES, told_call(self._sides, left.call), self._root(left.call))
        viewed = self._viewed(i, left, right)
        if viewed:
            return self._of_unaligned(viewed)
        if verdict is not None and left.output in verdict.unseen_outputs:
            return Blame(Group.UNDETERMINED, f"the output of {told_call(self._sides, left.call)} was not captured")
        told = f"written by nothing recorded after {told_call(self._sides, left.call)} made it"
        return self._of_unrecorded(i, Blame(Group.OUTSIDE, told))

    def _of_names(self, i: int, left: FromOrigin, right: FromOrigin) -> Blame:
        if left.kind is OriginKind.RNG and right.kind is OriginKind.RNG:
            return self._of_generator(i, left)
        if UNKNOWN in (left, right) and left != right:
            return self._of_unrecorded(i, Blame(Group.UNDETERMINED, "what made this input was not recorded"))
        if left != right:
            return Blame(
                Group.REWIRED,
                self._moved(left, right),
            )
        if left.kind in STATEFUL or left.kind is OriginKind.GRADIENT:
            return self._of_state(i, left)
        viewed = self._viewed(i, left, right)
        if viewed:
            return self._of_unaligned(viewed)
        if self._latest is not None and left.kind is not OriginKind.BATCH:
            after = Blame(Group.UNDETERMINED, "an input that no recorded call made, after earlier differences")
            return self._of_unrecorded(i, after)
        what = told_source(self._sides, left, 0) if left.name else "a tensor that no recorded call made"
        outside = Blame(Group.OUTSIDE, what, outside=left)
        return outside if left.name else self._of_unrecorded(i, outside)

    def _of_unrecorded(self, i: int, otherwise: Blame) -> Blame:
        """Where operators were not recorded, what lies between two modules is code of the module around them."""
        if self._sides.baseline.context_of(i)[0] in self._steps_with_operators:
            return otherwise
        parent = self._sides.baseline.index_of.get(self._sides.baseline.calls.values("parent")[i], -1)
        verdict = self._verdicts.verdicts.get(parent)
        if verdict is None or verdict.unseen_inputs or not (verdict.inputs or verdict.outputs):
            return Blame(Group.UNDETERMINED, "made by code that was not recorded")
        cause = f"made by code of {told_call(self._sides, parent)} that was not recorded"
        root = self._of_input(parent, verdict.inputs[0]).root if verdict.inputs else ("call", parent)
        return Blame(Group.PROPAGATES, cause, root)

    def _of_state(self, i: int, origin: FromOrigin) -> Blame:
        """A named state that differs: since before anything differed, or since a step that followed a difference."""
        first = self._first_difference_of(origin)
        told = told_source(self._sides, origin, 0)
        if first is None:
            viewed = self._viewed(i, origin, origin)
            if viewed:
                return self._of_unaligned(viewed)
            if self._latest is not None:
                return Blame(Group.PROPAGATES, f"{told}, after an earlier difference", self._latest)
        elif self._latest is not None and self._explained(i, origin, first):
            return Blame(Group.PROPAGATES, f"{told} differs since step {first}", self._latest)
        if first is not None and self._first_inside is not None and self._first_inside < first:
            return Blame(Group.PROPAGATES, f"{told} differs since step {first}, after other figures of a step before")
        found = None if first is None else self._state_at(origin, first)
        if found is None:
            return Blame(Group.OUTSIDE, told, outside=origin)
        return self._of_writers(found) or Blame(Group.OUTSIDE, told_state(self._digests, found), outside=origin)

    def _state_at(self, origin: FromOrigin, step: int) -> DigestDifference | None:
        """A named state as the inventory of that step shows it."""
        return self._digests.different.get((step, 0, "begin", STATEFUL.get(origin.kind, ""), origin.name))

    def _of_writers(self, found: DigestDifference) -> Blame | None:
        """A state that calls without a partner may have written since it was seen last; None if there are none."""
        writers = unpaired_writers(self._sides, self._digests, found)
        if not any(writers):
            return None
        places = frozenset(self._regions.of(side, i) for side in (0, 1) for i in writers[side])
        if in_the_optimizer(self._sides, writers) and len(places) == 1 and min(places) >= 0:
            return self._of_unaligned(places)
        place = max(places)
        root = ("region", place) if place >= 0 else None
        return Blame(Group.AFTER_UNALIGNED, told_writers(self._sides, found, writers), root)

    def _explained(self, i: int, origin: FromOrigin, first: int) -> bool:
        """Whether a state that differs since the begin of step `first` follows from something told already."""
        if origin in self._told_outside or self._sides.baseline.context_of(i)[0] > first:
            return True
        return self._first_step is not None and self._first_step < first

    def _of_generator(self, i: int, origin: FromOrigin) -> Blame:
        """A generator's state goes back to the draw before it on each side."""
        j = self._sides.pairing.partner_a[i]
        before, other = self._regions.draws[0].previous(i), self._regions.draws[1].previous(j)
        pairing = self._sides.pairing
        if before < 0 and other < 0:
            return Blame(Group.OUTSIDE, told_source(self._sides, origin, 0), outside=origin)
        if before >= 0 and pairing.partner_a[before] == other:
            if before in self._found.blames:
                return Blame(Group.PROPAGATES, told_call(self._sides, before), self._root(before))
            return Blame(Group.OUTSIDE, told_source(self._sides, origin, 0), outside=origin)
        places: frozenset[int] = frozenset()
        if before >= 0 and pairing.partner_a[before] < 0:
            places |= self._places(0, before)
        if other >= 0 and pairing.partner_b[other] < 0:
            places |= self._places(1, other)
        if places:
            return self._of_unaligned(places)
        return Blame(Group.REWIRED, f"{told_source(self._sides, origin, 0)}: random numbers are drawn in another order")

    def _of_unaligned(self, places: frozenset[int]) -> Blame:
        places = frozenset(place for place in places if place >= 0)
        if not places:
            return Blame(Group.AFTER_UNALIGNED, "made by an unaligned call")
        border = self._regions.border(places)
        place = max(places, key=self._regions.ends_at)
        if border.differing_call >= 0:
            return Blame(
                Group.PROPAGATES, told_call(self._sides, border.differing_call), self._root(border.differing_call)
            )
        if border.differing_name is not None:
            told = told_source(self._sides, border.differing_name, 0)
            if self._latest is not None:
                return Blame(Group.PROPAGATES, told, self._latest)
            return Blame(Group.OUTSIDE, told, outside=border.differing_name)
        if border.agrees:
            self._found.regions.setdefault(place, -1)
        return Blame(Group.AFTER_UNALIGNED, "made by an unaligned stretch", ("region", place))

    # --- what the rules ask ------------------------------------------------------------------------------------

    def _places(self, side: int, index: int) -> frozenset[int]:
        return frozenset((self._regions.of(side, index),))

    def _viewed(self, i: int, left: Source, right: Source) -> frozenset[int]:
        """The stretches of unpaired views through which either side may read."""
        j = self._sides.pairing.partner_a[i]
        found = [self._regions.of(0, view) for view in self._views[0].between(left, before=i)]
        found += [self._regions.of(1, view) for view in self._views[1].between(right, before=j)]
        return frozenset(place for place in found if place >= 0)

    def _first_difference_of(self, origin: FromOrigin) -> int | None:
        """The first step at whose begin this named state differs, None if the inventories do not show it."""
        return self._first_of_state.get(STATEFUL.get(origin.kind, ""), {}).get(origin.name)

    def _output_differs(self, i: int) -> bool:
        verdict = self._verdicts.verdicts.get(i)
        return verdict is not None and bool(verdict.outputs)

    def _moved(self, left: Source, right: Source) -> str:
        return f"read from {told_source(self._sides, left, 0)}, now from {told_source(self._sides, right, 1)}"

    def _root(self, i: int) -> Root:
        return self._found.blames.root(i)


def _anchors(blames: Blames, plain: Numbers, makers: Numbers) -> Numbers:
    """Of each plain consequence the first call, from maker to maker, that is none; by place in the order."""
    follows = np.full(len(blames.places), -1, np.int64)
    calls, target = blames.order[plain], makers[plain]
    follows[calls] = target
    while True:
        further = follows[target]
        if not (further >= 0).any():
            return target
        target = np.where(further >= 0, further, target)
        follows[calls] = target


def _within(ids: list[int], first: int, last: int) -> list[int]:
    """The ids strictly between two sequence numbers."""
    return ids[bisect_right(ids, first) : bisect_left(ids, last)]


def _inside(calls: CallColumns, index: int) -> range:
    """The indices of the calls that a call encloses: they follow it directly."""
    return range(index + 1, bisect_left(calls.values("id"), calls.values("left")[index]))
