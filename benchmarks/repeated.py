"""Runs of any length for PF-9 to PF-12: a captured step of the encoder, told again step after step with other bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

import paritrace
from benchmarks.encoder import Training
from paritrace.evidence import codec
from paritrace.evidence.calls import FORMAT, VERSION, EndMark, JournalHeader, Level, Origin, OriginKind
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.runs.envelope import Receipt, Role, SessionStatus
from paritrace.runs.launch import launch_of
from paritrace.runs.opening import SessionRequest, begin_session

STEADY = 2  # the step that is repeated: definitions, first uses and the optimizer's first states come before it
CAPTURED_STEPS = 4
SAME_EVERY_STEP = frozenset({OriginKind.BATCH, OriginKind.CONSTANT, OriginKind.RNG})
_TYPE = re.compile(rb'\{"type":"([a-z_]+)"')
Words = npt.NDArray[np.uint64]


class Hole(NamedTuple):
    """A place in the text of a step that is not the same in every step."""

    kind: str  # "id" of a record, "context", "step", or "bits"
    value: int
    changed: tuple[bool, bool] = (False, False)  # behind the planted difference: in its own step, in later steps


@dataclass(frozen=True)
class Pattern:
    """The captured run: what comes before the repeated step, and that step as a text with holes."""

    head: bytes
    text: str
    holes: list[Hole]
    ids_per_step: int
    calls: int
    details: int
    states: int
    slots: int

    def step(self, number: int, *, planted: int) -> bytes:
        """The lines of the step that comes `number` steps after the captured one; `planted` < 0: as they were."""
        late = 0 if number == planted else 1
        values: list[object] = []
        shift, contexts = number * self.ids_per_step, number * 3
        differs = 0 <= planted <= number
        known = np.array([hole.value for hole in self.holes if hole.kind == "bits"], dtype=np.uint64)
        moved = np.array([differs and hole.changed[late] for hole in self.holes if hole.kind == "bits"])
        bits = iter(_mixed(known, number, moved).tolist())
        for hole in self.holes:
            match hole.kind:
                case "id":
                    values.append(hole.value + shift)
                case "context":
                    values.append(hole.value + contexts)
                case "step":
                    values.append(hole.value + number)
                case _:
                    values.append(next(bits))
        return (self.text % tuple(values)).encode()


def _mixed(bits: Words, number: int, moved: npt.NDArray[np.bool_]) -> Words:
    """Other bits in every step, equal where they were equal; another value altogether behind the difference."""
    salt = np.uint64((number * 0x9E3779B97F4A7C15) & (1 << 64) - 1)
    mixed = (bits ^ salt) * np.uint64(0xBF58476D1CE4E5B9)
    return np.where(moved, mixed ^ np.uint64(0x5DEECE66D), mixed)


def captured(folder: Path) -> Pattern:
    """Capture four steps of the encoder at levels module and op, and make the pattern of the third."""
    run = folder / "captured"
    training = Training()
    with paritrace.trace(run, level=("module", "op"), steps=(0, CAPTURED_STEPS), diff=False):
        for number in range(CAPTURED_STEPS):
            paritrace.step(number)
            training.step()
        paritrace.step(CAPTURED_STEPS)
    return pattern_of(next(run.rglob("calls.jsonl")).read_bytes())


def pattern_of(journal: bytes) -> Pattern:
    """The pattern of a journal: its steps end with step marks."""
    lines = journal.splitlines()
    ends = [place for place, line in enumerate(lines) if line.startswith(b'{"type":"step"')]
    head, body = lines[1 : ends[STEADY - 1] + 1], lines[ends[STEADY - 1] + 1 : ends[STEADY] + 1]
    firsts = [next(c for c in map(_call, lines[end + 1 :]) if c) for end in ends[STEADY - 1 : STEADY + 1]]
    per_step = min(_ids(lines, ends, STEADY + 1)) - min(_ids(lines, ends, STEADY))
    assert firsts[0][7] == firsts[1][7], "the first call of both steps stands in the same scope"
    origins = [msgspec.json.decode(line, type=Origin) for line in head if line.startswith(b'{"type":"origin"')]
    same = {origin.id for origin in origins if origin.kind in SAME_EVERY_STEP}
    writer = _Writer(same, start=min(_ids(lines, ends, STEADY)), end=_ids(lines, ends, STEADY), per_step=per_step)
    text = "".join(writer.line(line) for line in body)
    calls, details, states = (sum(line.startswith(mark) for line in body) for mark in (b'["c"', b'["d"', b'["s"'))
    return Pattern(b"\n".join(head) + b"\n", text, writer.holes, per_step, calls, details, states, writer.slots)


def _call(line: bytes) -> list[Any]:
    return msgspec.json.decode(line) if line.startswith(b'["c"') else []


def _ids(lines: list[bytes], ends: list[int], step: int) -> list[int]:
    return [call[1] for call in map(_call, lines[ends[step - 1] + 1 : ends[step] + 1]) if call]


class _Writer:
    """Turns the lines of one step into a text with holes; knows what a difference in its middle reaches."""

    def __init__(self, same: set[int], *, start: int, end: list[int], per_step: int) -> None:
        self.holes: list[Hole] = []
        self.slots = 0
        self._same = same
        self._planted = sorted(end)[len(end) // 8]  # in the forward pass, behind the first block
        self._reached: tuple[set[tuple[int, int]], set[tuple[int, int]]] = (set(), set())
        self._flags: dict[tuple[int, str, int], tuple[bool, bool]] = {}
        self._contexts: dict[int, int] = {}

    def line(self, line: bytes) -> str:
        tag = line[:4]
        if tag == b'["c"':
            return self._of_call(msgspec.json.decode(line))
        if tag == b'["d"':
            return self._of_detail(msgspec.json.decode(line))
        if tag == b'["s"':
            return self._of_state(msgspec.json.decode(line))
        kind = _TYPE.match(line)
        text = line.decode().replace("%", "%%") + "\n"
        if kind is not None and kind[1] == b"context":
            found = msgspec.json.decode(line)
            text = re.sub(r'"id":\d+,"step":\d+', '"id":%d,"step":%d', text)
            self.holes += [Hole("context", found["id"]), Hole("step", found["step"])]
        elif kind is not None and kind[1] in (b"step", b"loss"):
            self.holes.append(Hole("step", msgspec.json.decode(line)["step"]))
            text = re.sub(r'"step":\d+', '"step":%d', text, count=1)
        return text

    def _of_call(self, row: list[Any]) -> str:
        _, number, left, parent, *rest = row
        function, site, workload, scope, context, thread, flags, link, node, scalars, start, took, ins, outs = rest
        holes = [Hole("id", number), Hole("id", left)]
        holes += [Hole("id", parent)] if parent >= 0 else []
        holes.append(Hole("context", context))
        holes += [Hole("id", link)] if link >= 0 else []
        self.holes += holes
        inputs, any_changed = self._slots(number, "i", ins, (False, False))
        outputs, _ = self._slots(number, "o", outs, (any_changed[0] or number == self._planted, any_changed[1]))
        plain = f"{function},{site},{workload},{scope},%d,{thread},{flags},{'%d' if link >= 0 else -1}"
        return (
            f'["c",%d,%d,{"%d" if parent >= 0 else -1},{plain},{node},{scalars},{start},{took},'
            f"[{inputs}],[{outputs}]]\n"
        )

    def _slots(
        self, number: int, side: str, slots: list[Any], given: tuple[bool, bool]
    ) -> tuple[str, tuple[bool, bool]]:
        texts: list[str] = []
        reached = [False, False]
        for place, (name, kind, bits, source, how) in enumerate(slots):
            self.slots += 1
            made = isinstance(source, list)
            changed = given if side == "o" else (self._is_reached(source, 0), self._is_reached(source, 1))
            reached = [old or new for old, new in zip(reached, changed, strict=True)]
            for late in (0, 1):
                if side == "o" and changed[late]:
                    self._reached[late].add((number, place))
            self._flags[number, side, place] = changed
            is_text = isinstance(bits, str)
            self.holes += [Hole("bits", int(bits, 16), changed)] if is_text else []
            self.holes += [Hole("id", source[0])] if made else []
            where = f"[%d,{source[1]}]" if made else f"{source}"
            value = '"%016x"' if is_text else msgspec.json.encode(bits).decode().replace("%", "%%")
            texts.append(f"[{name},{kind},{value},{where},{how}]")
        return ",".join(texts), (reached[0], reached[1])

    def _is_reached(self, source: Any, late: int) -> bool:
        if isinstance(source, list):
            return (source[0], source[1]) in self._reached[late]
        return late == 1 and source not in self._same

    def _of_detail(self, row: list[Any]) -> str:
        _, number, side, place, bits, *rest = row
        self.holes += [Hole("id", number), Hole("bits", int(bits, 16), self._flags[number, side, place])]
        tail = msgspec.json.encode(rest).decode()[1:].replace("%", "%%")
        return f'["d",%d,"{side}",{place},"%016x",{tail}\n'

    def _of_state(self, row: list[Any]) -> str:
        _, step, microbatch, moment, names, values = row
        self.holes.append(Hole("step", step))
        changed = (moment == "grads", moment in ("begin", "grads"))
        texts: list[str] = []
        for value in values:
            is_bits = isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value) is not None
            self.holes += [Hole("bits", int(value, 16), changed)] if is_bits else []
            texts.append('"%016x"' if is_bits else msgspec.json.encode(value).decode().replace("%", "%%"))
        return f'["s",%d,{microbatch},"{moment}",{names},[{",".join(texts)}]]\n'


def write_run(place: Path, pattern: Pattern, *, calls: int, planted: bool, ranks: int = 1) -> Path:
    """Write a run directory of about so many calls on each rank; `planted`: other values from its middle on."""
    steps = max(calls // pattern.calls, 1)
    for rank in range(ranks):
        _write_rank(place, pattern, steps=steps, planted=steps // 2 if planted else -1, rank=(rank, ranks))
    return place


def _write_rank(place: Path, pattern: Pattern, *, steps: int, planted: int, rank: tuple[int, int]) -> None:
    number, world = rank
    process = ProcessIdentity("host", Gap(RunGap.NO_BOOT_ID), Gap(RunGap.NO_PID_NAMESPACE), 1, 1)
    environ = {"RANK": f"{number}", "WORLD_SIZE": f"{world}", "LOCAL_RANK": f"{number}"} if world > 1 else {}
    session = begin_session(
        place,
        SessionRequest(
            role=Role.TRAINING,
            launch=launch_of(environ, process=process),
            process=process,
            config_digest="0" * 64,
            metadata={"expected_steps": f"0:{STEADY + steps}"},
        ),
    )
    journal = session.open_journal()
    lines = 0
    for piece in _pieces(session.session_id, pattern, steps=steps, planted=planted, rank=number):
        journal.write(piece)
        lines += piece.count(b"\n")
    heads = [pattern.head.count(mark) for mark in (b'\n["c"', b'\n["d"', b'\n["s"')]
    each = (pattern.calls, pattern.details, pattern.states)
    totals = [head + one * steps for head, one in zip(heads, each, strict=True)]
    calls, details, states = totals
    end = EndMark(lines, calls, details, states, gaps={})
    journal.write(codec.encode_mark(end))
    journal.sync()
    journal.close()
    session.end(SessionStatus.COMPLETED, Receipt(lines, calls, details, states))


def _pieces(session_id: str, pattern: Pattern, *, steps: int, planted: int, rank: int) -> Iterator[bytes]:
    schemes = {"bits": "xxh3-64", "elements": "elements-u64"}
    yield codec.encode_mark(
        JournalHeader(FORMAT, VERSION, session_id, rank, 0, 0, (Level.MODULE, Level.OP), schemes, 4)
    )
    yield pattern.head
    for number in range(steps):
        yield pattern.step(number, planted=planted)
