"""One rank's part of a comparison as a piece of work that any process can do: paths in, a summary out (CP-17)."""

import gc
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paritrace.compare.changes import changes
from paritrace.compare.folds_apart import Apart
from paritrace.compare.judged_by import Envelopes, JudgedBy
from paritrace.compare.judgement import RankJudgement, judgement
from paritrace.compare.load import load
from paritrace.compare.rank_summary import RankSummary, summarise
from paritrace.compare.ranks import RankComparison, compare_rank
from paritrace.compare.result import Change
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines
from paritrace.runs.reading import Run, open_run
from paritrace.runs.views import SessionView

SOURCES_KEPT = 256  # texts in memory: each is read once per comparison of a rank
Pair = tuple[SessionView, SessionView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """`JudgedBy` without open runs: where they lie."""

    by: JudgedBy
    runs: tuple[Path, ...]
    origin: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankJob:
    """What a process must know to compare one pair of sessions."""

    folders: tuple[Path, Path]
    session_ids: tuple[str, str]
    settings: Settings
    judges: Judges | None
    ranks: frozenset[int]  # all that are compared: a draw that lacks one is none
    tells_changes: bool
    limits: tuple[float, ...] | None = None  # of the envelopes of all ranks together


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDone:
    """What one rank gives to the result; `changed` is empty unless the job was to tell it."""

    summary: RankSummary
    changed: tuple[Change, ...]


def judges_of(by: JudgedBy | None) -> Judges | None:
    """Where the runs lie that a comparison is judged by."""
    if by is None:
        return None
    origin = None if by.origin is None else by.origin.folder
    return Judges(by=by._replace(runs=(), origin=None), runs=tuple(run.folder for run in by.runs), origin=origin)


def run_job(job: RankJob) -> RankDone:
    """Compare one rank from its files alone.

    Raises:
        EvidenceError: Refused: a journal of another format or of a newer major version.
    """
    with ExitStack() as stack:
        a, b = (stack.enter_context(open_run(folder)) for folder in job.folders)
        envelopes = None if job.judges is None else _envelopes(job, job.judges, a, stack)
        pair = (a.session(job.session_ids[0]), b.session(job.session_ids[1]))
        with no_search_for_cycles():
            lines, samples = lines_of(a, b), envelopes is not None
            of = compare_sessions((a, b), pair, settings=job.settings, lines=lines, samples=samples)
            return done(of, envelopes, settings=job.settings, tells_changes=job.tells_changes)


def limits_of_job(job: RankJob) -> tuple[float, ...] | None:
    """How far each draw goes on this rank; None without an envelope."""
    with ExitStack() as stack:
        a = stack.enter_context(open_run(job.folders[0]))
        envelopes = None if job.judges is None else _envelopes(job, job.judges, a, stack)
        return None if envelopes is None else envelopes.limits_of(a.session(job.session_ids[0]))


def _envelopes(job: RankJob, judges: Judges, baseline: Run, stack: ExitStack) -> Envelopes:
    by = _opened(judges, stack)
    envelopes = Envelopes(by, baseline, settings=job.settings, ranks=job.ranks)
    envelopes.limits = job.limits
    return envelopes


def done(of: RankComparison, by: Envelopes | None, *, settings: Settings, tells_changes: bool) -> RankDone:
    """What the result needs of one rank's comparison."""
    sides = of.sides
    recorded = (sides.baseline.recorded, sides.candidate.recorded)
    told = changes(*recorded, lines=of.lines, settings=settings) if tells_changes else ()
    summary = summarise(of, _judgement(of, by), policy=settings.rules)
    return RankDone(summary=summary, changed=told)


def compare_sessions(
    runs: tuple[Run, Run], pair: Pair, *, settings: Settings, lines: Lines, samples: bool = True
) -> RankComparison:
    """Load both sessions of a pair and compare them; `samples`: as `load` says."""
    with no_search_for_cycles():
        left, right = (
            load(run, session, settings=settings, samples=samples) for run, session in zip(runs, pair, strict=True)
        )
        return compare_rank(left, right, settings=settings, lines=lines)


@contextmanager
def no_search_for_cycles() -> Generator[None]:
    """Millions of small records are made and none of them refers back: looking for cycles took half of the time."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def lines_of(a: Run, b: Run) -> Lines:
    """How the source lines of two runs relate, made when first asked for."""
    return Lines(lru_cache(maxsize=SOURCES_KEPT)(a.source), lru_cache(maxsize=SOURCES_KEPT)(b.source))


def _opened(judges: Judges, stack: ExitStack) -> JudgedBy:
    runs = tuple(stack.enter_context(open_run(folder)) for folder in judges.runs)
    origin = None if judges.origin is None else stack.enter_context(open_run(judges.origin))
    return judges.by._replace(runs=runs, origin=origin)


def _judgement(of: RankComparison, by: Envelopes | None) -> RankJudgement | None:
    if by is None or of.sides.apart is not Apart.NO:  # draws of another layout say nothing of its shards
        return None
    envelope = by.around(of.sides.baseline.recorded)
    num_draws = by.num_draws if envelope is None else envelope.num_draws
    return judgement(of, envelope, kind=by.kind, num_draws=num_draws, jointly=by.limits is not None)
