"""Records of run.json, the envelope of a run directory: sessions and attachments (EV-13 to EV-15, EV-21)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.evidence.surroundings import Surroundings
from paritrace.runs.launch import Start

FORMAT = "paritrace-run"
VERSION = "1.1"

ENVELOPE_NAME = "run.json"
SESSIONS_FOLDER = "sessions"
ATTACHMENTS_FOLDER = "attachments"
TRIGGERS_FOLDER = "triggers"  # made where a black box is on: names by which ranks tell each other (CA-36)
JOURNAL_NAME = "calls.jsonl"
RECEIPT_NAME = "receipt.json"
LOCK_NAME = ".lock"
REFUSED = "refused:"  # how the metadata `NOT_LIFTED` begins where nothing was lifted, and the workload ended for that
UPCAST = "upcast"  # keys of a session's metadata: the wider precision in which it ran, and what was not lifted (CP-10b)
NOT_LIFTED = "not_lifted"


class SessionStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    INCOMPLETE = "incomplete"


class Role(StrEnum):
    TRAINING = "training"
    INFERENCE_CAPTURE = "inference_capture"
    RECORD = "record"
    COORDINATOR = "coordinator"
    RANK = "rank"
    OTHER = "other"


class AttachmentKind(StrEnum):
    TENSOR_TRACE = "tensor_trace"
    INFERENCE_JSONL = "inference_jsonl"
    PROFILER_TRACE = "profiler_trace"
    RUN_RECORD = "run_record"
    COMPARISON = "comparison"
    REPORT = "report"
    SOURCE = "source"
    TENSOR = "tensor"  # since 1.1
    OTHER = "other"


class Storage(StrEnum):
    REFERENCE = "reference"
    COPY = "copy"


class Availability(StrEnum):
    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    NOT_COLLECTED = "not_collected"  # a url: nothing was read


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """One process's part of a run. Wall times are Unix nanoseconds of the process's host; `duration_ns` is monotonic.

    `surroundings` is null exactly when `surroundings_gap` says why; `runs.reading` gives the two as one value.
    """

    session_id: str
    rank: int
    local_rank: int | Gap[RunGap]
    world_size: int
    node_id: str
    process: ProcessIdentity
    role: Role
    status: SessionStatus
    incarnation: int
    job_id: str | Gap[RunGap]
    config_digest: str
    started_unix_ns: int
    started_monotonic_ns: int
    ended_unix_ns: int | Gap[RunGap]
    duration_ns: int | Gap[RunGap]
    surroundings: Surroundings | None = None
    surroundings_gap: Gap[RunGap] | None = None
    metadata: dict[str, str] = {}


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A file or address that belongs to a run; exactly one of `path` and `url` is set.

    `path` is relative to the envelope's resolved folder. `live`: its owner still extends the file, and `num_bytes`
    and `sha256` cover the committed part only (EV-18).
    """

    attachment_id: str
    title: str
    kind: AttachmentKind
    storage: Storage
    path: str | None
    url: str | None
    media_type: str
    availability: Availability
    num_bytes: int | Gap[RunGap]
    sha256: str | Gap[RunGap]
    source_session: str | Gap[RunGap]
    live: bool = False
    metadata: dict[str, str] = {}


class Envelope(Struct, frozen=True, tag_field="type", tag="run", forbid_unknown_fields=True):
    """The content of run.json."""

    format: str
    version: str
    run_id: str
    created_at: str
    start: Start
    config_digest: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, str] = {}


class Receipt(Struct, frozen=True, forbid_unknown_fields=True):
    """What the writer of a session's journal counted; the reader counts again and compares (CA-13)."""

    lines: int  # lines before the end mark, header included
    calls: int
    details: int
    states: int
    gaps: dict[str, int] = {}


RECEIPT_FORMAT = "paritrace-receipt"
RECEIPT_VERSION = "1.0"


class SealedFile(Struct, frozen=True, forbid_unknown_fields=True):
    num_bytes: int
    sha256: str


class ReceiptDocument(Struct, frozen=True, tag_field="type", tag="receipt", forbid_unknown_fields=True):
    """The content of receipt.json, the last file of a session's folder to appear."""

    format: str
    version: str
    session_id: str
    status: SessionStatus
    ended_unix_ns: int
    counts: Receipt
    files: dict[str, SealedFile]  # name in the session's folder -> final size and digest
