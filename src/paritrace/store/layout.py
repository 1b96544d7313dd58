"""The names of a store and of a staging directory: pure (ST-1, ST-8)."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.files import TEMPORARY_PREFIX

BUNDLES = ".paritrace-bundles"
RUN_MARK = f"{BUNDLES}/run.json"
OWNER = "owner.json"
COMPRESSED, PLAIN = ".tar.zst", ".tar"
MAX_SEQUENCE = 99_999_999
MAX_PATH_BYTES = 4096
STATE = f"{TEMPORARY_PREFIX}store"  # our own state beside the rank folders: hidden, so never taken
CHECKPOINT = "checkpoint.json"
OLD_ARCHIVE = "sync.tar"  # what the name of an old-style archive begins with

_JOURNAL = re.compile(r"\.(jsonl|ndjson)([.-][0-9][0-9T:._-]*)?\Z", re.IGNORECASE)
_ID = r"[A-Za-z0-9._-]{1,128}"
_RANK = r"rank-(0|[1-9][0-9]{0,8})"
_NUMBER, _SHA256 = r"([0-9]{8})", r"([0-9a-f]{64})"


class RankKey(Struct, frozen=True, order=True):
    node_id: str
    rank: int

    def __str__(self) -> str:
        return f"node {self.node_id}, rank {self.rank}"


class BundleName(Struct, frozen=True, order=True):
    key: RankKey
    sequence: int
    sha256: str
    suffix: str

    def __str__(self) -> str:
        return f"{rank_prefix(self.key)}{self.sequence:08d}-{self.sha256}{self.suffix}"


class ReceiptName(Struct, frozen=True, order=True):
    key: RankKey
    number: int
    sha256: str

    def __str__(self) -> str:
        return f"{rank_prefix(self.key)}receipt-{self.number:08d}-{self.sha256}.json"


class OwnerName(Struct, frozen=True, order=True):
    node_id: str

    def __str__(self) -> str:
        return f"{BUNDLES}/{self.node_id}/{OWNER}"


class NodeName(Struct, frozen=True, order=True):
    node_id: str
    sha256: str

    def __str__(self) -> str:
        return f"{BUNDLES}/{self.node_id}/node-{self.sha256}.json"


class RunMarkName(Struct, frozen=True, order=True):
    def __str__(self) -> str:
        return RUN_MARK


Name = BundleName | ReceiptName | OwnerName | NodeName | RunMarkName


def rank_prefix(key: RankKey) -> str:
    """What the names of everything a rank of a node published begin with."""
    return f"{BUNDLES}/{key.node_id}/rank-{key.rank}/"


def parsed(name: str) -> Name | None:
    """Return what a name of the target stands for, or None for one that we never give."""
    for form, made in _FORMS:
        if found := form.fullmatch(name):
            return made(*found.groups())
    return None


def _bundle(node: str, rank: str, sequence: str, sha256: str, suffix: str) -> BundleName | None:
    return BundleName(RankKey(node, int(rank)), int(sequence), sha256, suffix) if int(sequence) else None


def _receipt(node: str, rank: str, number: str, sha256: str) -> ReceiptName:
    return ReceiptName(RankKey(node, int(rank)), int(number), sha256)


_ABOVE = re.escape(f"{BUNDLES}/") + f"({_ID})/"
_FORMS: tuple[tuple[re.Pattern[str], Callable[..., Name | None]], ...] = (
    (re.compile(re.escape(RUN_MARK)), RunMarkName),
    (re.compile(rf"{_ABOVE}{_RANK}/{_NUMBER}-{_SHA256}(\.tar\.zst|\.tar)"), _bundle),
    (re.compile(rf"{_ABOVE}{_RANK}/receipt-{_NUMBER}-{_SHA256}\.json"), _receipt),
    (re.compile(rf"{_ABOVE}owner\.json"), OwnerName),
    (re.compile(rf"{_ABOVE}node-{_SHA256}\.json"), NodeName),
)


def is_journal(path: str) -> bool:
    """Say whether a file is append-only between rotations: `x.jsonl`; `x.jsonl.1`, `x.jsonl-20260101` after one."""
    return _JOURNAL.search(path) is not None


def is_safe_path(path: str) -> bool:
    """Say whether a relative path stays below its folder and is spelled in the one way we spell it."""
    parts = path.split("/")
    plain = not any(part in {"", ".", ".."} for part in parts) and "\0" not in path
    try:
        return plain and len(path.encode("utf-8")) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first."""
    parts = path.split("/")
    yield from ("/".join(parts[:number]) for number in range(1, len(parts)))


class StagedRank(Struct, frozen=True):
    """Where one rank of a node stages: its originals, and our state beside them."""

    staging: Path
    run_id: str
    node_id: str
    rank: int

    @property
    def key(self) -> RankKey:
        return RankKey(self.node_id, self.rank)

    @property
    def originals(self) -> Path:
        return self.staging / self.run_id / f"rank-{self.rank}"

    @property
    def node_state(self) -> Path:
        return self.staging / self.run_id / STATE

    @property
    def state(self) -> Path:
        return self.node_state / f"rank-{self.rank}"

    @property
    def checkpoint(self) -> Path:
        return self.state / CHECKPOINT

    @property
    def pending(self) -> Path:
        return self.state / "pending"

    @property
    def outcome(self) -> Path:
        return self.state / "outcome.json"

    @property
    def owner(self) -> Path:
        return self.node_state / "owner.json"
