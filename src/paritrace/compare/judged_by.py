"""Which runs of the baseline judge a candidate: its perturbed draws or its repeats, read one after the other
(CP-10, CP-10a)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec

from paritrace.compare.draws import Draws
from paritrace.compare.envelope import Envelope, calibrate
from paritrace.compare.load import Recorded, load
from paritrace.compare.settings import Settings
from paritrace.compare.tabulated import Tabulated, decoded, encoded, tabulated
from paritrace.evidence.digests import sha256_hex
from paritrace.runs.envelope import JOURNAL_NAME
from paritrace.runs.measured import keep_measured, read_measured
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

MEASURED_AS = "strengths-3"  # another way to measure has another name, so that nothing kept before is taken for it
MAX_HELD = 1_000_000  # figures of draws in memory; the envelopes of further ranks are made again when they are used


class JudgedBy(NamedTuple):
    """Draws of one program. `kind`: "perturbed baselines" or "repeats". `origin`: the run that they are draws of; None:
    the baseline of the comparison itself. `made`: where envelopes are kept, for who holds many candidates against one
    baseline with the same settings; by rank and restart of the baseline."""

    kind: str
    runs: tuple[Run, ...]
    origin: Run | None = None
    made: dict[tuple[int, int], Envelope | None] | None = None


class Envelopes:
    """The envelopes around the sessions of a baseline that are compared, with one rate for all of them together.

    Draws that lack one of the ranks are left out: a draw is one job. What is measured of draws is kept below the
    baseline's run directory, by the digests of everything that it was measured from.
    """

    def __init__(self, by: JudgedBy, baseline: Run, *, settings: Settings, ranks: frozenset[int]) -> None:
        self.limits: tuple[float, ...] | None = None  # of all sessions together, once they are known
        self._by = by
        self._baseline = baseline
        self._settings = settings
        self._runs = tuple(run for run in by.runs if ranks <= {view.rank for view in run.sessions})
        self._made = {} if by.made is None else by.made
        self._held = 0

    @property
    def kind(self) -> str:
        return self._by.kind

    @property
    def num_draws(self) -> int:
        return len(self._runs)

    def around(self, baseline: Recorded) -> Envelope | None:
        """The envelope around one session; None without enough draws, or where they do not differ."""
        found = self._alone(baseline.session, lambda: baseline)
        if found is None:
            return None
        joint = found if self.limits is None else found.jointly(self.limits)
        return replace(joint, of_another=self._by.origin is not None)

    def limits_of(self, view: SessionView) -> tuple[float, ...] | None:
        """How far each draw goes in one session; None without an envelope."""
        alone = self._alone(view, partial(load, self._baseline, view, settings=self._settings))
        return None if alone is None else alone.limits

    def _alone(self, view: SessionView, recorded: Callable[[], Recorded]) -> Envelope | None:
        session = (view.rank, view.incarnation)
        if session in self._made:
            return self._made[session]
        table = self._tabulated(view, recorded)
        envelope = None if table is None else calibrate(table)
        size = 0 if table is None else table.figures.size
        if self._by.made is not None or self._held + size <= MAX_HELD:
            self._held += size
            self._made[session] = envelope
        return envelope

    def _tabulated(self, view: SessionView, recorded: Callable[[], Recorded]) -> Tabulated | None:
        key = self._key(view)
        kept = None if key is None else read_measured(self._baseline.folder, key)
        found = None if kept is None else decoded(kept)
        if found is None:
            found = self._measured(recorded())
            if key is not None and found is not None and self._baseline.folder == self._baseline.path:
                keep_measured(self._baseline.folder, key, encoded(found))
        return found

    def _measured(self, baseline: Recorded) -> Tabulated | None:
        rank = baseline.session.rank
        origin = (
            baseline if self._by.origin is None else next(_recorded((self._by.origin,), rank, self._settings), None)
        )
        if origin is None:
            return None
        draws = Draws(origin, around=baseline)
        for draw in _recorded(self._runs, rank, self._settings):
            draws.add(draw)
        return tabulated(draws.found, not_finite=draws.not_finite)

    def _key(self, view: SessionView) -> str | None:
        """The digest of all that a measurement depends on; None where a journal was not sealed."""
        origin = () if self._by.origin is None else (self._by.origin,)
        views = [view, *(last for run in (*origin, *self._runs) if (last := _last(run, view.rank)) is not None)]
        sealed = [None if v.receipt is None else v.receipt.files.get(JOURNAL_NAME) for v in views]
        digests = [file.sha256 for file in sealed if file is not None]
        if len(digests) < len(views):
            return None
        content = (MEASURED_AS, self._settings.steps, len(origin), digests)
        return sha256_hex(msgspec.json.encode(content))


def joined(limits: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """How far each draw goes in the session where it goes furthest; None where no session has an envelope."""
    known = [alone for alone in limits if alone is not None]
    return tuple(max(draw) for draw in zip(*known, strict=True)) or None


def _recorded(runs: tuple[Run, ...], rank: int, settings: Settings) -> Iterator[Recorded]:
    """This rank's last session of each run that has one."""
    for run in runs:
        view = _last(run, rank)
        if view is not None:
            yield load(run, view, settings=settings)


def _last(run: Run, rank: int) -> SessionView | None:
    sessions = [view for view in run.sessions if view.rank == rank]
    return max(sessions, key=lambda view: view.incarnation, default=None)
