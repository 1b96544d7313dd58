"""Every call of both sides as a row, made many at a time when read (CP-3c, CP-16)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from paritrace.compare.blames import Root
from paritrace.compare.call_blocks import CallBlock, Coded, Column, coded
from paritrace.compare.call_facts import CallFacts
from paritrace.compare.kept_slots import KeptSlots
from paritrace.compare.lookups import Numbers, pairs_of
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Group
from paritrace.compare.rows import CallRow, Correspondence
from paritrace.compare.rows import Side as RowSide
from paritrace.compare.slot_blocks import SlotFacts
from paritrace.compare.translate import Side

BLOCK = 1024  # rows made at once where they are read one by one
CORRESPONDENCES = (Correspondence.UNDETERMINED, Correspondence.PAIRED)


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
        for blocks in self.batches(BLOCK):
            for block in blocks:
                yield from block.rows()

    def batches(self, size: int) -> Iterator[list[CallBlock]]:
        """The same as columns: so many rows at a time, in blocks that are each of one side and rank."""
        waiting: list[CallBlock] = []
        room = size
        for rank, regrouped in zip(self._ranks, self._regrouped, strict=True):
            facts = CallFacts(rank.comparison(), regrouped=regrouped)
            for side in (0, 1):
                spelled = _Spelling(facts, side, kept=self._kept)
                start, total = 0, len(spelled.side.calls)
                while start < total:
                    end = min(start + room, total)
                    waiting.append(spelled.block(start, end))
                    start, room = end, room - (end - start)
                    if not room:
                        yield waiting
                        waiting, room = [], size
            del facts, spelled  # before the next rank is compared: memory holds one
        if waiting:
            yield waiting


class _Spelling:
    """Spells the rows of one side of one rank; keys are told in the baseline's words where they correspond."""

    def __init__(self, facts: CallFacts, side: int, *, kept: KeptSlots | None) -> None:
        of = facts.of
        self._facts = facts
        self._number = side
        self.side: Side = (of.sides.baseline, of.sides.candidate)[side]
        self._others = (of.sides.candidate, of.sides.baseline)[side].calls.column("id")
        pairing = of.sides.pairing
        self._partners = np.asarray(pairing.partner_a if side == 0 else pairing.partner_b)
        self._keys = np.asarray(self.side.records.keys)
        self._reordered = np.array(sorted(pairing.reordered), np.int64)
        self._slots = SlotFacts(facts, side, kept=kept)

    def block(self, start: int, end: int) -> CallBlock:
        """The rows of the calls from one index to another."""
        partners = self._partners[start:end]
        ours = np.where(partners >= 0, np.arange(start, end) if self._number == 0 else partners, -1)
        columns: dict[str, Column] = {
            **self._recorded(slice(start, end)),
            **self._judged(ours),
            "partner": self._partners_of(partners),
            "reason": self._reasons(start, partners),
        }
        first, slots, summaries = self._slots.block(start, end, ours=ours)
        return CallBlock(calls=columns, first=first, slots=slots, summaries=summaries)

    def _recorded(self, span: slice) -> dict[str, Column]:
        """What is of the call alone."""
        side, recorded = self.side, self.side.recorded
        ids = {
            name: side.calls.column(name)[span]
            for name in ("context", "function", "site", "scope", "thread", "scalars")
        }
        contexts = coded(ids["context"], recorded.contexts.__getitem__)
        functions = coded(ids["function"], recorded.functions.__getitem__)
        sites = coded(ids["site"], recorded.sites.__getitem__)
        scopes = coded(ids["scope"], int)
        nobody = np.zeros(len(ids["context"]), np.int8)
        return {
            "side": Coded(nobody, (RowSide.BASELINE if self._number == 0 else RowSide.CANDIDATE,)),
            "rank": Coded(nobody, (self._facts.of.rank,)),
            "session_id": Coded(nobody, (recorded.session.session_id,)),
            "record_id": side.calls.column("id")[span],
            "step": contexts.map(lambda context: context.step),
            "microbatch": contexts.map(lambda context: context.microbatch),
            "phase": contexts.map(lambda context: context.phase.value),
            "level": functions.map(lambda function: function.level.value),
            "function": functions.map(lambda function: function.name),
            "file": sites.map(lambda site: site.file),
            "line": sites.map(lambda site: site.line),
            "module": scopes.map(lambda scope: side.scope_paths[side.scope_of[scope]]),
            "scope": scopes.map(self._scope),
            "stream": self._streams(ids["context"], ids["thread"]),
            "key": coded(self._keys[span], self._facts.keys.__getitem__),
            "scalars": coded(ids["scalars"], self._scalars),
            "thread": coded(ids["thread"], self._thread),
            "start_ns": side.calls.column("start_ns")[span],
            "duration_ns": side.calls.column("duration_ns")[span],
        }

    def _judged(self, ours: Numbers) -> dict[str, Column]:
        """What is of the pair; `ours` is the baseline's index, -1 of a call without a partner."""
        facts = self._facts
        return {
            "status": Coded(facts.statuses.codes[ours], facts.statuses.values),
            "correspondence": Coded((ours >= 0).astype(np.int8), CORRESPONDENCES),
            "basis": Coded(facts.bases.codes[ours], facts.bases.values),
            "reordered": np.isin(ours, self._reordered),
            "difference_class": Coded(facts.classes.codes[ours], facts.classes.values),
            "group": Coded(facts.groups.codes[ours], facts.groups.values),
        }

    def _partners_of(self, partners: Numbers) -> Numbers:
        found = np.full(len(partners), -1, np.int64)
        found[partners >= 0] = self._others[partners[partners >= 0]]
        return found

    def _reasons(self, start: int, partners: Numbers) -> Column:
        reasons = self._facts.of.reasons[self._number]
        free: list[int] = (np.flatnonzero(partners < 0) + start).tolist()
        given = [reasons[index] for index in free]
        values = (None, *dict.fromkeys(given))
        codes = np.zeros(len(partners), np.int8)
        codes[partners < 0] = [values.index(reason) for reason in given]
        return Coded(codes, values)

    def _streams(self, contexts: Numbers, threads: Numbers) -> Column:
        pairs, where = pairs_of(contexts, threads)
        return Coded(where, [self._stream(context, thread) for context, thread in pairs])

    def _stream(self, context: int, thread: int) -> str:
        of = self.side.recorded.contexts[context]
        return f"step {of.step}, micro-batch {of.microbatch}, {of.phase.value}, {self._thread(thread)}"

    def _thread(self, thread: int) -> str:
        return self.side.recorded.names.get(thread, "main")

    def _scalars(self, number: int) -> str:
        known = self.side.recorded.scalars.get(number)
        told = () if known is None else (f"{name}={value}" for name, value in sorted(known.values.items()))
        return ", ".join(told)

    def _scope(self, number: int) -> str:
        """The path of module entries from the root, each with its nth call."""
        scopes = self.side.recorded.scopes
        path: list[str] = []
        scope = scopes.get(number)
        while scope is not None:
            path.append(f"{scope.module}#{scope.nth}")
            scope = scopes.get(scope.parent)
        return "/".join(reversed(path))
