"""What goes into the next bundle: new whole records and changed whole files, those that waited longest first (ST-7)."""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import Clock
from paritrace.errors import HostError
from paritrace.files import Files
from paritrace.files.opened import OpenedFile
from paritrace.store.bundle_writing import PAYS_BELOW
from paritrace.store.checkpoint import Changes, FileState, LogState, Progress, Waiting, WholeState, unchanged
from paritrace.store.layout import is_journal
from paritrace.store.matching import NOTHING_MATCHED, Matched, is_same, match
from paritrace.store.records import Remark, RemarkKind, Segment, SourceIdentity, about
from paritrace.store.sources import is_gone, is_own_journal, listing_of, prefix_holds, whole_prefix_holds
from paritrace.store.taking import LogCut, TakenBytes, cut_of, settled_at, start_of_record, take_file, take_log

ALWAYS_BELOW = 64 << 10  # such a bundle is mostly headers and padding
MAX_SEGMENTS = 10_000  # of one bundle: its manifest is read whole, 3 MB of it at ordinary names


class Scope(Struct, frozen=True):
    """How much may be taken.

    `ends`: for a final sync, the size of each file when it began; None takes what is there. `recheck`: every published
    byte of foreign journals is read and compared first.
    """

    payload_bytes: int
    overdue_ns: int
    ends: dict[str, int] | None = None
    recheck: bool = False


class Left(Struct, frozen=True):
    """What a look at everything found and a full bundle left for the next one: files in their turn, as they were seen.

    `moved`: journals with a new name that no bundle holds yet.
    """

    found: dict[str, SourceIdentity]
    paths: tuple[str, ...]
    moved: frozenset[str]


class Choice(Struct, frozen=True):
    """`then`: what the checkpoint becomes by it; `more`: complete bytes are left for the next bundle at once.

    `checksums`: of the segments' bytes, in order. `transient`: what could not be taken this time; `tails`: incomplete
    last records and, at the end, empty folders. Neither is in `then`. `left`: for the next bundle of a final sync.
    """

    segments: tuple[Segment, ...]
    checksums: tuple[str, ...]
    then: Changes
    remarks: tuple[Remark, ...]
    transient: tuple[Remark, ...]
    tails: tuple[Remark, ...]
    waiting_bytes: int
    overdue_bytes: int
    more: bool
    pays: bool
    left: Left | None = None


