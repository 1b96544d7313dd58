"""Reads what other tools left in `RUN/death`: flight recorder dumps, NCCL RAS text, stacks; names what is not there."""

import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.runs.death import Source, SourceState
from paritrace.runs.flight_dumps import MAX_DUMP_BYTES, open_operations
from paritrace.runs.ras_text import ras_report
from paritrace.runs.reading import Run
from paritrace.runs.record_lines import DEATH_FOLDER
from paritrace.runs.stack_texts import stack_text

FLIGHT_NAMES = "*trace_rank_*"
RAS_NAMES = "*ras*.txt"
STACK_NAMES = "*py-spy*.txt"
RAS_WORDS = ("mismatch", "missing", "fail", "dead")
MAX_TEXT_BYTES = 1 << 20
MOST_LINES = 20


class Beside:
    """What other tools left in `RUN/death`, and which of them are not there."""

    def __init__(self, run: Run, files: Files) -> None:
        self.in_flight: list[str] = []
        self.stacks: dict[int, tuple[str, ...]] = {}
        self.sources: list[Source] = []
        self._files = files
        folder = run.folder / DEATH_FOLDER
        there = files.list(folder) if files.exists(folder) and files.is_folder(folder) else ()
        self._flights([path for path in there if path.match(FLIGHT_NAMES)])
        self._ras_texts([path for path in there if path.match(RAS_NAMES)])
        self._stack_texts([path for path in there if path.match(STACK_NAMES)], run)

    def _flights(self, paths: Sequence[Path]) -> None:
        name = "PyTorch flight recorder"
        if not paths:
            self.sources.append(Source(name, SourceState.ABSENT, f"no {FLIGHT_NAMES} in {DEATH_FOLDER}/"))
        for path in paths:
            rank = path.name.rpartition("_")[2].partition(".")[0]
            try:
                data = b"".join(self._files.iter_chunks(path, length=MAX_DUMP_BYTES))
                left, stack = open_operations(data, name=path.name)
            except (EvidenceError, HostError) as error:
                self.sources.append(Source(name, SourceState.UNREADABLE, error.message))
                continue
            self.sources.append(Source(name, SourceState.READ, path.name))
            self.in_flight += [f"rank {rank}: {words} ({path.name})" for words in left]
            if stack and rank.isdigit():
                self.stacks[int(rank)] = stack

    def _ras_texts(self, paths: Sequence[Path]) -> None:
        name = "NCCL RAS text"
        if not paths:
            self.sources.append(Source(name, SourceState.ABSENT, f"no {RAS_NAMES} in {DEATH_FOLDER}/"))
        for path in paths:
            lines = self._readable(name, path)
            if lines is None:
                continue
            report = ras_report(lines)
            if report is None:
                words = ", ".join(RAS_WORDS)
                detail = f"{path.name}: not in the form of ncclras; shown are its lines with {words}"
                told = tuple(line.strip() for line in lines if any(word in line.lower() for word in RAS_WORDS))
            else:
                told = report.findings
                detail = f"{path.name}: groups of communicators: {report.num_groups}, not OK: {report.num_not_ok}"
            self.sources.append(Source(name, SourceState.READ, detail))
            self.in_flight += [f"{path.name}: {line}" for line in _bounded(told)]

    def _stack_texts(self, paths: Sequence[Path], run: Run) -> None:
        name = "py-spy"
        if not paths:
            here = "installed here" if importlib.util.find_spec("py_spy") else "not installed here"
            detail = f"no {STACK_NAMES} in {DEATH_FOLDER}/; py-spy is {here}, and shows living processes alone"
            self.sources.append(Source(name, SourceState.ABSENT, detail))
        for path in paths:
            lines = self._readable(name, path)
            if lines is None:
                continue
            found = stack_text(lines)
            if found is None:
                detail = f"{path.name}: not in the form of `py-spy dump`"
                self.sources.append(Source(name, SourceState.UNREADABLE, detail))
                continue
            rank = _rank_named(path.stem)
            rank = _rank_of_pid(run, found.pid) if rank is None else rank
            if rank is None:
                detail = f"{path.name}: of which rank it is, neither its name (rank1) nor its process says"
                self.sources.append(Source(name, SourceState.READ, detail))
                continue
            self.sources.append(Source(name, SourceState.READ, f"{path.name}: of rank {rank}"))
            self.stacks[rank] = _bounded(found.frames)

    def _readable(self, name: str, path: Path) -> list[str] | None:
        try:
            return list(self._lines(path))
        except HostError as error:
            self.sources.append(Source(name, SourceState.UNREADABLE, error.message))
            return None

    def _lines(self, path: Path) -> Iterator[str]:
        data = b"".join(self._files.iter_chunks(path, length=MAX_TEXT_BYTES))
        yield from data.decode("utf-8", "replace").splitlines()


def _rank_named(stem: str) -> int | None:
    """The rank that a file's name ends with, as in py-spy-rank1."""
    found = re.search(r"rank[-_.]?(\d+)$", stem)
    return None if found is None else int(found.group(1))


def _rank_of_pid(run: Run, pid: int | None) -> int | None:
    """The rank whose process had this number; None where none had, or ranks of several machines or starts did."""
    ranks = {view.rank for view in run.sessions if pid is not None and view.row.process.pid == pid}
    return ranks.pop() if len(ranks) == 1 else None


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    left = len(lines) - MOST_LINES
    return tuple(lines) if left <= 0 else (*lines[:MOST_LINES], f"and {left:,} more lines")
