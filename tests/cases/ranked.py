"""Runs a script on several gloo ranks under `paritrace run`, and reads what each rank captured."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import warm
from paritrace.evidence.calls import Call, Completed, Detail, EndMark, Function, Name
from paritrace.evidence.codec import Record
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group
from paritrace.evidence.journal import Loss
from paritrace.runs.reading import open_run
from tests.cases.captures import Ended

DEADLINE_SECONDS = 300  # many times what these jobs take; only something that hangs gets there
ROOT = Path(__file__).parents[2]


@dataclass
class Rank:
    """One rank's journal: every record in order, and the ones these cases ask for."""

    records: list[Record] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    completed: dict[int, Completed] = field(default_factory=dict)
    details: list[Detail] = field(default_factory=list)
    groups: dict[int, Group] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    counts: list[CollectiveCounts] = field(default_factory=list)
    gaps: dict[str, int] = field(default_factory=dict)

    def function(self, call: Call) -> str:
        return self.functions[call.function]

    def of(self, operation: str, *, group: str = "") -> list[Collective]:
        """The collectives of one operation, in order."""
        return [
            found
            for found in self.collectives
            if found.operation == operation and (not group or self.groups[found.group].key == group)
        ]

    def completed_by(self, collective: Collective) -> str:
        """What showed that it completed; empty if nothing did."""
        found = self.completed.get(collective.call)
        return "" if found is None else found.by

    def bits(self, collective: Collective) -> tuple[object, ...]:
        return self.completed[collective.call].bits


def run_ranks(
    script: Path,
    run: Path,
    *arguments: str,
    levels: Sequence[str] = ("op",),
    steps: str = "0:100",
    ranks: int = 2,
    options: Sequence[str] = (),
) -> Ended:
    """`torchrun … -m paritrace run …`, as a person would write it."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    chosen = [option for level in levels for option in ("--level", level)]
    ours = ("-m", "paritrace", "run", "-o", str(run), *chosen, "--steps", steps, *options, str(script), *arguments)
    done = subprocess.run(
        [warm.python(), *launcher, *ours],
        cwd=script.parent,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    return Ended(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def recorded_ranks(run: Path) -> dict[int, Rank]:
    """Every rank's journal; a loss in one is an error here."""
    with open_run(run) as opened:
        return {session.rank: _read(opened.records(session.session_id)) for session in opened.sessions}


def said(place: Path, rank: int) -> dict[str, Any]:
    """What the script itself wrote of one rank."""
    told: dict[str, Any] = json.loads((place / f"rank-{rank}.json").read_text(encoding="utf-8"))
    return told


def _read(records: Any) -> Rank:
    rank = Rank()
    for item in records:
        assert not isinstance(item, Loss), item
        rank.records.append(item)
        match item:
            case Call():
                rank.calls[item.id] = item
            case Collective():
                rank.collectives.append(item)
            case Completed():
                assert item.call not in rank.completed
                rank.completed[item.call] = item
            case Detail():
                rank.details.append(item)
            case Group():
                rank.groups[item.id] = item
            case Function():
                rank.functions[item.id] = item.name
            case Name():
                rank.names[item.id] = item.text
            case CollectiveCounts():
                rank.counts.append(item)
            case EndMark():
                rank.gaps = item.gaps
            case _:
                pass
    return rank
