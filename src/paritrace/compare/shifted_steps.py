"""A journal read with other numbers of steps: those of the run that it continues (CP-28, CA-3)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from paritrace.evidence.blackbox import Trigger
from paritrace.evidence.codec import Record, decode_row
from paritrace.evidence.journal import Block, JournalReader, Loss

_NUMBERED = frozenset(kind for kind in Record.__args__ if "step" in kind.__struct_fields__)


class ShiftedJournal:
    """The records of a journal, `by` added to every step."""

    def __init__(self, journal: JournalReader, *, by: int) -> None:
        self._journal = journal
        self._by = by

    def batches(self) -> Iterator[Iterable[Record | Loss]]:
        """As the journal's own."""
        for batch in self._journal.batches():
            yield [self._shifted(record) for record in batch]

    def blocks(self) -> Iterator[Sequence[Record | Loss] | Block[Record]]:
        """As the journal's own."""
        for block in self._journal.blocks():
            if isinstance(block, Block):
                samples = [(len(block.calls), decode_row(line)) for line in block.samples]
                others = [(place, self._record(record)) for place, record in [*block.others, *samples]]
                yield Block(block.calls, others, block.details)
            else:
                yield [self._shifted(record) for record in block]

    def _record(self, record: Record) -> Record:
        shifted = self._shifted(record)
        assert not isinstance(shifted, Loss)  # for the type checker
        return shifted

    def _shifted(self, record: Record | Loss) -> Record | Loss:
        if type(record) not in _NUMBERED:
            return record
        numbered: Any = record
        if isinstance(record, Trigger):
            numbered = replace(record, steps=tuple(step + self._by for step in record.steps))
        shifted: Record = replace(numbered, step=numbered.step + self._by)
        return shifted
