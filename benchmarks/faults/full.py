"""`python -m benchmarks.faults.full`: the whole suite at generated places (CP-18, PF-12).

Rows are appended to files, so that a run that was stopped goes on with the pairs that are not there yet. With `--jobs`,
several go on side by side: pairs are dealt out by their baseline, so that none is captured twice. Ends with 0 when all
pairs are done, 3 when the time was up before, 1 when a workload itself failed and so tells nothing; `--result` writes
down what there is, either way.
"""

import argparse
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from benchmarks.faults.capturing import CaptureFailedError
from benchmarks.faults.case import Answer, Control, Fault, Variant
from benchmarks.faults.envelopes import Comparer
from benchmarks.faults.full_judging import claims_beyond, judge_masked, stands_out
from benchmarks.faults.judging import (
    Sources,
    claims_of,
    judge_check,
    judge_control_check,
    judge_fault,
    said,
    said_by_check,
)
from benchmarks.faults.placed_controls import Drawn, drawn_controls
from benchmarks.faults.placed_suite import placed_pairs
from benchmarks.faults.placing import Mode, Placed, placed
from benchmarks.faults.ranked_placing import Ranked, ranked_pairs
from benchmarks.faults.result import write_result
from benchmarks.faults.store import Kept, NotCapturedError, Store
from benchmarks.faults.tally import BROKEN
from paritrace.compare.checks import check
from paritrace.compare.result import Comparison
from paritrace.runs.reading import open_run

