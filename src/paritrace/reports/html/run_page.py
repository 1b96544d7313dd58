"""Makes the page of a run: sessions by steps, what is missing, attachments (SU-10)."""

from collections.abc import Iterator

from paritrace.evidence import coverage
from paritrace.evidence.gaps import Gap
from paritrace.reports.html.page import RunPart
from paritrace.reports.html.pages import AttachmentRow, MatrixRow, RunPage
from paritrace.runs.attendance import in_words
from paritrace.runs.envelope import Attachment
from paritrace.runs.record_words import ends_told
from paritrace.runs.showing import RunSummary, SessionSummary

MOST_STEPS = 60
MOST_ROWS = 500
MOST_RECORDS = 100
MOST_ATTACHMENTS = 300


def run_page(summary: RunSummary, /) -> RunPage:
    """Returns every word and number of the page; a matrix of many steps has the first of them, and says so."""
    steps = tuple(sorted({step for one in summary.sessions for step in one.steps}))
    envelope = summary.envelope
    return RunPage(
        run=RunPart("run", envelope.run_id, summary.path, summary.digest),
        title=envelope.title or "",
        facts=tuple(_facts(summary)),
        steps=steps[:MOST_STEPS],
        steps_left_out=max(0, len(steps) - MOST_STEPS),
        rows=tuple(_row(one, steps[:MOST_STEPS]) for one in summary.sessions[:MOST_ROWS]),
        rows_left_out=max(0, len(summary.sessions) - MOST_ROWS),
        missing=tuple(words for one in summary.ranks for words in in_words(one)),
        ends=ends_told(summary.records, summary.death, most=MOST_RECORDS),
        attachments=tuple(_attachment(one) for one in envelope.attachments[:MOST_ATTACHMENTS]),
        attachments_left_out=max(0, len(envelope.attachments) - MOST_ATTACHMENTS),
    )


def _facts(summary: RunSummary) -> Iterator[tuple[str, str]]:
    run = summary.envelope
    yield "made", run.created_at
    yield "started by", f"{run.start.launcher.value} {run.start.job}".strip()
    yield "run.json, SHA-256", summary.digest
    if run.tags:
        yield "tags", ", ".join(run.tags)
    if summary.unknown_fields:
        yield "written by a later paritrace", f"{summary.unknown_fields} fields were left out"


def _row(one: SessionSummary, steps: tuple[int, ...]) -> MatrixRow:
    seen = set(one.steps)
    took = one.duration_ns
    return MatrixRow(
        session_id=one.session_id,
        rank=one.rank,
        incarnation=one.incarnation,
        status=one.status_words,
        seconds=took.gap.value if isinstance(took, Gap) else f"{took / 1e9:.1f}",
        records="unreadable" if one.trouble else coverage.in_words(one.coverage),
        coverage=coverage.state(one.coverage).value,
        cells=tuple("unreadable" if one.trouble else "seen" if step in seen else "absent" for step in steps),
        remarks=tuple(_remarks(one)),
    )


def _remarks(one: SessionSummary) -> Iterator[str]:
    if one.trouble:
        yield one.trouble
    yield from (f"{number:,} not recorded: {reason}" for reason, number in one.gaps.items())
    yield from one.remarks
    for loss in one.losses:
        yield f"loss: line {loss.line}, {loss.length:,} bytes, {loss.reason.value}: {loss.detail}"
    if one.losses_left_out:
        yield f"{one.losses_left_out:,} more losses"
    yield from one.mismatches
    if one.not_captured:
        yield f"not captured: {', '.join(one.not_captured)}"


def _attachment(one: Attachment) -> AttachmentRow:
    return AttachmentRow(
        id=one.attachment_id,
        title=one.title,
        kind=one.kind.value,
        storage=one.storage.value,
        where=one.path or one.url or "",
        size=one.num_bytes.gap.value if isinstance(one.num_bytes, Gap) else f"{one.num_bytes:,}",
        sha256=one.sha256.gap.value if isinstance(one.sha256, Gap) else one.sha256,
        availability=one.availability.value,
    )
