"""Whether `paritrace judge` can run the two programs again, and how long that takes at most (CP-26, CP-29)."""

from pathlib import Path

from paritrace.compare.result import Comparison
from paritrace.errors import ParitraceError
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.runs.reading import Run
from paritrace.runs.request import request_of, require_whole

NANOSECONDS = 1_000_000_000
START_SECONDS = 3  # of a program that imports torch: its session begins after the interpreter did


def judging_seconds(comparison: Comparison, /, *, baseline: Run, candidate: Run, files: Files = LOCAL) -> int | None:
    """Returns the seconds that judging the first finding takes: the baseline twice, the candidate once.

    None where it cannot be judged: no module call, or a program that is not known or not there any more.
    """
    place = comparison.findings[0].place if comparison.findings else None
    if place is None or not place.module or min(place.baseline_record_id, place.candidate_record_id) < 0:
        return None
    times = [_seconds(run, files=files) for run in (baseline, candidate)]
    return None if times[0] is None or times[1] is None else 2 * times[0] + times[1]


def narrowing_seconds(*, baseline: Run, candidate: Run, files: Files = LOCAL) -> int | None:
    """Returns the seconds that narrowing takes: both twice, the baseline once more; None where it cannot be done."""
    times = [_seconds(run, files=files) for run in (baseline, candidate)]
    return None if times[0] is None or times[1] is None else 3 * times[0] + 2 * times[1]


def _seconds(run: Run, *, files: Files) -> int | None:
    """How long the program ran, which is more than a replay waits for; None where it cannot be started again."""
    try:
        request = request_of(run)
        require_whole(request)
    except ParitraceError:
        return None
    if not files.exists(Path(request.main)) or not files.exists(Path(request.directory)):
        return None
    durations = [row.duration_ns for row in run.envelope.sessions]
    known = [value for value in durations if not isinstance(value, Gap)]
    return START_SECONDS + max(known) // NANOSECONDS if known else None
