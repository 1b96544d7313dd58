"""What a journal says beside its calls, in words: black box, triggers, levels given up, allocations that failed."""

from collections.abc import Iterable, Mapping

from paritrace.evidence import allocator
from paritrace.evidence.allocator import OutOfAcceleratorMemory
from paritrace.evidence.blackbox import BlackBox, Cause, Trigger
from paritrace.evidence.calls import EndMark, LevelMark
from paritrace.evidence.spans import ranges

PLANNED = frozenset({"begin", "steps"})  # reasons of level marks that only follow what was asked for
MAX_FAILED = 12  # told one by one: a workload that goes on with smaller batches may have many
MAX_TRIGGERS = 12  # told one by one: a session writes its box nine times at most


class Remarks:
    """Folds the records of one session."""

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []
        self._box: BlackBox | None = None
        self._lowered: list[LevelMark] = []
        self._failed: list[OutOfAcceleratorMemory] = []
        self._ended = False

    def see(self, record: object) -> None:
        """Take one record; most say nothing of the capture itself."""
        match record:
            case BlackBox():
                self._box = record
            case Trigger():
                self.triggers.append(record)
            case LevelMark() if record.reason not in PLANNED:
                self._lowered.append(record)
            case OutOfAcceleratorMemory():
                self._failed.append(record)
            case EndMark():
                self._ended = True
            case _:
                pass

    def lines(self) -> tuple[str, ...]:
        """One line for each thing to say; none for a capture without black box, budget and failed allocation."""
        failed = [allocator.told(record) for record in self._failed[:MAX_FAILED]]
        if len(self._failed) > MAX_FAILED:
            failed.append(f"and {len(self._failed) - MAX_FAILED} more failed allocations")
        return (*self._of_box(), *(f"from step {mark.step} on, {mark.reason}" for mark in self._lowered), *failed)

    @property
    def kept_steps(self) -> set[int]:
        """The steps that a written black box holds."""
        return {step for trigger in self.triggers for step in trigger.steps}

    def _of_box(self) -> list[str]:
        box = self._box
        if box is None:
            return []
        told = [_told(trigger) for trigger in self.triggers[:MAX_TRIGGERS]]
        if len(self.triggers) > MAX_TRIGGERS:
            told.append(f"and {len(self.triggers) - MAX_TRIGGERS} more triggers")
        if not self._ended and not any(trigger.cause in (Cause.CRASH, Cause.SIGTERM) for trigger in self.triggers):
            told.append("no end was written: what the black box held by then is not in the run")
        elif not self.triggers:
            told.append("nothing made the black box be written")
        ranks = f"rank {ranges(box.window_ranks)} of {box.world_size}" if box.window_ranks else "no captured rank"
        basis = f" ({box.basis})" if box.world_size > 1 else ""
        return [
            f"black box: last {box.steps} steps; level op at steps 0, 1, 2, 4, 8 … on {ranks}{basis}",
            *told,
            *(f"no trigger: {reason}" for reason in box.not_watched),
        ]


def of_ranks(lines: Mapping[int, Iterable[str]]) -> tuple[str, ...]:
    """Each line once, with the ranks it is true of where it is not true of all."""
    ranks: dict[str, list[int]] = {}
    for rank, of_rank in sorted(lines.items()):
        for line in dict.fromkeys(of_rank):
            ranks.setdefault(line, []).append(rank)
    everywhere = len(lines)
    return tuple(line if len(of) == everywhere else f"rank {ranges(of)}: {line}" for line, of in ranks.items())


def _told(trigger: Trigger) -> str:
    value = f" {_number(trigger.value)}" if trigger.value else ""
    over = f", above {_number(trigger.threshold)}" if trigger.threshold else ""
    why = f"{trigger.cause.value.replace('_', ' ')}{f' ({trigger.detail}{value}{over})' if trigger.detail else ''}"
    if not trigger.steps:
        return f"trigger at step {trigger.step}: {why}; no steps were waiting in the black box"
    dropped = f"; {trigger.dropped_rows:,} rows did not fit into it" if trigger.dropped_rows else ""
    return f"black box written at step {trigger.step}: {why}; holds step {ranges(trigger.steps)}{dropped}"


def _number(text: str) -> str:
    """A figure of a trigger for a person: four digits of what `float.hex` spells."""
    try:
        return f"{float.fromhex(text):.4g}"
    except (ValueError, OverflowError):
        return text
