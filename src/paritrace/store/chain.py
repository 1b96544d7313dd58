"""Whether a rank's manifests continue each other: run, owner, previous digest, offsets; pure (ST-8, ST-11)."""

from collections.abc import Iterator

from msgspec import Struct

from paritrace.store.layout import BundleName, RankKey
from paritrace.store.problems import Problem, ProblemKind
from paritrace.store.records import Manifest, Remark, Segment, SegmentKind


class StreamKey(Struct, frozen=True, order=True):
    """Names a stream within a rank of a node."""

    origin: str
    version: int


class Stream(Struct):
    """A stream as far as it was read: `path` is its last name, `sequence` that of the last bundle with a part of it."""

    key: StreamKey
    path: str
    kind: SegmentKind
    length: int
    sequence: int
    executable: bool


class Chain:
    """Follows the manifests of one rank in order. Run and token are empty where their documents could not be read."""

    def __init__(self, key: RankKey, *, run_id: str, token: str) -> None:
        self.key = key
        self.streams: dict[StreamKey, Stream] = {}
        self.remarks: list[Remark] = []
        self.stated: tuple[Remark, ...] = ()  # by the last receipt, when nothing was published after it
        self.records = 0
        self.payload_bytes = 0
        self.overdue_bytes = 0
        self.is_final = False
        self._run_id = run_id
        self._token = token

    def problems(self, name: BundleName, manifest: Manifest, previous: BundleName | None) -> Iterator[Problem]:
        """Yield what keeps a manifest from continuing the chain."""
        if self._run_id and manifest.run_id != self._run_id:
            yield Problem(str(name), ProblemKind.FOREIGN_RUN, detail=f"it is of run {manifest.run_id!r}")
        if self._token and manifest.incarnation != self._token:
            yield Problem(str(name), ProblemKind.ANOTHER_OWNER, detail="it was published by another owner of the node")
        due = None if previous is None else previous.sha256
        if manifest.previous != due:
            detail = f"it follows {manifest.previous}, and the bundle before it is {due}"
            yield Problem(str(name), ProblemKind.BROKEN_CHAIN, detail=detail)
        lengths: dict[StreamKey, int] = {}
        for segment in manifest.segments:
            yield from self._of_segment(name, segment, lengths)

    def advance(self, manifest: Manifest) -> None:
        """Take a manifest whose bundle is whole."""
        for segment in manifest.segments:
            key = StreamKey(segment.origin, segment.version)
            end = segment.offset + segment.length
            self.streams[key] = Stream(key, segment.path, segment.kind, end, manifest.sequence, segment.executable)
            self.records += segment.records or 0
            self.payload_bytes += segment.length
        self.remarks += manifest.remarks
        self.overdue_bytes = manifest.overdue_bytes
        self.is_final = manifest.final

    def _of_segment(self, name: BundleName, segment: Segment, lengths: dict[StreamKey, int]) -> Iterator[Problem]:
        key = StreamKey(segment.origin, segment.version)
        known = self.streams.get(key)
        before = lengths.get(key, 0 if known is None else known.length)
        repeated = segment.kind is SegmentKind.FILE and (known is not None or key in lengths)
        if repeated or segment.offset != before or (known is not None and known.kind is not segment.kind):
            detail = f"version {segment.version} goes on at byte {segment.offset}, and {before} bytes came before"
            yield Problem(str(name), ProblemKind.BAD_SEGMENT, segment.path, detail)
        lengths[key] = segment.offset + segment.length
