"""`python -m benchmarks.faults.score`: runs the planted faults and controls, scores them, prints one table.

Exit status 0: every fault is exact or adjacent and no control is claimed; 1: one is not; 2: the suite could not run.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.faults.case import Control, Fault, Launch, Score
from benchmarks.faults.controls import CONTROLS
from benchmarks.faults.faults import FAULTS
from benchmarks.faults.generated import generated_controls, generated_faults
from benchmarks.faults.judging import (
    Sources,
    claims_of,
    judge_check,
    judge_control,
    judge_control_check,
    judge_fault,
    said,
    said_by_check,
)
from benchmarks.faults.ranked_controls import RANKED_CONTROLS
from benchmarks.faults.ranked_faults import RANKED_FAULTS
from benchmarks.faults.running import Captured, RunFailedError, Workplace
from benchmarks.faults.table import as_json, as_line, as_markdown, as_text

Case = Fault | Control


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    chosen = generated(options.generated, seed=options.seed) if options.generated else select(options)
    try:
        if options.keep is not None:
            scores = list(told(score_all(chosen, Path(options.keep))))
        else:
            with tempfile.TemporaryDirectory() as place:
                scores = list(told(score_all(chosen, Path(place))))
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
    parser.add_argument("--ranked", action="store_true", help="only the pairs on two ranks")
    parser.add_argument("--single", action="store_true", help="only the pairs in one process")
    parser.add_argument(
        "--generated", type=int, default=0, metavar="N", help="N generated faults and N controls instead"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the generated pairs")
    parser.add_argument("--keep", metavar="DIR", help="keep the runs in this new directory")
    return parser.parse_args(arguments)


def select(options: argparse.Namespace) -> list[Case]:
    """The named pairs, or all of the wished kinds; an unknown name is an error that lists the known ones."""
    single: tuple[Case, ...] = (*FAULTS, *CONTROLS)
    ranked: tuple[Case, ...] = (*RANKED_FAULTS, *RANKED_CONTROLS)
    wished = (*(() if options.ranked else single), *(() if options.single else ranked))
    every = {case.name: case for case in (*single, *ranked)}
    unknown = [name for name in options.only if name not in every]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(every)}")
    return [every[name] for name in options.only] or list(wished)


def generated(count: int, *, seed: int) -> list[Case]:
    return [*generated_faults(count, seed=seed), *generated_controls(count, seed=seed)]


def told(scores: Iterable[Score]) -> Iterator[Score]:
    """The same scores, each printed for who waits: the whole suite takes a quarter of an hour."""
    for score in scores:
        print(as_line(score), file=sys.stderr, flush=True)
        yield score


def score_all(cases: Iterable[Case], root: Path) -> Iterator[Score]:
    root.mkdir(parents=True, exist_ok=True)
    workplace = Workplace(root=root.resolve(), warm=True)
    for case in cases:
        yield from score_one(case, workplace)


def score_one(case: Case, workplace: Workplace) -> Iterator[Score]:
    """Capture both sides of one pair, compare them, hold the answer against the expected one; so for `check`."""
    baseline = workplace.capture(case.baseline, steps=case.steps)
    again = case.candidate == case.baseline
    capture = workplace.capture_again if again else workplace.capture
    candidate = capture(case.candidate, steps=case.steps)
    yield compared(case, baseline, candidate, workplace=workplace)
    if case.check if isinstance(case, Fault) else case.candidate.launch is not Launch.PROCESS:
        yield checked(case, candidate, workplace=workplace)


def compared(case: Case, baseline: Captured, candidate: Captured, *, workplace: Workplace) -> Score:
    options = case.options if isinstance(case, Control) else ()
    comparison, seconds = workplace.compare(baseline, candidate, options=options)
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
        seconds=seconds,
    )


def checked(case: Fault | Control, candidate: Captured, *, workplace: Workplace) -> Score:
    """What the faulty run, or that of a control, says about itself."""
    found, seconds = workplace.check(candidate)
    is_control = isinstance(case, Control)
    return Score(
        name=case.name,
        is_control=is_control,
        answer=judge_control_check(found) if isinstance(case, Control) else judge_check(case, found),
        said=said_by_check(found),
        undetermined=0,
        calls=0,
        seconds=seconds,
        asked="check",
    )


def sources_of(baseline: Captured, candidate: Captured) -> Sources:
    return Sources(baseline=texts(baseline.script.parent), candidate=texts(candidate.script.parent))


def texts(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.py")}


if __name__ == "__main__":
    sys.exit(main())
