"""How far a rank has published: one small document in staging, replaced as a whole (ST-6, ST-8a)."""

from msgspec import Struct
from msgspec.structs import replace

from paritrace.store.records import Remark, SourceIdentity

FORMAT = "paritrace-store-checkpoint"
VERSION = "1.1"


class LogState(Struct, frozen=True, tag_field="kind", tag="log", forbid_unknown_fields=True):
    """A journal whose first `offset` bytes are published.

    `head_sha256` and `tail_sha256` are those of the first 4 KiB and the last 64 KiB of these bytes; `cuts` the ends of
    the published segments and `folded_sha256` the fold of their digests, by which the whole prefix is checked.
    `missed`: syncs in a row that did not see the file. `stopped_sha256`: not empty when the record at `offset` is
    larger than a bundle: digest of its first bytes, by which another record in its place is told from it.
    """

    origin: str
    version: int
    source: SourceIdentity
    offset: int
    head_sha256: str
    tail_sha256: str
    cuts: tuple[int, ...]
    folded_sha256: str
    missed: int = 0
    stopped_sha256: str = ""


class WholeState(Struct, frozen=True, tag_field="kind", tag="file", forbid_unknown_fields=True, omit_defaults=True):
    """A file that was published whole. `settled`: it had not changed for a moment when it was read."""

    origin: str
    version: int
    source: SourceIdentity
    sha256: str
    settled: bool
    executable: bool = False


FileState = LogState | WholeState


class Waiting(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes up to `end` were seen at `since_unix_ns` and are not published. The time is shown; it decides nothing."""

    inode: int
    end: int
    since_unix_ns: int


class Changes(Struct, frozen=True, forbid_unknown_fields=True):
    """What advancing the checkpoint does to it."""

    files: dict[str, FileState] = {}
    removed: tuple[str, ...] = ()
    versions: dict[str, int] = {}
    waiting: dict[str, Waiting] = {}
    remarks: tuple[Remark, ...] = ()
    unsaid: int = 0
    bundles: int = 0
    head: str | None = None
    payload_bytes: int = 0
    receipts: int = 0
    receipt_sha256: str | None = None


class Pending(Struct, frozen=True, forbid_unknown_fields=True):
    """An object that is built and whole in staging, and is published next, byte for byte.

    `checksum`: XXH3-128 of its bytes, by which they are checked while they are copied.
    """

    name: str
    file: str
    num_bytes: int
    sha256: str
    checksum: str
    then: Changes


class Progress(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is published, and what is known of the sources.

    `versions`: the last version of each origin. The last `unsaid` of the remarks are in no bundle yet.
    `receipt_sha256`: digest of what the last receipt states.
    """

    files: dict[str, FileState] = {}
    versions: dict[str, int] = {}
    waiting: dict[str, Waiting] = {}
    remarks: tuple[Remark, ...] = ()
    unsaid: int = 0
    bundles: int = 0
    head: str | None = None
    payload_bytes: int = 0
    receipts: int = 0
    receipt_sha256: str | None = None


class Checkpoint(Struct, frozen=True, tag_field="type", tag="checkpoint", forbid_unknown_fields=True):
    format: str
    version: str
    run_id: str
    node_id: str
    rank: int
    incarnation: str
    progress: Progress
    pending: Pending | None = None


def unchanged(progress: Progress) -> Changes:
    """Return changes that change nothing."""
    return Changes(
        waiting=progress.waiting,
        unsaid=progress.unsaid,
        bundles=progress.bundles,
        head=progress.head,
        payload_bytes=progress.payload_bytes,
        receipts=progress.receipts,
        receipt_sha256=progress.receipt_sha256,
    )


def advanced(progress: Progress, then: Changes) -> Progress:
    """Return `progress` after what `then` says was published or seen."""
    kept = {path: state for path, state in progress.files.items() if path not in then.removed}
    return Progress(
        files=kept | then.files,
        versions=progress.versions | then.versions,
        waiting=then.waiting,
        remarks=(*progress.remarks, *then.remarks),
        unsaid=then.unsaid,
        bundles=then.bundles,
        head=then.head,
        payload_bytes=then.payload_bytes,
        receipts=then.receipts,
        receipt_sha256=then.receipt_sha256,
    )


def with_pending(checkpoint: Checkpoint, pending: Pending) -> Checkpoint:
    """Return the checkpoint that promises to publish `pending`."""
    return replace(checkpoint, pending=pending)


def published(checkpoint: Checkpoint, pending: Pending) -> Checkpoint:
    """Return the checkpoint after `pending` is on the target."""
    return replace(checkpoint, progress=advanced(checkpoint.progress, pending.then), pending=None)
