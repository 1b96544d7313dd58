"""Prepares the comparison of a resumed run, and joins what its boundary says to the result (CP-28)."""

from collections.abc import Mapping

from msgspec.structs import replace

from paritrace.compare.result import Comparison
from paritrace.compare.resume import inventory
from paritrace.compare.resume_boundary import Asked, Side, plan
from paritrace.compare.resume_result import ResumePlan
from paritrace.compare.resume_states import SessionStates, session_states
from paritrace.compare.settings import Settings
from paritrace.runs.reading import Run


def resumed(runs: tuple[Run, Run], asked: Asked, *, settings: Settings) -> Settings:
    """Leave in both runs the sessions that are to be compared, and return the settings for that.

    Raises:
        RequestError: Refused, `no_such_boundary`.
    """
    sides = [Side(run.run_id, _by_rank(run, settings)) for run in runs]
    found = plan(asked, baseline=sides[0], candidate=sides[1])
    for run, chosen in zip(runs, found.sessions, strict=True):
        run.restrict(chosen)
    first, end = settings.steps or (0, None)
    return replace(settings, steps=(max(first, asked.step), end), resume=found)


def with_resume(comparison: Comparison, runs: tuple[Run, Run], *, settings: Settings) -> Comparison:
    """The comparison with the state at the boundary; unchanged where nothing was resumed."""
    if settings.resume is None:
        return comparison
    ours, theirs = (_one_by_rank(run, settings) for run in runs)
    pairs = {rank: (ours[rank], theirs[rank]) for rank in sorted(ours.keys() & theirs.keys())}
    own = {rank: _own_step(settings.resume, runs[1], theirs[rank]) for rank in pairs}
    missing = sorted(ours.keys() ^ theirs.keys())
    found = inventory(pairs, settings.resume, own_steps=own, missing=missing)
    return replace(comparison, resume=found)


def _by_rank(run: Run, settings: Settings) -> dict[int, list[SessionStates]]:
    found: dict[int, list[SessionStates]] = {}
    for view in sorted(run.sessions, key=lambda view: view.incarnation):
        if settings.ranks is None or view.rank in settings.ranks:
            found.setdefault(view.rank, []).append(session_states(run, view))
    return found


def _one_by_rank(run: Run, settings: Settings) -> Mapping[int, SessionStates]:
    return {rank: sessions[0] for rank, sessions in _by_rank(run, settings).items()}


def _own_step(resume: ResumePlan, run: Run, session: SessionStates) -> int:
    shifts = {(run_id, name): number for run_id, name, number in resume.shifts}
    return resume.step - shifts.get((run.run_id, session.session.session_id), 0)
