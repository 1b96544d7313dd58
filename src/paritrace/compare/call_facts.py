"""What a comparison says of each call of the baseline, as columns; their last place is of calls without a partner."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from paritrace.compare.agreement import bits_decide, judged_slots, status_of
from paritrace.compare.blames import Blame, Root
from paritrace.compare.call_blocks import Coded
from paritrace.compare.fields import class_of
from paritrace.compare.lookups import Numbers
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Agreement, Basis, DifferenceClass, Group, Status
from paritrace.compare.slot_pairs import Unequal, unequal
from paritrace.correspondence.pairing import BASES

SOURCES = frozenset({Group.ORIGINATES, Group.CONTAINS})
GROUPS = (None, *Group)
CLASSES = (None, *DifferenceClass)


class CallFacts:
    """One rank's comparison by the baseline's index: `codes[-1]` of each column is what no pair has."""

    def __init__(self, of: RankComparison, *, regrouped: Mapping[Root, Group]) -> None:
        self.of = of
        verdicts = of.verdicts.verdicts
        self.statuses: Coded[Status] = Coded(
            np.append(verdicts.codes + 1, 0), (Status.UNALIGNED, Status.OK, *map(status_of, verdicts.kinds))
        )
        self.bases: Coded[Basis | None] = Coded(np.append(of.sides.pairing.basis.codes, 0), (None, *BASES))
        self.groups: Coded[Group | None] = Coded(_groups(of, regrouped), GROUPS)
        self.classes: Coded[DifferenceClass | None] = Coded(_classes(of), CLASSES)
        self.keys = _key_texts(of)


def _groups(of: RankComparison, regrouped: Mapping[Root, Group]) -> Numbers:
    """The group of each call; `regrouped`: what other ranks made of this rank's origins."""
    blames = of.origins.blames
    found = np.zeros(len(of.sides.baseline.calls) + 1, np.int8)
    found[blames.order] = GROUPS.index(Group.PROPAGATES)
    for i, blame in blames.single.items():
        found[i] = GROUPS.index(_group(blame, regrouped))
    return found


def _group(blame: Blame, regrouped: Mapping[Root, Group]) -> Group:
    return regrouped.get(blame.root, blame.group) if blame.root and blame.group in SOURCES else blame.group


# --- the class of each difference ----------------------------------------------------------------------------------


def _classes(of: RankComparison) -> Numbers:
    verdicts, partners = of.verdicts.verdicts, np.asarray(of.sides.pairing.partner_a)
    first = np.flatnonzero(verdicts.told([verdict.differs for verdict in verdicts.kinds], np.bool_))
    found = np.zeros(len(partners) + 1, np.int8)
    words = (of.sides.baseline.words, of.sides.candidate.words)
    for block in unequal(*words, pairs=(first, partners[first]), also=np.ones(len(first), np.bool_)):
        by_bits = bits_decide(of.sides, block) & ~_summarised(of, block)
        plain = (block.places[by_bits] != 0).astype(np.int8)  # a slot differs, else nothing but scalars
        codes = np.array([CLASSES.index(DifferenceClass.SCALARS), CLASSES.index(DifferenceClass.BITS_ONLY)])
        found[block.first[by_bits]] = codes[plain]
        for i in block.first[~by_bits].tolist():
            found[i] = CLASSES.index(_class(of, i))
    return found


def _summarised(of: RankComparison, block: Unequal) -> Numbers:
    """The pairs of which both sides hold a summary of some slot."""
    sides = ((of.sides.baseline, block.first), (of.sides.candidate, block.second))
    ours, theirs = (side.recorded.details.about(side.calls.column("id")[calls]) for side, calls in sides)
    both: Numbers = ours & theirs
    return both


def _class(of: RankComparison, i: int) -> DifferenceClass:
    """The class of the first slot that differs, of the outputs where one of them does."""
    direction = "o" if of.verdicts.verdicts[i].outputs else "i"
    for slot in judged_slots(of.sides, i, of.sides.pairing.partner_a[i], direction=direction):
        if slot.judged.agreement is Agreement.DIFFERENT and slot.pair is not None:
            return class_of(slot.pair)
    return DifferenceClass.SCALARS


# --- keys in words -------------------------------------------------------------------------------------------------


def _key_texts(of: RankComparison) -> dict[Any, str]:
    """Each key in words: as the baseline spells it, or the candidate where only it has the key."""
    candidate = dict(_texts_of_side(of, "candidate"))
    return candidate | dict(_texts_of_side(of, "baseline"))


def _texts_of_side(of: RankComparison, name: str) -> Iterator[tuple[Any, str]]:
    side = of.sides.baseline if name == "baseline" else of.sides.candidate
    keys, first = np.unique(np.asarray(side.records.keys), return_index=True)
    for key, index in zip(keys.tolist(), first.tolist(), strict=True):
        site = side.recorded.sites[side.calls.values("site")[index]]
        function = side.recorded.functions[side.calls.values("function")[index]].name
        yield key, f"{function} at {site.file}:{site.line} ({name}'s line)"
