"""`python -m benchmarks.faults.peers.score`: the planted faults in one process, asked of other tools and of paritrace.

Prints one table; `--json FILE` keeps what the table is made from. Tools that are not installed in the environment of
`--python` are named and left out.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.faults.case import Control, Expected, Fault, Score
from benchmarks.faults.controls import CONTROLS
from benchmarks.faults.faults import FAULTS
from benchmarks.faults.judging import Sources
from benchmarks.faults.peers.answers import Named, answer_to_control, answer_to_fault
from benchmarks.faults.peers.asking import PEERS, Peer, Side, Worker, has, worker, written
from benchmarks.faults.peers.table import NO_ANSWER, Asked, read, table
from benchmarks.faults.running import Workplace
from benchmarks.faults.score import score_one, texts

Case = Fault | Control
EVERY: tuple[Case, ...] = (*FAULTS, *CONTROLS)
OURS = "paritrace"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    cases = [case for case in EVERY if not options.only or case.name in options.only]
    found: list[Asked] = []
    with tempfile.TemporaryDirectory() as place:
        for asked in every(cases, options, root=Path(place)):
            print(f"{asked.tool:10} {asked.pair:24} {asked.answer:12} {asked.said}", file=sys.stderr, flush=True)
            found.append(asked)
    if options.json:
        found = renewed(Path(options.json), found)
    print(table(found))
    return 0


def renewed(path: Path, found: list[Asked]) -> list[Asked]:
    """The answers in a file with those of the same tool and pair replaced; the file is written anew."""
    known = read(path) if path.exists() else []
    answers = {(asked.tool, asked.pair): asked for asked in (*known, *found)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(answers.values())), indent=1) + b"\n")
    return list(answers.values())


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.peers.score", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="of the environment in which the tools are installed")
    parser.add_argument("--tool", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this pair; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="put the answers into this file, in place of older ones")
    return parser.parse_args(arguments)


def every(cases: list[Case], options: argparse.Namespace, *, root: Path) -> Iterator[Asked]:
    for peer in PEERS:
        if options.tool and peer.name not in options.tool:
            continue
        version = has(peer, python=options.python)
        if not version:
            print(f"{peer.name} is not installed for {options.python}: left out", file=sys.stderr)
            continue
        with worker(peer, python=options.python) as running:
            for case in cases:
                if not peer.forward_only or in_first_forward(case):
                    yield ask(peer, version, case, running, root=root)
    if not options.tool or OURS in options.tool:
        yield from ours(cases, root=root / OURS)


def in_first_forward(case: Case) -> bool:
    """Whether a look at the first forward pass alone can show this pair's fault; of controls it always may."""
    return isinstance(case, Control) or any(is_early(expected) for expected in case.expected)


def is_early(expected: Expected) -> bool:
    return expected.step == 0 and expected.phase in ("", "forward") and expected.file in ("", "model.py")


def ask(peer: Peer, version: str, case: Case, running: Worker, *, root: Path) -> Asked:
    place = root / peer.name / case.name
    baseline = written(case.baseline, place=place / "a")
    candidate = written(case.candidate, place=place / "b")
    named, seconds = running.ask(baseline, candidate, place=place / "work")
    return Asked(
        tool=peer.name,
        version=version,
        pair=case.name,
        is_control=isinstance(case, Control),
        answer=answered(case, named, baseline, candidate),
        said=said(named),
        seconds=round(seconds, 2),
    )


def answered(case: Case, named: Named, baseline: Side, candidate: Side) -> str:
    if named.error:
        return NO_ANSWER
    if isinstance(case, Control):
        return answer_to_control(case, named).value
    sources = Sources(baseline=texts(baseline.script.parent), candidate=texts(candidate.script.parent))
    return answer_to_fault(case, named, sources).value


def said(named: Named) -> str:
    if named.error:
        return named.error
    if not named.claims:
        return "no difference"
    place = f" {named.frames[0][0]}:{named.frames[0][1]}" if named.frames else ""
    return f"step {named.step} {named.phase} {named.name}{place}"


def ours(cases: list[Case], *, root: Path) -> Iterator[Asked]:
    """The same pairs through `paritrace run` and `paritrace compare`, scored by the suite's own, stricter rule."""
    root.mkdir(parents=True)
    workplace = Workplace(root=root.resolve())
    for case in cases:
        for score in score_one(case, workplace):
            if score.asked == "compare":
                yield own(score)


def own(score: Score) -> Asked:
    return Asked(
        tool=OURS,
        version="",
        pair=score.name,
        is_control=score.is_control,
        answer=score.answer.value,
        said=score.said,
        seconds=round(score.seconds, 2),
    )


if __name__ == "__main__":
    sys.exit(main())