class Chooser:
    """Chooses once; `choose` and `go_on` read the sources and change nothing."""

    def __init__(self, folder: Path, progress: Progress, scope: Scope, *, files: Files, clock: Clock) -> None:
        self._folder = folder
        self._progress = progress
        self._scope = scope
        self._files = files
        self._now_ns = clock.wall_ns()
        self._left = scope.payload_bytes
        self._is_full = False  # something had to wait for room
        self._taken: list[TakenBytes] = []
        self._states: dict[str, FileState] = {}
        self._versions: dict[str, int] = {}
        self._waiting: dict[str, Waiting] = {}
        self._waiting_bytes: dict[str, int] = {}
        self._remarks: list[Remark] = []
        self._transient: list[Remark] = []
        self._tails: list[Remark] = []

    def choose(self) -> Choice:
        """Look at every file and return what the next bundle holds.

        Raises:
            HostError: Refused: `staging_gone`, or what the disk says of the rank's folder.
        """
        listing = listing_of(self._folder, files=self._files)
        final = self._scope.ends is not None
        matched = match(
            listing.found,
            self._progress,
            holds=self._holds,
            final=final,
            recheck=self._scope.recheck,
            is_whole=not listing.unreadable,
        )
        turns = tuple(path for path in sorted(listing.found, key=self._turn) if self._is_in_scope(path))
        left = self._take_in_turn(Left(listing.found, turns, matched.moved), matched.streams)
        if final:
            self._tails += listing.empty
        if listing.unreadable:
            self._transient += listing.unreadable
            self._keep_waiting(listing.found)
        return self._choice(matched, (*listing.remarks, *matched.remarks, *self._remarks), left)

    def go_on(self, left: Left) -> Choice:
        """Return what the bundle after a full one holds: nothing else is looked at than what that one left."""
        rest = self._take_in_turn(left, self._progress.files)
        self._keep_waiting(left.paths)
        return self._choice(NOTHING_MATCHED, tuple(self._remarks), rest)

    def _take_in_turn(self, left: Left, streams: dict[str, FileState]) -> Left | None:
        """Take until a bundle of a final sync is full; what is left then is not looked at."""
        for number, path in enumerate(left.paths):
            self._look_at(path, left.found[path], streams.get(path), moved=path in left.moved)
            if self._is_full and self._scope.ends is not None:
                return self._put_off(replace(left, paths=left.paths[number:]), streams)
        return None

    def _put_off(self, left: Left, streams: dict[str, FileState]) -> Left:
        due: list[str] = []
        for path in left.paths:
            state, now = self._states.get(path, streams.get(path)), left.found[path]
            if state is None or path in left.moved or path in self._waiting or not is_same(state, now):
                due.append(path)
                if path not in self._waiting:
                    begin = state.offset if isinstance(state, LogState) else 0
                    self._wait(path, now, now.num_bytes, max(0, now.num_bytes - begin))
        return replace(left, paths=tuple(due))

    def _is_in_scope(self, path: str) -> bool:
        return self._scope.ends is None or path in self._scope.ends

    def _turn(self, path: str) -> tuple[float, str]:
        waiting = self._progress.waiting.get(path)
        return (float("inf") if waiting is None else waiting.since_unix_ns, path)

    def _look_at(self, path: str, now: SourceIdentity, state: FileState | None, *, moved: bool) -> None:
        try:
            if isinstance(state, LogState) or (state is None and is_journal(path)):
                self._log(path, state, moved=moved)
            elif state is None or not is_same(state, now):
                self._file(path, state, now)
        except HostError as error:
            self._wait(path, now, now.num_bytes)
            if not is_gone(error):
                self._transient.append(Remark(RemarkKind.UNREADABLE, path, 0, 0, now.num_bytes))

    def _log(self, path: str, state: LogState | None, *, moved: bool) -> None:
        with self._files.opened(self._folder / path) as opened:
            if state is not None and self._stands_still(opened, state):
                return None
            cut = cut_of(opened, state, self._limit(path), room=self._room(), largest=self._scope.payload_bytes)
            self._note(path, state, cut)
            if cut.end == cut.begin and state is not None and not moved and not cut.stopped_sha256:
                return None
            if len(self._taken) >= MAX_SEGMENTS:
                self._is_full = True
                return self._wait(path, cut.source, cut.complete_end, cut.complete_end - cut.begin)
            fresh = state if state is not None else self._new_log(path, cut.source)
            taken = take_log(opened, fresh, cut, path=path, known=state is not None)
        if taken is None:
            self._wait(path, cut.source, cut.complete_end, cut.complete_end - cut.begin)
            self._transient.append(Remark(RemarkKind.CHANGED_WHILE_READ, path, fresh.version, cut.begin, 0))
            return None
        return self._accept(path, taken)

    def _stands_still(self, opened: OpenedFile, state: LogState) -> bool:
        """Say whether a journal is still stopped by the same record."""
        if not state.stopped_sha256:
            return False
        return start_of_record(opened, state.offset, largest=self._scope.payload_bytes) == state.stopped_sha256

    def _file(self, path: str, state: FileState | None, now: SourceIdentity) -> None:
        if (self._taken and now.num_bytes > self._left) or len(self._taken) >= MAX_SEGMENTS:
            self._is_full = True
            return self._wait(path, now, now.num_bytes, now.num_bytes)
        taken = take_file(self._folder / path, path=path, version=self._next_version(path), files=self._files)
        if taken is None:
            self._wait(path, now, now.num_bytes, now.num_bytes)
            self._transient.append(Remark(RemarkKind.CHANGED_WHILE_READ, path, 0, 0, now.num_bytes))
            return None
        settled = settled_at(taken.segment.source, self._now_ns)
        found = replace(taken, state=replace(taken.state, settled=settled))
        if isinstance(state, WholeState) and _says_the_same(state, taken.segment):
            touched = replace(state, source=taken.segment.source, settled=settled)
            self._states.update({} if touched == state else {path: touched})
            return None
        return self._accept(path, found)

    def _accept(self, path: str, taken: TakenBytes) -> None:
        self._taken.append(taken)
        self._states[path] = taken.state
        self._left -= taken.segment.length
        self._versions[taken.segment.origin] = max(taken.segment.version, self._versions.get(taken.segment.origin, 0))

    def _note(self, path: str, state: LogState | None, cut: LogCut) -> None:
        version = 0 if state is None else state.version
        if cut.stopped_sha256:
            length = cut.source.num_bytes - cut.begin
            self._remarks.append(Remark(RemarkKind.RECORD_TOO_LARGE, path, version, cut.begin, length))
        elif cut.complete_end > cut.end:
            self._is_full = True
            self._wait(path, cut.source, cut.complete_end, cut.complete_end - cut.end)
        elif cut.visible_end > cut.complete_end:
            tail = cut.visible_end - cut.complete_end
            self._tails.append(Remark(RemarkKind.INCOMPLETE_RECORD, path, version, cut.complete_end, tail))

    def _wait(self, path: str, source: SourceIdentity, end: int, num_bytes: int | None = None) -> None:
        before = self._progress.waiting.get(path)
        since = self._now_ns if before is None else before.since_unix_ns
        self._waiting[path] = Waiting(inode=source.inode, end=end, since_unix_ns=since)
        self._waiting_bytes[path] = end if num_bytes is None else num_bytes

    def _keep_waiting(self, looked_at: Collection[str]) -> None:
        """What waited and was not looked at now still waits: for the next look, or for a folder that can be read."""
        known = frozenset(looked_at)
        for path, waiting in self._progress.waiting.items():
            if path not in known:
                state = self._progress.files.get(path)
                self._waiting[path] = waiting
                self._waiting_bytes[path] = waiting.end - (state.offset if isinstance(state, LogState) else 0)

    def _new_log(self, path: str, source: SourceIdentity) -> LogState:
        return LogState(
            origin=path,
            version=self._next_version(path),
            source=source,
            offset=0,
            head_sha256="",
            tail_sha256="",
            cuts=(),
            folded_sha256="",
        )

    def _next_version(self, origin: str) -> int:
        return 1 + max(self._progress.versions.get(origin, 0), self._versions.get(origin, 0))

    def _limit(self, path: str) -> int | None:
        return None if self._scope.ends is None else self._scope.ends[path]

    def _room(self) -> int:
        return max(0, self._left)

    def _holds(self, path: str, state: LogState) -> bool:
        try:
            with self._files.opened(self._folder / path) as opened:
                if not prefix_holds(opened, state):
                    return False
                return not self._scope.recheck or is_own_journal(opened) or whole_prefix_holds(opened, state)
        except HostError as error:
            if is_gone(error):
                return False
            raise

    def _choice(self, matched: Matched, remarks: tuple[Remark, ...], left: Left | None) -> Choice:
        known = set(map(about, self._progress.remarks))
        fresh = tuple({about(remark): remark for remark in remarks if about(remark) not in known}.values())
        then = replace(
            unchanged(self._progress),
            files=matched.missed | self._renamed(matched) | self._states,
            removed=matched.removed,
            versions=self._versions,
            waiting=self._waiting,
            remarks=fresh,
            unsaid=self._progress.unsaid + len(fresh),
        )
        late = [
            path for path, one in self._waiting.items() if self._now_ns - one.since_unix_ns > self._scope.overdue_ns
        ]
        return Choice(
            segments=tuple(taken.segment for taken in self._taken),
            checksums=tuple(taken.checksum for taken in self._taken),
            then=then,
            remarks=fresh,
            transient=tuple(self._transient),
            tails=tuple(self._tails),
            waiting_bytes=sum(self._waiting_bytes.values()),
            overdue_bytes=sum(self._waiting_bytes[path] for path in late),
            more=bool(self._waiting) and bool(self._taken),
            pays=_pays(self._taken),
            left=left,
        )

    def _renamed(self, matched: Matched) -> dict[str, FileState]:
        """Return the states that changed by matching alone: new names, and files that are back."""
        return {path: state for path, state in matched.streams.items() if self._progress.files.get(path) != state}


def _says_the_same(state: WholeState, segment: Segment) -> bool:
    return (state.sha256, state.executable) == (segment.sha256, segment.executable)


def _pays(taken: list[TakenBytes]) -> bool:
    """Say whether a bundle is worth compressing, by the first bytes of each segment."""
    total = sum(one.segment.length for one in taken)
    return total < ALWAYS_BELOW or sum(one.segment.length * one.ratio for one in taken) < PAYS_BELOW * total
