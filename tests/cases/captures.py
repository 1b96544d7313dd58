"""Runs a training script bare or captured in a process of its own, and reads what was captured."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import msgspec

from benchmarks import warm
from paritrace.compare.result import Comparison
from paritrace.evidence.calls import Call, Context, Detail, Function, GapMark, Name, Phase
from paritrace.evidence.codec import Record
from paritrace.evidence.journal import Loss
from paritrace.runs.reading import open_run

DEADLINE_SECONDS = 300  # many times what any of these scripts takes; only something that hangs gets there


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A process that has ended."""

    status: int
    stdout: str
    stderr: str


@dataclass
class Recorded:
    """Everything one session's journal holds, by kind."""

    calls: list[Call] = field(default_factory=list)
    details: list[Detail] = field(default_factory=list)
    gaps: list[GapMark] = field(default_factory=list)
    functions: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    contexts: dict[int, Context] = field(default_factory=dict)

    def function(self, call: Call) -> str:
        return self.functions[call.function]

    def phase(self, call: Call) -> Phase:
        return self.contexts[call.context].phase

    def node(self, call: Call) -> str:
        return self.names[call.node] if call.node >= 0 else ""

    def by_id(self) -> dict[int, Call]:
        return {call.id: call for call in self.calls}


def write_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def run_bare(script: Path, *arguments: str, cold: bool = False) -> Ended:
    return run_python(str(script), *arguments, directory=script.parent, cold=cold)


def run_captured(
    script: Path,
    run: Path,
    *arguments: str,
    levels: Sequence[str] = ("module", "op"),
    steps: str = "0:3",
    cold: bool = False,
) -> Ended:
    """The script under `paritrace run`, with the workload's own status and output."""
    chosen = [option for level in levels for option in ("--level", level)]
    command = ("-m", "paritrace", "run", "-o", str(run), *chosen, "--steps", steps, str(script))
    return run_python(*command, *arguments, directory=script.parent, cold=cold)


def compare(baseline: Path, candidate: Path) -> Comparison:
    done = run_python("-m", "paritrace", "compare", str(baseline), str(candidate), "--json", directory=candidate)
    assert done.status == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Comparison)


def run_python(*arguments: str, directory: Path, cold: bool = False) -> Ended:
    """`python ARGUMENTS`, forked from a process that has imported torch, or `cold`: by an interpreter that begins."""
    done = subprocess.run(
        [sys.executable if cold else warm.python(), *arguments],
        cwd=directory,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    return Ended(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def recorded(run: Path) -> Recorded:
    """The only session of a run; a journal with a loss is an error here."""
    found = Recorded()
    with open_run(run) as opened:
        (session,) = opened.sessions
        for item in opened.records(session.session_id):
            keep(found, item)
    return found


def keep(found: Recorded, item: Record | Loss) -> None:
    match item:
        case Loss():
            raise AssertionError(item)
        case Call():
            found.calls.append(item)
        case Detail():
            found.details.append(item)
        case GapMark():
            found.gaps.append(item)
        case Function():
            found.functions[item.id] = item.name
        case Name():
            found.names[item.id] = item.text
        case Context():
            found.contexts[item.id] = item
        case _:
            pass
