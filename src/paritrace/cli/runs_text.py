"""What `paritrace runs` prints for people; rich draws the tables."""

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from paritrace.evidence import coverage
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import Loss
from paritrace.runs.attendance import in_words
from paritrace.runs.catalog import Catalog, RunLine
from paritrace.runs.death import DeathPage
from paritrace.runs.record_words import death_words, record_words
from paritrace.runs.showing import RunSummary, SessionSummary
from paritrace.runs.verify import Finding, Verification

MAX_ROWS = 200  # a report is bounded; what is left out is said, and --json has it all
_WIDTH = 160


def catalog_text(found: Catalog) -> str:
    """Return the runs of a folder as a table, followed by what is doubtful about them."""
    table = _runs_table(found.runs) if found.runs else _printable(f"no run in or below {found.folder}")
    return "\n".join([table, *map(_printable, _doubts(found))])


def _doubts(found: Catalog) -> Iterator[str]:
    for one in found.unreadable:
        yield f"cannot be read: {one.path}: {one.message} [{one.code}]"
    for run_id, paths in found.same_run_id.items():
        yield f"one run id in {len(paths)} places, none is chosen: {run_id}: {', '.join(paths)}"
    for job, paths in found.same_job.items():
        yield f"of one job: {job}: {', '.join(paths)}"
    for path in found.cut_off_removals:
        yield f"a removal was cut off, this is left: {path}"
    for path in found.not_entered:
        yield f"too deep, not looked into: {path}"


def summary_text(summary: RunSummary) -> str:
    """Return a run for people: its identity, one table of sessions, what is missing, its attachments."""
    remarks = _shared_remarks(summary.sessions)
    shown = [*remarks[:MAX_ROWS], *_left_out(len(remarks))]
    return "\n".join(
        [
            *map(_printable, _identity(summary)),
            _sessions_table(summary.sessions),
            *(_printable(words) for one in summary.ranks for words in in_words(one)),
            *map(_printable, shown),
            *map(_printable, _records(summary)),
            _attachments_text(summary),
        ]
    )


def _identity(summary: RunSummary) -> Iterator[str]:
    run = summary.envelope
    yield f"run {run.run_id}" + (f"  {run.title}" if run.title else "")
    yield f"made {run.created_at}, {run.start.launcher.value} {run.start.job}"
    yield f"digest of run.json {summary.digest}"
    if run.tags:
        yield f"tags {', '.join(run.tags)}"
    if summary.unknown_fields:
        yield f"written by a later paritrace: {summary.unknown_fields} fields were left out"


def _records(summary: RunSummary) -> Iterator[str]:
    for record in summary.records[:MAX_ROWS]:
        yield from record_words(record)
    yield from _left_out(len(summary.records))
    if summary.death is not None:
        yield from death_words(summary.death)


def ends_text(records: Sequence[tuple[str, ...]], *, num_left_out: int, death: DeathPage | None) -> str:
    """Return the lines of records of bad ends, of which others may be left out already, and the page at death."""
    lines = [line for words in records[:MAX_ROWS] for line in words]
    lines += _left_out(len(records) + num_left_out)
    lines += [] if death is None else death_words(death)
    return "\n".join(f"[ended]     {_printable(line)}" for line in lines)


def verification_text(found: Verification) -> str:
    """Return a verification for people: what is not intact, one line of counts, what it cannot cover."""
    wrong = [item for item in found.items if item.status is not Finding.INTACT]
    lines = [f"{item.status.value:12} {item.id}: {item.detail}" for item in wrong[:MAX_ROWS]]
    lines += _left_out(len(wrong))
    for journal in found.journals:
        lines += [f"{'loss':12} {journal.session_id}: {_loss(loss)}" for loss in journal.losses]
        if journal.losses_left_out:
            lines.append(f"{'loss':12} {journal.session_id}: {journal.losses_left_out:,} more")
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items() if count)
    lines.append(f"run {found.run_id}: {found.verdict.value} ({counts or 'nothing to check'})")
    lines += [f"not covered: {text}" for text in found.not_covered]
    return "\n".join(map(_printable, lines))


def _runs_table(runs: tuple[RunLine, ...]) -> str:
    table = Table("run", "made", "sessions", "status", "title", "path", box=None, pad_edge=False)
    for line in runs[:MAX_ROWS]:
        status = ", ".join(f"{count} {name}" for name, count in line.statuses.items())
        made = (line.run_id, line.created_at, str(line.num_sessions), status, line.title or "", line.path)
        table.add_row(*map(_plain, made))
    return "\n".join([_drawn(table), *_left_out(len(runs))])


def _sessions_table(sessions: tuple[SessionSummary, ...]) -> str:
    table = Table("session", "rank", "status", "seconds", "steps", "records", "coverage", box=None, pad_edge=False)
    for session in sessions[:MAX_ROWS]:
        took = session.duration_ns
        seconds = took.gap.value if isinstance(took, Gap) else f"{took / 1e9:.1f}"
        records = "unreadable" if session.trouble else coverage.in_words(session.coverage)
        row = (session.session_id, str(session.rank), session.status_words, seconds, str(len(session.steps)), records)
        table.add_row(*map(_plain, (*row, coverage.state(session.coverage).value)))
    return "\n".join([_drawn(table), *_left_out(len(sessions))])


def _shared_remarks(sessions: tuple[SessionSummary, ...]) -> list[str]:
    """Return each remark once, with the sessions it is about."""
    about: dict[str, list[str]] = {}
    for session in sessions:
        for remark in _remarks(session):
            about.setdefault(remark, []).append(session.session_id)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {text}" for text, names in about.items()
    ]


def _remarks(session: SessionSummary) -> Iterator[str]:
    if session.trouble:
        yield session.trouble
    for reason, count in session.gaps.items():
        yield f"{count:,} not recorded: {reason}"
    yield from session.remarks
    for loss in session.losses:
        yield f"loss: {_loss(loss)}"
    if session.losses_left_out:
        yield f"{session.losses_left_out:,} more losses"
    yield from session.mismatches
    if session.not_captured:
        yield f"not captured: {', '.join(session.not_captured)}"


def _attachments_text(summary: RunSummary) -> str:
    rows = summary.envelope.attachments
    kinds = sorted({row.kind.value for row in rows})
    counts = ", ".join(f"{sum(row.kind.value == kind for row in rows)} {kind}" for kind in kinds)
    return f"attachments: {counts or 'none'}"


def _left_out(total: int) -> list[str]:
    return [f"showing {MAX_ROWS} of {total:,}; the rest is in --json"] if total > MAX_ROWS else []


def _loss(loss: Loss) -> str:
    return f"line {loss.line}, byte {loss.offset}, {loss.length} bytes, {loss.reason.value}: {loss.detail}"


def _plain(text: str) -> str:
    """Return text as a table may show it: printable, and no markup."""
    return escape(_printable(text))


def _printable(text: str) -> str:
    """Return text in which control characters, line ends too, are spelled out."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _drawn(table: Table) -> str:
    console = Console(file=StringIO(), width=_WIDTH, color_system=None, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
