"""Every call of both sides as a row, made one by one when read (CP-3c, CP-16)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from paritrace.compare.agreement import JudgedSlot, judged_slots
from paritrace.compare.blames import Blame, Root
from paritrace.compare.fields import difference_of
from paritrace.compare.kept_slots import KeptSlots, Where
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Agreement, DifferenceClass, Group, Status
from paritrace.compare.rows import CallRow, Correspondence, SlotRow
from paritrace.compare.rows import Side as RowSide
from paritrace.compare.slots import Order, memory_order
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Call, Kind, Slot

SOURCES = frozenset({Group.ORIGINATES, Group.CONTAINS})


class RankRows:
    """One rank's comparison for its rows: kept, or made again from the journals whenever the rows are read (CP-17)."""

    def __init__(self, again: Callable[[], RankComparison], *, kept: RankComparison | None) -> None:
        self._again = again
        self._kept = kept

    def comparison(self) -> RankComparison:
        """The comparison of this rank; the same one each time, whether it was kept or not."""
        return self._kept or self._again()


class CallRows:
    """May be read several times; nothing is kept between readings."""

    def __init__(
        self,
        ranks: Sequence[RankRows],
        *,
        regrouped: Sequence[Mapping[Root, Group]],
        kept: KeptSlots | None = None,
    ) -> None:
        self._kept = kept
        self._ranks = ranks
        self._regrouped = regrouped

    def __iter__(self) -> Iterator[CallRow]:
        for rank, regrouped in zip(self._ranks, self._regrouped, strict=True):
            compared = rank.comparison()
            for side in (0, 1):
                spelled = _Spelling(compared, side, regrouped=regrouped, kept=self._kept)
                for index, call in enumerate(spelled.side.calls):
                    yield spelled.row(index, call)


