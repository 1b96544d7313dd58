"""The ring of the black box: the rows of the last steps as lines, bounded in steps and in bytes (CA-36)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from paritrace.capture.lines import Lines, lines_of

CHUNK_ROWS = 256  # rows wait as objects until so many are encoded at once: objects take more memory than lines
SLACK_STEPS = 2  # kept beyond the stated number: another rank's trigger is seen a step after it was left


@dataclass(slots=True)
class _Step:
    step: int
    chunks: list[Lines] = field(default_factory=list[Lines])
    dropped_rows: int = 0

    @property
    def num_bytes(self) -> int:
        return sum(len(lines.data) for lines in self.chunks)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a ring held. `dropped_rows` and `dropped_steps` fell out of it because of its bytes; `cut_rows` of the
    dropped rows belong to a step that is kept in part. `faults`: rows that could not be encoded."""

    steps: tuple[int, ...]
    lines: tuple[Lines, ...]
    dropped_steps: int
    dropped_rows: int
    cut_rows: int
    faults: int

    @property
    def rows(self) -> int:
        return sum(lines.number for lines in self.lines)


class Ring:
    """Rows of the last steps. Nothing of it is on disk."""

    def __init__(self, *, steps: int, num_bytes: int) -> None:
        self._keep = steps
        self._limit = num_bytes
        self._steps: deque[_Step] = deque()
        self._waiting: list[object] = []
        self._num_bytes = 0
        self._dropped: deque[tuple[int, int]] = deque()  # (step, rows) of steps that the limit took

    @property
    def num_bytes(self) -> int:
        """Bytes of the lines held."""
        return self._num_bytes

    @property
    def has_rows(self) -> bool:
        return bool(self._waiting) or self._num_bytes > 0

    @property
    def last_step(self) -> int:
        """The last step that has rows."""
        if self._waiting:
            return self._steps[-1].step
        return next((one.step for one in reversed(self._steps) if one.chunks or one.dropped_rows), 0)

    def begin(self, step: int) -> None:
        """A step begins, whether its rows are to be kept or not; the oldest makes room."""
        self._encode()
        self._steps.append(_Step(step))
        while len(self._steps) > self._keep + SLACK_STEPS:
            self._num_bytes -= self._steps.popleft().num_bytes
        while self._dropped and self._dropped[0][0] < self._oldest_wanted():
            self._dropped.popleft()

    def keep(self, row: object) -> None:
        """Take a row of the present step."""
        self._waiting.append(row)
        if len(self._waiting) >= CHUNK_ROWS:
            self._encode()

    def take(self, since: int | None = None) -> Taken:
        """Hand out the last steps, those from step `since` on where it is given, and hold nothing any more."""
        self._encode()
        last = list(self._steps)[-self._keep :] if since is None else [one for one in self._steps if one.step >= since]
        wanted = [one for one in last if one.chunks or one.dropped_rows]
        cut = sum(one.dropped_rows for one in wanted)
        lines = tuple(chunk for one in wanted for chunk in one.chunks)
        taken = Taken(
            steps=tuple(one.step for one in wanted),
            lines=lines,
            dropped_steps=len(self._dropped),
            dropped_rows=cut + sum(rows for _, rows in self._dropped),
            cut_rows=cut,
            faults=sum(chunk.faults for chunk in lines),
        )
        self.forget()
        return taken

    def forget(self) -> None:
        """Hold nothing any more."""
        self._steps.clear()
        self._waiting.clear()
        self._dropped.clear()
        self._num_bytes = 0

    def _encode(self) -> None:
        if not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        if not self._steps:
            return
        lines = lines_of(rows)
        present = self._steps[-1]
        while len(self._steps) > 1 and self._num_bytes + len(lines.data) > self._limit:
            self._drop_oldest()
        if present.dropped_rows or self._num_bytes + len(lines.data) > self._limit:
            present.dropped_rows += lines.number  # and all that follow in this step, so that its rows have no hole
            return
        present.chunks.append(lines)
        self._num_bytes += len(lines.data)

    def _drop_oldest(self) -> None:
        oldest = self._steps.popleft()
        self._num_bytes -= oldest.num_bytes
        rows = oldest.dropped_rows + sum(lines.number for lines in oldest.chunks)
        if rows:
            self._dropped.append((oldest.step, rows))

    def _oldest_wanted(self) -> int:
        return self._steps[-1].step - self._keep + 1
