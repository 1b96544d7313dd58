"""Which file is which published stream: by name, by identity after a rotation by renaming; pure (ST-3, ST-21)."""

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap
from paritrace.store.checkpoint import FileState, LogState, Progress
from paritrace.store.records import Remark, RemarkKind, SourceIdentity, StoreGap

Holds = Callable[[str, LogState], bool]
MISSED_SYNCS = 2  # a file that is renamed while a folder is listed is missed once


class Matched(Struct, frozen=True):
    """`streams`: the state of each file that goes on; `moved`: those among them that have a new name."""

    streams: dict[str, FileState]
    moved: frozenset[str]
    removed: tuple[str, ...]
    missed: dict[str, FileState]
    remarks: tuple[Remark, ...]


NOTHING_MATCHED = Matched({}, frozenset(), (), {}, ())


def match(
    found: dict[str, SourceIdentity],
    progress: Progress,
    *,
    holds: Holds,
    final: bool,
    recheck: bool,
    is_whole: bool = True,
) -> Matched:
    """Give every file its stream, and say of every stream without a file what is known to be lost.

    Args:
        holds: whether a file begins with the published bytes of a stream; asked where its identity changed.
        final: nothing comes after this sync, so a file that is missing is stated at once.
        recheck: `holds` is asked of every journal, also where nothing seems to have changed.
        is_whole: every folder could be read; where one could not, a missing file may lie there, and none is taken for
            gone.
    """
    certain = {path for path, state in progress.files.items() if not recheck and _is_same_file(path, state, found)}
    streams = {
        path: _seen(state)
        for path, state in progress.files.items()
        if path in found and (path in certain or not isinstance(state, LogState) or holds(path, state))
    }
    taken = set(streams)
    by_inode = {source.inode: path for path, source in found.items() if path not in taken}
    moved: dict[str, FileState] = {}
    left = {path: state for path, state in progress.files.items() if path not in taken}
    for state in left.values():
        there = by_inode.get(state.source.inode) if isinstance(state, LogState) else None
        if there is not None and there not in moved and isinstance(state, LogState) and holds(there, state):
            moved[there] = state
    renamed = {id(state) for state in moved.values()}
    rest = {path: state for path, state in left.items() if id(state) not in renamed}
    missed = {path: state for path, state in rest.items() if path not in found}
    if is_whole:
        told = ((path, _missed(path, state, found, final)) for path, state in rest.items())
        missed = {path: state for path, state in told if state is not None}
    return Matched(
        streams=streams | {path: _seen(state) for path, state in moved.items()},
        moved=frozenset(moved),
        removed=tuple(path for path in left if path not in missed),
        missed=missed,
        remarks=(
            *(remark for path, state in rest.items() for remark in _lost(path, state, found, missed, progress)),
            *(_never_published(found, progress) if is_whole else ()),
        ),
    )


def is_same(state: FileState, now: SourceIdentity) -> bool:
    """Say whether nothing about a file changed since it was looked at last."""
    return state.source == now and (isinstance(state, LogState) or state.settled)


def _is_same_file(path: str, state: FileState, found: dict[str, SourceIdentity]) -> bool:
    return path in found and is_same(state, found[path])


def _seen(state: FileState) -> FileState:
    return replace(state, missed=0) if isinstance(state, LogState) else state


def _missed(path: str, state: FileState, found: dict[str, SourceIdentity], final: bool) -> FileState | None:
    """Return the state of a journal that may have been renamed while the folder was listed, None for one that ends."""
    if path in found or final or not isinstance(state, LogState) or state.missed + 1 >= MISSED_SYNCS:
        return None
    return replace(state, missed=state.missed + 1)


def _lost(
    path: str, state: FileState, found: dict[str, SourceIdentity], missed: dict[str, FileState], progress: Progress
) -> Iterator[Remark]:
    if path in missed or not isinstance(state, LogState):
        return
    seen = max(state.source.num_bytes, progress.waiting[path].end if path in progress.waiting else 0)
    if path in found:
        yield Remark(RemarkKind.REPLACED, path, state.version, state.offset, Gap(StoreGap.NOT_OBSERVABLE))
    elif seen > state.offset:
        yield Remark(RemarkKind.VANISHED, path, state.version, state.offset, seen - state.offset)


def _never_published(found: dict[str, SourceIdentity], progress: Progress) -> Iterator[Remark]:
    """State the files that waited and went away whole; one that has another name now did not."""
    inodes = {source.inode for source in found.values()}
    for path, waiting in progress.waiting.items():
        if path not in found and path not in progress.files and waiting.inode not in inodes:
            yield Remark(RemarkKind.VANISHED, path, 0, 0, waiting.end)
