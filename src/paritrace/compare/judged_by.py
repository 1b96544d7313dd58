"""Which runs of the baseline judge a candidate: its perturbed draws or its repeats, read one after the other
(CP-10, CP-10a)."""

from collections.abc import Iterator
from typing import NamedTuple

from paritrace.compare.draws import Draws
from paritrace.compare.envelope import Envelope
from paritrace.compare.load import Recorded, load
from paritrace.compare.settings import Settings
from paritrace.runs.reading import Run


class JudgedBy(NamedTuple):
    """Draws of one program. `kind`: "perturbed baselines" or "repeats". `origin`: the run that they are draws of; None:
    the baseline of the comparison itself. `made`: where envelopes are kept, for who holds many candidates against one
    baseline with the same settings; by rank and restart of the baseline."""

    kind: str
    runs: tuple[Run, ...]
    origin: Run | None = None
    made: dict[tuple[int, int], tuple[Envelope | None, int]] | None = None


def envelope_of(by: JudgedBy, baseline: Recorded, *, settings: Settings) -> tuple[Envelope | None, int]:
    """The envelope around one session of the baseline, and how many draws have this rank."""
    if by.made is None:
        return _made(by, baseline, settings)
    session = (baseline.session.rank, baseline.session.incarnation)
    if session not in by.made:
        by.made[session] = _made(by, baseline, settings)
    return by.made[session]


def _made(by: JudgedBy, baseline: Recorded, settings: Settings) -> tuple[Envelope | None, int]:
    rank = baseline.session.rank
    origin = baseline if by.origin is None else next(_recorded((by.origin,), rank, settings), None)
    if origin is None:
        return None, 0
    draws = Draws(origin, around=baseline)
    for draw in _recorded(by.runs, rank, settings):
        draws.add(draw)
    return draws.envelope(), draws.num_draws


def _recorded(runs: tuple[Run, ...], rank: int, settings: Settings) -> Iterator[Recorded]:
    """This rank's last session of each run that has one."""
    for run in runs:
        sessions = [session for session in run.sessions if session.rank == rank]
        if sessions:
            yield load(run, max(sessions, key=lambda session: session.incarnation), settings=settings)
