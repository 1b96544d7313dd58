"""The sampled elements of the inventories of one session, at half the bytes of their hex digits (CP-17)."""

from collections.abc import Iterator

from msgspec.structs import replace

from paritrace.evidence.calls import StateSamples


class SampleStore:
    """Records in the order in which they were appended; each is made again when it is read."""

    def __init__(self) -> None:
        self._records: list[StateSamples] = []  # without their samples
        self._samples: list[tuple[bytes | str, ...]] = []

    def append(self, record: StateSamples) -> None:
        """Take a record up."""
        self._records.append(replace(record, samples=()))
        self._samples.append(tuple(map(_packed, record.samples)))

    def __iter__(self) -> Iterator[StateSamples]:
        for record, samples in zip(self._records, self._samples, strict=True):
            yield replace(record, samples=tuple(one if isinstance(one, str) else one.hex() for one in samples))

    def __len__(self) -> int:
        return len(self._records)


def _packed(samples: str) -> bytes | str:
    """The bytes of hex digits as we write them; anything else as it is."""
    try:
        data = bytes.fromhex(samples)
    except ValueError:
        return samples
    return data if data.hex() == samples else samples
