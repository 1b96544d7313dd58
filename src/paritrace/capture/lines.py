"""Records as lines of the journal, with their counts; one that has no line is counted, so that no other is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from paritrace.evidence import codec

Encode = Callable[[list[object]], bytes]


@dataclass(frozen=True, slots=True)
class Lines:
    """Encoded records, ready to be appended. `counts`: by the name of the record's class."""

    data: bytes
    counts: Counter[str]
    faults: int = 0

    @property
    def number(self) -> int:
        return self.counts.total()


def encode(batch: list[object]) -> bytes:
    """The lines of a batch. Raises whatever a workload's value does to the encoder."""
    return codec.encode_lines(cast("list[codec.Record]", batch))


def lines_of(batch: list[object], *, by: Encode = encode) -> Lines:
    """The lines of a batch; whatever a workload's value does to the encoder, this returns (P6)."""
    try:
        return Lines(by(batch), _counts(batch))
    except Exception:  # noqa: BLE001  one record is at fault, and the others are worth keeping
        return _one_by_one(batch, by)


def _one_by_one(batch: list[object], by: Encode) -> Lines:
    good: list[object] = []
    lines: list[bytes] = []
    for record in batch:
        try:
            lines.append(by([record]))
            good.append(record)
        except Exception:  # noqa: BLE001, S112  this is the one; the caller is told how many there were
            continue
    return Lines(b"".join(lines), _counts(good), len(batch) - len(good))


def _counts(batch: list[object]) -> Counter[str]:
    return Counter({kind.__name__: number for kind, number in Counter(map(type, batch)).items()})