Row = dict[str, Any]
Pair = Placed | Drawn | Ranked
UNFINISHED = 3
NOT_RUN = 1  # a workload of the suite's own failed: its pair says nothing
DAY_SECONDS = 86_400  # longer than all pairs take on one core
STOP_SECONDS = 130  # a capture that hangs is given up after 120
BELOW = 1.0  # in float64 the mistake moves nothing by more than the largest of the draws does


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Part `index` of `count`."""

    index: int
    count: int

    def takes(self, variant: Variant) -> bool:
        return zlib.crc32(repr(variant).encode()) % self.count == self.index


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    words = list(sys.argv[1:] if arguments is None else arguments)
    status = side_by_side(words, jobs=options.jobs) if options.jobs > 1 else alone(options)
    if options.result is not None:
        rows = [row for path in files_of(options) for row in rows_of(path)]
        command = f"python -m benchmarks.faults.full {' '.join(words)}"
        write_result(rows, Path(options.result), command=command, num_pairs=len(every_pair(options)))
        status = status or (NOT_RUN if any(row["kind"] == BROKEN for row in rows) else 0)
    return status


def alone(options: argparse.Namespace) -> int:
    """Score the pairs of one shard in this process."""
    out = Path(options.out)
    rows = [row for path in files_of(options) for row in rows_of(path)] if options.resume else []
    known = {row["id"] for row in rows if row["kind"] != BROKEN}
    store = Store(Path(options.runs).resolve(), may_capture=not options.compare_only)
    wanted = [pair for pair in chosen(options) if pair.id not in known]
    left = run_pairs(wanted, store=store, out=out, until=time.monotonic() + options.minutes * 60)
    print(f"{len(wanted) - left} pairs done, {left} left", file=sys.stderr)
    return UNFINISHED if left else 0


def side_by_side(words: Sequence[str], *, jobs: int) -> int:
    """The same command in several processes, a shard each; their files lie beside each other."""
    own = list(words)
    at = own.index("--out") + 1
    out = own[at]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for index in range(jobs):
            own[at] = f"{out}.{index}"
            more = ("--jobs", "1", "--shard", f"{index}/{jobs}")
            command = [sys.executable, "-m", "benchmarks.faults.full", *without_result(own), *more]
            started.append(subprocess.Popen(command))
        return max(process.wait(timeout=DAY_SECONDS) for process in started)
    finally:
        for process in started:
            process.terminate()
            process.wait(timeout=STOP_SECONDS)


def without_result(words: Sequence[str]) -> list[str]:
    at = words.index("--result") if "--result" in words else len(words)
    return [*words[:at], *words[at + 2 :]]


def files_of(options: argparse.Namespace) -> list[Path]:
    """The file of rows, and those of its shards."""
    out = Path(options.out)
    return [out, *sorted(out.parent.glob(f"{out.name}.*"))]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.full", description=__doc__)
    parser.add_argument("--out", required=True, metavar="FILE", help="rows are appended here, one JSON document a line")
    parser.add_argument("--runs", required=True, metavar="DIR", help="captures are kept here and found again")
    parser.add_argument("--resume", action="store_true", help="leave out the pairs that FILE has")
    parser.add_argument("--compare-only", action="store_true", help="make no capture: compare what is in DIR")
    parser.add_argument("--placements", type=int, default=25, metavar="N", help="places of each mechanism")
    parser.add_argument("--controls", type=int, default=1050, metavar="N")
    parser.add_argument("--ranked", type=int, default=25, metavar="N", help="places of each mechanism of two ranks")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="pairs with TEXT in their names")
    parser.add_argument("--where", default="", metavar="TEXT", help="pairs whose runs have TEXT among their arguments")
    parser.add_argument("--minutes", type=float, default=1e6, metavar="M", help="stop before a pair that begins later")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="only this part of the pairs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="this many processes, a shard each")
    parser.add_argument("--result", metavar="JSON", help="write counts, rates and intervals there, for the docs")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> Iterator[Pair]:
    """The pairs of this shard, faults and controls evenly mixed."""
    index, _, count = options.shard.partition("/")
    shard = Shard(index=int(index), count=int(count))
    for pair in every_pair(options):
        wanted = not options.only or any(text in pair.id for text in options.only)
        side = case_of(pair).baseline
        if shard.takes(side) and wanted and options.where in " ".join(side.arguments):
            yield pair


def every_pair(options: argparse.Namespace) -> list[Pair]:
    """All pairs of these numbers and this seed, whoever scores them."""
    faults = list(placed_pairs(options.placements, seed=options.seed))
    controls = list(drawn_controls(options.controls, seed=options.seed))
    return mixed(faults, controls, list(ranked_pairs(options.ranked, seed=options.seed)))


def mixed(*kinds: Sequence[Pair]) -> list[Pair]:
    """Each kind in its own order, all at an even pace."""
    placed = [(place / len(kind), number, pair) for number, kind in enumerate(kinds) for place, pair in enumerate(kind)]
    return [pair for *_, pair in sorted(placed, key=lambda item: item[:2])]


def case_of(pair: Pair) -> Fault | Control:
    return pair.control if isinstance(pair, Drawn) else pair.fault


def run_pairs(pairs: Sequence[Pair], *, store: Store, out: Path, until: float) -> int:
    """Score one after the other, each appended as soon as it is known; returns how many were not begun."""
    comparer = Comparer(store)
    commit = commit_of(Path(__file__).parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as lines:
        for number, pair in enumerate(pairs):
            if time.monotonic() > until:
                return len(pairs) - number
            try:
                row = scored(pair, store=store, comparer=comparer)
            except NotCapturedError:
                continue
            except CaptureFailedError as failure:
                print(f"{pair.id} did not run: {failure}", file=sys.stderr, flush=True)
                row = {"id": pair.id, "kind": BROKEN, "said": str(failure)[-500:]}
            lines.write(json.dumps({**row, "commit": commit}) + "\n")
            lines.flush()
    return 0


def scored(pair: Pair, *, store: Store, comparer: Comparer) -> Row:
    """Capture what is missing of a pair, compare it, and hold the answer against the place."""
    case = case_of(pair)
    baseline = store.captured(case.baseline)
    candidate = store.captured(case.candidate, again=case.candidate == case.baseline)
    judged = is_judged(pair)
    if judged:
        store.draws(case.baseline)
    started = time.perf_counter()
    comparison = (
        comparer.judged(case.baseline, candidate.run) if judged else comparer.plain(baseline.run, candidate.run)
    )
    row = row_of(comparison, seconds=time.perf_counter() - started, captured=candidate.seconds)
    sources = Sources(baseline=baseline.sources, candidate=candidate.sources)
    match pair:
        case Placed():
            return {**fault_row(pair, comparison, sources, comparer), **row}
        case Ranked():
            return {**ranked_row(pair, comparison, sources, candidate), **row}
        case Drawn():
            return {**control_row(pair, comparison, candidate), **row}
        case _:
            assert_never(pair)


def is_judged(pair: Pair) -> bool:
    """Whether the baseline's envelope judges: where bits differ for a benign reason."""
    if isinstance(pair, Drawn):
        return pair.judged
    return isinstance(pair, Placed) and pair.mode is Mode.MASKED


