"""The trace of a comparison: baseline and candidate of a rank as sibling tracks, arrows only between pairs (SU-8)."""

from math import nan

from msgspec import Struct

from paritrace.compare.result import Comparison, Finding, LedgerEntry
from paritrace.compare.rows import CallRow, Side
from paritrace.reports.formats import OfComparison, Sink
from paritrace.reports.traces.events import Event, Tally, Value
from paritrace.reports.traces.identities import number_of
from paritrace.reports.traces.marks import marks_of, write_marks
from paritrace.reports.traces.of_run import module_or_function
from paritrace.reports.traces.packets import Packets
from paritrace.reports.traces.said import Said
from paritrace.reports.traces.writing import Of, Pack, RankTrace
from paritrace.reports.traces.zero import zero_of
from paritrace.runs.reading import Run

OWN_START = "each side counts from its own start: times of the two are not compared"


class _Zeros(Struct, frozen=True):
    """By side: the offset of each session; empty where the runs are not at hand and every session begins at 0."""

    offsets: dict[str, dict[str, int]]


def write_comparison(given: OfComparison, sink: Sink, /, *, pack: Pack = Packets) -> list[Tally]:
    """Writes the trace of every rank that is not cut off, one behind the other, and returns what each holds."""
    zeros = _zeros(given.runs)
    tallies: list[Tally] = []
    current: _Rank | None = None
    for row in given.rows:
        if current is None or current.rank != row.rank:
            if current is not None:
                tallies.append(current.close())
            current = _rank_of(given, row.rank, sink, zeros=zeros, pack=pack)
        if current is not None:
            current.take(row)
    if current is not None:
        tallies.append(current.close())
    return tallies


def _rank_of(given: OfComparison, rank: int, sink: Sink, *, zeros: _Zeros, pack: Pack) -> "_Rank | None":
    wanted = given.cut.ranks is None or rank in given.cut.ranks
    return _Rank(given, rank, sink, zeros=zeros, pack=pack) if wanted else None


def _zeros(runs: tuple[Run, Run] | None) -> _Zeros:
    if runs is None:
        return _Zeros({})
    return _Zeros({side: zero_of(run).offsets for side, run in zip(Side, runs, strict=True)})