class _Spelling:
    """Spells the rows of one side of one rank; keys are told in the baseline's words where they correspond."""

    def __init__(
        self, of: RankComparison, side: int, *, regrouped: Mapping[Root, Group], kept: KeptSlots | None
    ) -> None:
        self._of = of
        self._kept = kept if kept is not None and kept.any else None
        self._regrouped = regrouped  # what other ranks made of this rank's origins
        self._number = side
        self.side: Side = (of.sides.baseline, of.sides.candidate)[side]
        pairing = of.sides.pairing
        self._partners = pairing.partner_a if side == 0 else pairing.partner_b
        self._keys = _key_texts(of)
        self._scopes: dict[int, str] = {}
        self._streams: dict[tuple[int, int], str] = {}
        self._scalars: dict[int, str] = {}
        self._strides: dict[int, tuple[int, ...]] = {}

    def row(self, index: int, call: Call) -> CallRow:
        """The row of one call."""
        of, side = self._of, self.side
        partner = self._partners[index]
        step, microbatch, phase = side.context_of(index)
        site = side.recorded.sites[call.site]
        ours = index if self._number == 0 else partner
        paired = partner >= 0
        judgement = self._judgement(ours) if paired else _UNPAIRED
        return CallRow(
            side=RowSide.BASELINE if self._number == 0 else RowSide.CANDIDATE,
            rank=of.rank,
            session_id=side.recorded.session.session_id,
            record_id=call.id,
            step=step,
            microbatch=microbatch,
            phase=phase,
            level=side.level_of(index).value,
            function=side.recorded.functions[call.function].name,
            file=site.file,
            line=site.line,
            module=side.module_of(index),
            stream=self._stream(index, call),
            scope=self._scope(call),
            key=self._keys[side.records.keys[index]],
            status=of.verdicts.status(ours) if paired else Status.UNALIGNED,
            correspondence=Correspondence.PAIRED if paired else Correspondence.UNDETERMINED,
            basis=of.sides.pairing.basis[ours] if paired else None,
            reason=None if paired else of.reasons[self._number][index],
            partner=self._other().calls.values("id")[partner] if paired else -1,
            reordered=paired and ours in of.sides.pairing.reordered,
            difference_class=judgement.difference_class,
            group=self._group(ours) if paired else None,
            slots=self._slots(call, judgement, index),
            scalars=self._scalars_of(call),
            thread=side.recorded.names.get(call.thread, "main"),
            start_ns=call.start_ns,
            duration_ns=call.duration_ns,
        )

    def _scalars_of(self, call: Call) -> str:
        if call.scalars not in self._scalars:
            known = self.side.recorded.scalars.get(call.scalars)
            told = () if known is None else (f"{name}={value}" for name, value in sorted(known.values.items()))
            self._scalars[call.scalars] = ", ".join(told)
        return self._scalars[call.scalars]

    def _strides_of(self, kind: Kind) -> tuple[int, ...]:
        if kind.id not in self._strides:
            row_major = memory_order(kind) == Order(tuple(d for d, size in enumerate(kind.shape) if size > 1), ())
            self._strides[kind.id] = () if row_major else kind.strides
        return self._strides[kind.id]

    def _other(self) -> Side:
        return (self._of.sides.candidate, self._of.sides.baseline)[self._number]

    def _scope(self, call: Call) -> str:
        """The path of module entries from the root, each with its nth call."""
        if call.scope not in self._scopes:
            scopes = self.side.recorded.scopes
            path: list[str] = []
            scope = scopes.get(call.scope)
            while scope is not None:
                path.append(f"{scope.module}#{scope.nth}")
                scope = scopes.get(scope.parent)
            self._scopes[call.scope] = "/".join(reversed(path))
        return self._scopes[call.scope]

    def _stream(self, index: int, call: Call) -> str:
        known = self._streams.get((call.context, call.thread))
        if known is None:
            step, microbatch, phase = self.side.context_of(index)
            thread = self.side.recorded.names.get(call.thread, "main")
            known = f"step {step}, micro-batch {microbatch}, {phase}, {thread}"
            self._streams[call.context, call.thread] = known
        return known

    def _group(self, ours: int) -> Group | None:
        blame: Blame | None = self._of.origins.blames.get(ours)
        if blame is None:
            return None
        return self._regrouped.get(blame.root, blame.group) if blame.root and blame.group in SOURCES else blame.group

    def _judgement(self, ours: int) -> "_Judgement":
        """The agreement of each slot of a pair and the class of its difference, from one look at its slots."""
        verdict = self._of.verdicts.verdicts.get(ours)
        if verdict is None:
            return _EQUAL
        sides = self._of.sides
        theirs = sides.pairing.partner_a[ours]
        found = {d: tuple(judged_slots(sides, ours, theirs, direction=d)) for d in ("i", "o")}
        agreements = {
            (direction, (slot.place_a, slot.place_b)[self._number]): slot.judged.agreement
            for direction, slots in found.items()
            for slot in slots
        }
        if not verdict.differs:
            return _Judgement(agreements, None, None)
        return _Judgement(agreements, None, self._class_of(found["o" if verdict.outputs else "i"]))

    def _class_of(self, slots: Sequence[JudgedSlot]) -> DifferenceClass:
        names = self._of.sides.baseline.recorded.names
        for slot in slots:
            if slot.judged.agreement is Agreement.DIFFERENT and slot.pair is not None:
                return difference_of(names[slot.pair.baseline.name], slot.pair).difference_class
        return DifferenceClass.SCALARS

    def _slots(self, call: Call, judgement: "_Judgement", index: int) -> tuple[SlotRow, ...]:
        found = tuple(
            self._slot(call, direction, place, slot, judgement)
            for direction, slots in (("i", call.inputs), ("o", call.outputs))
            for place, slot in enumerate(slots)
        )
        return found if self._kept is None else tuple(self._with_figures(slot, index, self._kept) for slot in found)

    def _with_figures(self, slot: SlotRow, index: int, kept: KeptSlots) -> SlotRow:
        """The figures of a slot that differs and that both runs keep whole (CP-11)."""
        if slot.agreement is not Agreement.DIFFERENT:
            return slot
        ids = (self.side.calls[index].id, self._other().calls[self._partners[index]].id)
        calls = ids if self._number == 0 else (ids[1], ids[0])
        where = Where(self._of.rank, calls, slot.direction, slot.name, self._module_of_baseline(index))
        return replace(slot, figures=kept.told(where).figures)

    def _module_of_baseline(self, index: int) -> str:
        return self._of.sides.baseline.module_of(index if self._number == 0 else self._partners[index])

    def _slot(self, call: Call, direction: str, place: int, slot: Slot, judgement: "_Judgement") -> SlotRow:
        kind = self.side.recorded.kinds[slot.kind]
        detail = self.side.recorded.details.get((call.id, direction, place))
        return SlotRow(
            direction=direction,
            name=self.side.recorded.names[slot.name],
            dtype=kind.dtype,
            shape=kind.shape,
            logical_nbytes=kind.logical_nbytes,
            bits=slot.bits,
            xor="" if detail is None else detail.xor,
            regions="" if detail is None else detail.regions,
            elements="" if detail is None else detail.elements,
            agreement=judgement.agreements.get((direction, place), judgement.otherwise),
            strides=self._strides_of(kind),
            semantics="" if detail is None or detail.semantics is None else detail.semantics,
        )


class _Judgement(NamedTuple):
    """Agreement by direction and place; `otherwise` of a slot that is not listed."""

    agreements: Mapping[tuple[str, int], Agreement]
    otherwise: Agreement | None
    difference_class: DifferenceClass | None


_EQUAL = _Judgement({}, Agreement.EQUAL, None)
_UNPAIRED = _Judgement({}, None, None)


def _key_texts(of: RankComparison) -> dict[object, str]:
    """Each key in words: as the baseline spells it, or the candidate where only it has the key."""
    texts: dict[object, str] = {}
    for name, side in (("baseline", of.sides.baseline), ("candidate", of.sides.candidate)):
        for index, key in enumerate(side.records.keys):
            if key not in texts:
                site = side.recorded.sites[side.calls.values("site")[index]]
                function = side.recorded.functions[side.calls.values("function")[index]].name
                texts[key] = f"{function} at {site.file}:{site.line} ({name}'s line)"
    return texts
