"""Every call of both sides as a row, made one by one when read (CP-3c, CP-16)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.agreement import judged_slots
from paritrace.compare.describe import slot_differences
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Agreement, DifferenceClass, Group, Status
from paritrace.compare.rows import CallRow, Correspondence, SlotRow
from paritrace.compare.rows import Side as RowSide
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Call, Slot


class CallRows:
    """May be read several times; nothing is kept between readings."""

    def __init__(self, ranks: Sequence[RankComparison]) -> None:
        self._ranks = ranks

    def __iter__(self) -> Iterator[CallRow]:
        for rank in self._ranks:
            for side in (0, 1):
                spelled = _Spelling(rank, side)
                for index in range(len(spelled.side.calls)):
                    yield spelled.row(index)


class _Spelling:
    """Spells the rows of one side of one rank; keys are told in the baseline's words where they correspond."""

    def __init__(self, of: RankComparison, side: int) -> None:
        self._of = of
        self._number = side
        self.side: Side = (of.sides.baseline, of.sides.candidate)[side]
        pairing = of.sides.pairing
        self._partners = pairing.partner_a if side == 0 else pairing.partner_b
        self._keys = _key_texts(of)

    def row(self, index: int) -> CallRow:
        """The row of one call."""
        of, side = self._of, self.side
        call, partner = side.calls[index], self._partners[index]
        step, microbatch, phase = side.context_of(index)
        site = side.recorded.sites[call.site]
        ours = index if self._number == 0 else partner
        paired = partner >= 0
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
            stream=f"step {step}, micro-batch {microbatch}, {phase}, {side.recorded.names.get(call.thread, 'main')}",
            scope=self._scope(call),
            key=self._keys[side.records.keys[index]],
            status=of.verdicts.status(ours) if paired else Status.UNALIGNED,
            correspondence=Correspondence.PAIRED if paired else Correspondence.UNDETERMINED,
            basis=of.sides.pairing.basis[ours] if paired else None,
            reason=None if paired else of.reasons[self._number][index],
            partner=self._other().calls[partner].id if paired else -1,
            reordered=paired and ours in of.sides.pairing.reordered,
            difference_class=self._difference_class(ours) if paired else None,
            group=self._group(ours) if paired else None,
            slots=self._slots(index, call, ours),
        )

    def _other(self) -> Side:
        return (self._of.sides.candidate, self._of.sides.baseline)[self._number]

    def _scope(self, call: Call) -> str:
        """The path of module entries from the root, each with its nth call."""
        scopes = self.side.recorded.scopes
        path: list[str] = []
        scope = scopes.get(call.scope)
        while scope is not None:
            path.append(f"{scope.module}#{scope.nth}")
            scope = scopes.get(scope.parent)
        return "/".join(reversed(path))

    def _group(self, ours: int) -> Group | None:
        blame = self._of.origins.blames.get(ours)
        return None if blame is None else blame.group

    def _difference_class(self, ours: int) -> DifferenceClass | None:
        verdict = self._of.verdicts.verdicts.get(ours)
        if verdict is None or not verdict.differs:
            return None
        found = slot_differences(self._of, ours, directions="o" if verdict.outputs else "i")
        return found[0][2].difference_class if found else DifferenceClass.SCALARS

    def _slots(self, index: int, call: Call, ours: int) -> tuple[SlotRow, ...]:
        rows: list[SlotRow] = []
        for direction, slots in (("i", call.inputs), ("o", call.outputs)):
            judged = self._judged(index, ours, direction)
            rows += [self._slot(call, direction, place, slot, judged) for place, slot in enumerate(slots)]
        return tuple(rows)

    def _judged(self, index: int, ours: int, direction: str) -> dict[int, Agreement] | Agreement | None:
        if self._partners[index] < 0:
            return None
        if ours not in self._of.verdicts.verdicts:
            return Agreement.EQUAL
        theirs = self._of.sides.pairing.partner_a[ours]
        found = judged_slots(self._of.sides, ours, theirs, direction=direction)
        return {(slot.place_a, slot.place_b)[self._number]: slot.judged.agreement for slot in found}

    def _slot(
        self, call: Call, direction: str, place: int, slot: Slot, judged: dict[int, Agreement] | Agreement | None
    ) -> SlotRow:
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
            agreement=judged.get(place) if isinstance(judged, dict) else judged,
        )


def _key_texts(of: RankComparison) -> dict[object, str]:
    """Each key in words: as the baseline spells it, or the candidate where only it has the key."""
    texts: dict[object, str] = {}
    for name, side in (("baseline", of.sides.baseline), ("candidate", of.sides.candidate)):
        for call, key in zip(side.calls, side.records.keys, strict=True):
            if key not in texts:
                site = side.recorded.sites[call.site]
                function = side.recorded.functions[call.function].name
                texts[key] = f"{function} at {site.file}:{site.line} ({name}'s line)"
    return texts
