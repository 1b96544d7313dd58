"""What a store holds: manifest, segments, receipt, owner, run and node; frozen data (ST-5, ST-8, ST-20, ST-23)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap

BUNDLE_FORMAT = "paritrace-bundle"
RECEIPT_FORMAT = "paritrace-store-receipt"
OWNER_FORMAT = "paritrace-store-owner"
RUN_FORMAT = "paritrace-store-run"
NODE_FORMAT = "paritrace-store-node"
VERSION = "1.1"


class SegmentKind(StrEnum):
    LOG = "log"  # records, each ended by a newline: one range of the stream
    FILE = "file"  # a whole file


class StoreGap(StrEnum):
    """Why a fact of a store has no value."""

    NOT_OBSERVABLE = "not_observable"  # nothing shows how much there was
    NOT_COLLECTED = "not_collected"
    NOT_VISIBLE_HERE = "not_visible_here"  # listed, but it could not be opened from this node (EV-12)
    NO_RECEIPT = "no_receipt"  # no final sync said how many bundles there are


class RemarkKind(StrEnum):
    """What a sync could not take, or what was lost before it could."""

    NFS_PLACEHOLDER = "nfs_placeholder"  # `.nfs*`: what an NFS client keeps of a removed, open file
    NOT_A_FILE = "not_a_file"  # a link, device, pipe or socket
    NAME_NOT_UTF8 = "name_not_utf8"
    UNREADABLE = "unreadable"
    CHANGED_WHILE_READ = "changed_while_read"  # it changed at every try
    VANISHED = "vanished"  # bytes that were seen, and were gone before they were published
    REPLACED = "replaced"  # truncated, rewritten or replaced: what came after `offset` is not known
    RECORD_TOO_LARGE = "record_too_large"  # the journal stops at `offset`
    INCOMPLETE_RECORD = "incomplete_record"  # an unfinished last record stayed behind
    EMPTY_FOLDER = "empty_folder"  # nothing was in it at the end (in receipts): it is made again by a restore


class SourceIdentity(Struct, frozen=True, forbid_unknown_fields=True):
    """What the file was when its bytes were taken; the times are the file system's, in nanoseconds."""

    device: int
    inode: int
    num_bytes: int
    modified_ns: int
    changed_ns: int


class Segment(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bytes `[offset, offset + length)` of one stream.

    A stream is named by `origin`, the path under which it was first published, and `version`, counted from 1 per
    origin. `path`: its name when these bytes were taken; it differs from `origin` after a rotation by renaming.
    `records`: newline-terminated records; None for a whole file, which is not counted in records. `executable`: whoever
    owns the file may run it; never of a journal (ADR 0053).
    """

    path: str
    origin: str
    version: int
    kind: SegmentKind
    offset: int
    length: int
    records: int | None
    sha256: str
    source: SourceIdentity
    executable: bool = False


class Remark(Struct, frozen=True, forbid_unknown_fields=True):
    """`length`: bytes that are concerned, from `offset` on. `version` 0: nothing of the path was published."""

    kind: RemarkKind
    path: str
    version: int
    offset: int
    length: int | Gap[StoreGap]


NO_LOSS = frozenset({RemarkKind.NFS_PLACEHOLDER, RemarkKind.NOT_A_FILE, RemarkKind.EMPTY_FOLDER})


def is_loss(remark: Remark) -> bool:
    """Say whether a remark means that evidence is missing, or stays behind."""
    return remark.kind not in NO_LOSS


def about(remark: Remark) -> tuple[RemarkKind, str, int, int]:
    """Return what a remark is about: it is made once, whatever its length becomes."""
    return remark.kind, remark.path, remark.version, remark.offset


class Manifest(Struct, frozen=True, tag_field="type", tag="bundle", forbid_unknown_fields=True):
    """The first member of a bundle (ST-8).

    `previous`: SHA-256 of the bundle before, None for the first. `incarnation`: the token of the node's owner.
    `waiting_bytes` were complete and visible when this bundle was built and are in none yet; `overdue_bytes` of them
    for longer than two intervals (ST-10).
    """

    format: str
    version: str
    run_id: str
    node_id: str
    rank: int
    incarnation: str
    sequence: int
    previous: str | None
    segments: tuple[Segment, ...]
    remarks: tuple[Remark, ...]
    waiting_bytes: int
    overdue_bytes: int
    final: bool


class Receipt(Struct, frozen=True, tag_field="type", tag="receipt", forbid_unknown_fields=True):
    """What a final sync leaves: how many bundles there are and the last one's digest, so that a removed tail shows.

    `remarks`: all of the rank, with the bytes of incomplete last records (ST-20). `number` counts the rank's receipts.
    """

    format: str
    version: str
    run_id: str
    node_id: str
    rank: int
    incarnation: str
    number: int
    bundles: int
    head: str | None
    payload_bytes: int
    remarks: tuple[Remark, ...]


class Owner(Struct, frozen=True, tag_field="type", tag="owner", forbid_unknown_fields=True):
    """Who publishes under a node id: the token decides, host and boot are for people (ST-2, ST-23)."""

    format: str
    version: str
    run_id: str
    node_id: str
    token: str
    host: str
    boot_id: str | Gap[StoreGap]


class RunMark(Struct, frozen=True, tag_field="type", tag="run", forbid_unknown_fields=True):
    """Which run a target belongs to (ST-22)."""

    format: str
    version: str
    run_id: str


class NodeFacts(Struct, frozen=True, tag_field="type", tag="node", forbid_unknown_fields=True):
    """What a node is, uploaded once by one rank (ST-5). Names and versions only, never a value of the environment."""

    format: str
    version: str
    node_id: str
    host: str
    boot_id: str | Gap[StoreGap]
    platform: str
    python: str
    devices: tuple[str, ...] | Gap[StoreGap]
    drivers: dict[str, str]
    packages: dict[str, str]
    environment_names: tuple[str, ...]
