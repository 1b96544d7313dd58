"""What `runs show` says of a run: its envelope, counts per session, coverage and losses (surface.md)."""

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.blackbox import Trigger
from paritrace.evidence.calls import GapMark, NotCaptured, StepMark
from paritrace.evidence.coverage import Coverage, ExpectedGap, coverage
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.journal import Account, Loss
from paritrace.evidence.remarks import Remarks
from paritrace.files import LOCAL, Files
from paritrace.runs.attendance import Attendance
from paritrace.runs.death import DeathPage
from paritrace.runs.death_reading import death_page
from paritrace.runs.envelope import Envelope, ReceiptDocument
from paritrace.runs.reading import Run
from paritrace.runs.receipts import mismatches
from paritrace.runs.record_reading import ReadRecord, read_records
from paritrace.runs.views import SessionView

FORMAT = "paritrace-run-summary"
VERSION = "1.1"
MAX_LOSSES_LISTED = 20


class SessionSummary(Struct, frozen=True):
    """`coverage` counts the records that were read against those the writer says it wrote."""

    session_id: str
    rank: int
    incarnation: int
    status: str
    status_words: str
    duration_ns: int | Gap[RunGap]
    steps: tuple[int, ...]
    account: Account | None
    coverage: Coverage
    gaps: dict[str, int]
    not_captured: tuple[str, ...]
    losses: tuple[Loss, ...]
    losses_left_out: int
    mismatches: tuple[str, ...]
    trouble: str  # why the journal cannot be read at all
    triggers: tuple[Trigger, ...] = ()  # each time a black box was written
    remarks: tuple[str, ...] = ()  # of the capture itself, in words: black box, triggers, levels given up


class RunSummary(Struct, frozen=True):
    format: str
    version: str
    path: str
    digest: str
    envelope: Envelope
    unknown_fields: int
    sessions: tuple[SessionSummary, ...]
    ranks: tuple[Attendance, ...] = ()  # which ranks wrote a session and a receipt, restart by restart
    records: tuple[ReadRecord, ...] = ()  # since 1.1: how what was run came to its end, record by record
    death: DeathPage | None = None  # since 1.1: of several ranks that did not all end well


def summarise(run: Run, *, files: Files = LOCAL) -> RunSummary:
    """Read every journal of the run once and say what it holds."""
    records = read_records(run.folder, files=files)
    return RunSummary(
        format=FORMAT,
        version=VERSION,
        path=str(run.path),
        digest=run.digest,
        envelope=run.envelope,
        unknown_fields=run.unknown_fields,
        sessions=tuple(_session(view, run) for view in run.sessions),
        ranks=run.attendance,
        records=records,
        death=death_page(run, records, files=files),
    )


class _Seen:
    """What one pass over a journal keeps."""

    def __init__(self) -> None:
        self.steps: set[int] = set()
        self.gaps: dict[str, int] = {}
        self.not_captured: set[str] = set()
        self.losses: list[Loss] = []
        self.remarks = Remarks()

    def take(self, item: object) -> None:
        self.remarks.see(item)
        match item:
            case Loss():
                if len(self.losses) < MAX_LOSSES_LISTED:
                    self.losses.append(item)
            case StepMark():
                self.steps.add(item.step)
            case GapMark():
                self.gaps[item.reason.value] = self.gaps.get(item.reason.value, 0) + item.count
            case NotCaptured():
                self.not_captured.update(item.names)
            case _:
                pass


def _session(view: SessionView, run: Run) -> SessionSummary:
    reader, seen, trouble = run.journal(view.session_id), _Seen(), ""
    try:
        for item in reader:
            seen.take(item)
    except (EvidenceError, HostError) as error:
        trouble = error.message
    account = reader.account
    wrong = () if trouble else mismatches(view.row, view.receipt, account)
    return SessionSummary(
        session_id=view.session_id,
        rank=view.rank,
        incarnation=view.incarnation,
        status=view.status.value,
        status_words=view.seen.words,
        duration_ns=view.row.duration_ns,
        steps=tuple(sorted(seen.steps)),
        account=None if trouble else account,
        coverage=_coverage(account, view.receipt, gaps=seen.gaps, whole=not wrong and not trouble),
        gaps=dict(sorted(seen.gaps.items())),
        not_captured=tuple(sorted(seen.not_captured)),
        losses=tuple(seen.losses),
        losses_left_out=account.losses - len(seen.losses),
        mismatches=wrong,
        trouble=trouble,
        triggers=tuple(seen.remarks.triggers),
        remarks=seen.remarks.lines(),
    )


def _coverage(account: Account, receipt: ReceiptDocument | None, *, gaps: dict[str, int], whole: bool) -> Coverage:
    """Return the coverage of calls, details and states: what was read of what the writer counted."""
    expected: int | Gap[ExpectedGap] = Gap(ExpectedGap.NOT_RECORDED, "no receipt")
    if receipt is not None:
        expected = receipt.counts.calls + receipt.counts.details + receipt.counts.states
    observed = account.calls + account.details + account.states
    lost = {"loss": account.losses} if account.losses else {}
    return coverage(observed, expected=expected, declared=whole, gaps={**gaps, **lost})