class _Rank:
    """The trace of one rank, from its rows: the baseline's first, then the candidate's."""

    def __init__(self, given: OfComparison, rank: int, sink: Sink, *, zeros: _Zeros, pack: Pack) -> None:
        self.rank = rank
        self._given = given
        self._zeros = zeros
        self._source = source_of(given.comparison)
        of = Of(
            source=self._source,
            rank=rank,
            labels=(OWN_START,),
            facts={
                "of": "comparison",
                "baseline": given.comparison.baseline.run_id,
                "candidate": given.comparison.candidate.run_id,
                "baseline_digest": given.comparison.baseline.digest,
                "candidate_digest": given.comparison.candidate.digest,
            },
        )
        self._trace = RankTrace(of, sink, cut=given.cut, pack=pack)
        self._findings = _by_call(given.comparison, rank)
        self._measured = _measured(given.comparison, rank)
        self._sessions: dict[Side, list[str]] = {side: [] for side in Side}
        self._pairs = number_of("pair", self._source, rank)
        self._said = Said()
        self._totals = {(side, kind): 0 for side in Side for kind in ("different", "undetermined")}

    def take(self, row: CallRow) -> None:
        """Lay one call, and what is said of it."""
        event = self._event(row)
        if not self._trace.call(self._path(row), event, step=row.step):
            return
        if row.reason is not None:
            told = (("record_id", row.record_id), ("reason", row.reason.value))
            self._trace.instant(
                (row.side, "undetermined"), Event(event.start_ns, -1, f"undetermined: {row.reason}", arguments=told)
            )
            self._total(row, "undetermined", at=event.start_ns)
        if row.status == "different":
            self._total(row, "different", at=event.start_ns)
        for finding in self._findings.get((row.side, row.record_id), ()):
            self._trace.instant((row.side, "findings"), _found(finding, event.start_ns))

        if row.side is Side.CANDIDATE and row.start_ns >= 0 and row.record_id in self._measured:
            self._error(self._measured[row.record_id], at=event.start_ns + max(0, row.duration_ns))

    def close(self) -> Tally:
        self._write_marks()
        return self._trace.close()

    def _write_marks(self) -> None:
        """Steps, losses and norms of both sides, where the runs are at hand."""
        if self._given.runs is None:
            return
        for side, run in zip(Side, self._given.runs, strict=True):
            for view in run.sessions:
                if view.rank == self.rank:
                    offset = self._offset(side, view.session_id)
                    records = run.records(view.session_id)
                    write_marks(self._trace, marks_of(records, cut=self._given.cut), path=(side,), offset=offset)

    def _error(self, entry: LedgerEntry, *, at: int) -> None:
        """How far the output that is there at this time is from the baseline's; what is not finite is told as that."""
        error = nan if entry.error is None else entry.error
        self._trace.count((Side.CANDIDATE, "error of outputs"), at, error)
        if entry.expected:
            self._trace.count((Side.CANDIDATE, "error of outputs / expected"), at, error / entry.expected)

    def _total(self, row: CallRow, kind: str, *, at: int) -> None:
        """How many calls so far: a number that holds until the next one."""
        self._totals[row.side, kind] += 1
        self._trace.count((row.side, f"{kind} calls so far"), at, self._totals[row.side, kind])

    def _nth(self, row: CallRow) -> int:
        """Which session of its side it is, restarts apart: ids of calls are those of one session."""
        known = self._sessions[row.side]
        if row.session_id not in known:
            known.append(row.session_id)
        return known.index(row.session_id)

    def _path(self, row: CallRow) -> tuple[str, ...]:
        thread = row.thread or "main"
        nth = self._nth(row)
        return (row.side, f"restart {nth}", thread) if nth else (row.side, thread)

    def _offset(self, side: str, session_id: str) -> int:
        return self._zeros.offsets.get(side, {}).get(session_id, 0)

    def _event(self, row: CallRow) -> Event:
        paired = row.partner >= 0
        ids = (row.record_id, row.partner) if row.side is Side.BASELINE else (row.partner, row.record_id)
        known = row.start_ns >= 0
        return Event(
            start_ns=self._offset(row.side, row.session_id) + row.start_ns if known else -1,
            duration_ns=row.duration_ns,
            name=module_or_function(row.level, module=row.module, function=row.function),
            category=row.level,
            file=row.file,
            line=row.line,
            words=self._said.words(row),
            arguments=self._said.arguments(row),
            flows=(number_of(self._pairs, self._nth(row), *ids),) if paired else (),
        )


def source_of(comparison: Comparison, /) -> str:
    """Returns what the ids of tracks and flows follow from: both runs and the settings they were compared by."""
    settings = sorted(comparison.settings.items())
    return f"{comparison.baseline.digest} {comparison.candidate.digest} {settings}"


def _by_call(comparison: Comparison, rank: int) -> dict[tuple[str, int], list[Finding]]:
    found: dict[tuple[str, int], list[Finding]] = {}
    for finding in comparison.findings:
        place = finding.place
        if place.rank == rank:
            for side, record in zip(Side, (place.baseline_record_id, place.candidate_record_id), strict=True):
                if record >= 0:
                    found.setdefault((side, record), []).append(finding)
    return found


def _measured(comparison: Comparison, rank: int) -> dict[int, LedgerEntry]:
    """The ledger's entries by the candidate's call."""
    entries = () if comparison.ledger is None else comparison.ledger.entries
    return {entry.candidate_record_id: entry for entry in entries if entry.rank == rank}


def _found(finding: Finding, at: int) -> Event:
    arguments: list[tuple[str, Value]] = [("sentence", finding.sentence), ("strength", finding.strength)]
    figures = (("measured", finding.measured), ("expected", finding.expected), ("ratio", finding.ratio))
    arguments += [(name, value) for name, value in figures if value is not None]
    return Event(at, -1, finding.id, category="finding", arguments=tuple(arguments))


def write(given: OfComparison, sink: Sink, /) -> None:
    """Writes the traces of all ranks that are not cut off: what `--format pftrace` is."""
    write_comparison(given, sink)