def ranked_row(pair: Ranked, comparison: Comparison, sources: Sources, candidate: Kept) -> Row:
    row = {
        "id": pair.id,
        "kind": "fault",
        "name": pair.name,
        "mode": "ranked",
        "placement": [pair.seed, pair.batch, pair.parameter],
        "answer": judge_fault(pair.fault, comparison, sources).value,
        "said": said(comparison),
    }
    if pair.fault.check:
        with open_run(candidate.run) as opened:
            checked = check(opened)
        row |= {"check": judge_check(pair.fault, checked).value, "check_said": said_by_check(checked)}
    return row


def row_of(comparison: Comparison, *, seconds: float, captured: float) -> Row:
    counts = comparison.counts
    return {
        "undetermined": counts.undetermined_baseline + counts.undetermined_candidate,
        "calls": counts.calls_baseline + counts.calls_candidate,
        "one_sided": sum(found.count for found in comparison.recorded_on_one_side),
        "seconds": round(seconds, 4),
        "captured": captured,
    }


def fault_row(pair: Placed, comparison: Comparison, sources: Sources, comparer: Comparer) -> Row:
    place = pair.placement
    plain = pair.mode is Mode.PLAIN
    answer = judge_fault(pair.fault, comparison, sources) if plain else judge_masked(pair.fault, comparison, sources)
    row: Row = {
        "id": pair.id,
        "kind": "fault",
        "name": pair.mechanism.name,
        "mode": pair.mode.value,
        "placement": [
            place.layer,
            place.number,
            place.dtype,
            place.passes.value,
            place.seed,
            place.parameter,
            place.mask,
        ],
        "answer": answer.value,
        "said": said(comparison),
    }
    if answer is Answer.MISSED and not plain and not stands_out(comparison):
        row["effect"] = comparer.effect(pair.fault.baseline, without_mask(pair))
        if row["effect"] is not None and row["effect"] <= BELOW:
            row["answer"] = "below round-off"
    return row


def without_mask(pair: Placed) -> Variant:
    return placed(pair.mechanism, pair.placement, number=0, mode=Mode.PLAIN, mask=()).fault.candidate


def control_row(pair: Drawn, comparison: Comparison, candidate: Kept) -> Row:
    claims = list(claims_of(pair.control, comparison)) if pair.control.strict else []
    if pair.judged:
        claims += claims_beyond(pair.control, comparison)
    with open_run(candidate.run) as opened:
        checked = check(opened)
    return {
        "id": pair.id,
        "kind": "control",
        "name": pair.kind,
        "answer": (Answer.FALSE_CLAIM if claims else Answer.SILENT).value,
        "said": "; ".join(claims[:3]),
        "check": judge_control_check(checked).value,
        "check_said": said_by_check(checked) if judge_control_check(checked) is Answer.FALSE_CLAIM else "",
    }


def rows_of(path: Path) -> list[Row]:
    """The rows of a file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def commit_of(directory: Path) -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
