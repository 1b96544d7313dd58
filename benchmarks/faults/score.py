"""`python -m benchmarks.faults.score`: runs the planted faults and controls, scores them, prints one table.

Exit status 0: every fault is exact or adjacent and no control is claimed; 1: one is not; 2: the suite could not run.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.faults.case import Control, Fault, Score
from benchmarks.faults.controls import CONTROLS
from benchmarks.faults.faults import FAULTS
from benchmarks.faults.generated import generated_controls, generated_faults
from benchmarks.faults.judging import Sources, claims_of, judge_control, judge_fault, said
from benchmarks.faults.running import Captured, RunFailedError, Workplace
from benchmarks.faults.table import as_json, as_markdown, as_text

Case = Fault | Control


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    chosen = generated(options.generated, seed=options.seed) if options.generated else select(options.only)
    try:
        if options.keep is not None:
            scores = list(score_all(chosen, Path(options.keep)))
        else:
            with tempfile.TemporaryDirectory() as place:
                scores = list(score_all(chosen, Path(place)))
    except RunFailedError as failure:
        print(failure, file=sys.stderr)
        return 2
    mechanisms = {case.name: case.mechanism for case in chosen}
    writer = {"text": as_text, "json": as_json, "markdown": as_markdown}[options.format]
    print(writer(scores, mechanisms))
    return 0 if all(score.good for score in scores) else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.score", description=__doc__)
    parser.add_argument("--json", dest="format", action="store_const", const="json", default="text")
    parser.add_argument("--markdown", dest="format", action="store_const", const="markdown")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="score this pair; may be repeated")
    parser.add_argument(
        "--generated", type=int, default=0, metavar="N", help="N generated faults and N controls instead"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the generated pairs")
    parser.add_argument("--keep", metavar="DIR", help="keep the runs in this new directory")
    return parser.parse_args(arguments)


def select(names: Iterable[str]) -> list[Case]:
    """The named pairs, or all; an unknown name is an error that lists the known ones."""
    cases: tuple[Case, ...] = (*FAULTS, *CONTROLS)
    every = {case.name: case for case in cases}
    unknown = [name for name in names if name not in every]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(every)}")
    return [every[name] for name in names] or list(every.values())


def generated(count: int, *, seed: int) -> list[Case]:
    return [*generated_faults(count, seed=seed), *generated_controls(count, seed=seed)]


def score_all(cases: Iterable[Case], root: Path) -> Iterator[Score]:
    root.mkdir(parents=True, exist_ok=True)
    workplace = Workplace(root=root.resolve())
    for case in cases:
        yield score_one(case, workplace)


def score_one(case: Case, workplace: Workplace) -> Score:
    """Capture both sides of one pair, compare them, hold the answer against the expected one."""
    baseline = workplace.capture(case.baseline, steps=case.steps)
    again = case.candidate == case.baseline
    capture = workplace.capture_again if again else workplace.capture
    candidate = capture(case.candidate, steps=case.steps)
    comparison, seconds = workplace.compare(baseline, candidate)
    is_control = isinstance(case, Control)
    if isinstance(case, Control):
        answer, words = judge_control(case, comparison), "; ".join(claims_of(case, comparison)) or "nothing claimed"
    else:
        answer, words = judge_fault(case, comparison, sources_of(baseline, candidate)), said(comparison)
    counts = comparison.counts
    return Score(
        name=case.name,
        is_control=is_control,
        answer=answer,
        said=words,
        undetermined=counts.undetermined_baseline + counts.undetermined_candidate,
        calls=counts.calls_baseline + counts.calls_candidate,
        compare_seconds=seconds,
    )


def sources_of(baseline: Captured, candidate: Captured) -> Sources:
    return Sources(baseline=texts(baseline.script.parent), candidate=texts(candidate.script.parent))


def texts(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.py")}


if __name__ == "__main__":
    sys.exit(main())
