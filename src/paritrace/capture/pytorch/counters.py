"""How many collectives each group made in a step: the groups' own sequence numbers, at every level (CA-2)."""

from __future__ import annotations

from typing import Any

from paritrace.capture.pytorch.groups import NO_GROUP, Groups, registered
from paritrace.capture.recorder import Recorder
from paritrace.evidence.distributed import CollectiveCounts


class CollectiveCounter:
    """Reads the sequence numbers at step boundaries; nothing is sent and no group is kept alive."""

    def __init__(self, recorder: Recorder, groups: Groups) -> None:
        self._recorder = recorder
        self._groups = groups
        self._last: dict[int, int] = {}

    def begin(self) -> None:
        """What the groups have made before the capture belongs to no step."""
        self._advance()

    def mark(self) -> None:
        """A step is about to end; where nothing is distributed there is no record."""
        counts = self._advance()
        if counts:
            self._recorder.emit(CollectiveCounts(self._recorder.steps.step, counts))

    def _advance(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for group in registered():
            number = _sequence_number(group)
            known = NO_GROUP if number is None else self._groups.of(group)
            if number is None or known == NO_GROUP:
                continue
            before = self._last.get(known, 0)
            self._last[known] = number
            # A group that was made anew under an old one's name counts from 0 again.
            counts[self._groups[known].key] = number - before if number >= before else number
        return counts


def _sequence_number(group: Any) -> int | None:
    """None where a back end does not count."""
    try:
        return int(group._get_sequence_number_for_group())
    except RuntimeError:
        return None
