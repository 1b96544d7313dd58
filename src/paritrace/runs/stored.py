"""Opening what is not a run directory itself: a store, a restored one, staging, an old-style archive (ST-12, ST-25)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from paritrace.errors import HostError, ParitraceError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.spans import ranges
from paritrace.files import Files
from paritrace.runs.assembling import RANK_PREFIX, add_records, assemble, rank_folders
from paritrace.runs.attendance import CAPTURED_RANKS, MAX_RANKS_LISTED
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import ENVELOPE_NAME, Envelope
from paritrace.runs.keeping_restored import kept_restored
from paritrace.runs.scratch import Scratch
from paritrace.runs.staged import STAGING_FAILED, STORE, TROUBLE, Staged, staged_of

if TYPE_CHECKING:
    from paritrace.store.checking import RankFacts

_ADDRESS = re.compile(r"(s3|memory|file):/+(.*)", re.DOTALL)  # a path has lost one of the slashes


def address_of(path: Path) -> str:
    """Return the target that a person named where a path was asked for."""
    found = _ADDRESS.fullmatch(str(path))
    if found is None:
        return str(path)
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2]}"


def is_address(path: Path) -> bool:
    """Say whether a path is an address that was taken for one."""
    return _ADDRESS.fullmatch(str(path)) is not None


def is_published(path: Path, *, files: Files) -> bool:
    """Say whether a path leads into a store, which nobody writes to but the ranks' syncs (ST-24)."""
    from paritrace.store.recognising import is_store

    return is_address(path) or is_store(path, files=files)


def stored_folder(path: Path, *, scratch: Path | None, files: Files) -> Scratch | None:
    """Return a private folder with the run that a path leads to, None where the path is a run itself.

    Raises:
        EvidenceError: Refused: `damaged_store`, `not_a_store`, `not_a_run`, `mixed_runs`, `bad_archive`.
        HostError: Refused: `disk_full`, and what disk or target say; nothing is left behind.
    """
    if is_published(path, files=files):
        return _from_store(address_of(path), {}, scratch=scratch, files=files)
    if path.is_dir() and not files.exists(path / ENVELOPE_NAME):
        from paritrace.store.opening import old_archive

        ranks = rank_folders(path, files=files)
        if ranks:
            return _assembled(lambda: ranks, {}, scratch=scratch, files=files)
        if old_archive(str(path), files=files) is not None:
            return _from_archive(path, scratch=scratch, files=files)
        return None
    if path.is_file():
        return _from_archive(path, scratch=scratch, files=files) if _is_old_archive(path) else None
    return _from_staging(path, scratch=scratch, files=files)


def _is_old_archive(path: Path) -> bool:
    return path.name.startswith("sync.tar")


def _from_staging(path: Path, *, scratch: Path | None, files: Files) -> Scratch | None:
    """The ranks of this node from its own disk, which knows more than the store; from the store elsewhere."""
    envelope = read_envelope(path, files=files)
    staged = None if envelope is None else staged_of(envelope)
    if envelope is None or staged is None:
        return None
    private = _staged_ranks(staged, envelope, scratch=scratch, files=files)
    try:
        add_records(path, private.run_folder, files=files)
    except BaseException:
        private.remove()
        raise
    return private


def _staged_ranks(staged: Staged, envelope: Envelope, *, scratch: Path | None, files: Files) -> Scratch:
    failed = _failed(staged, files, said=envelope.metadata.get(STAGING_FAILED, ""))
    told = {STORE: staged.store, **failed}  # what is not published yet is here
    here = _ranks_here(staged, files)
    world = max((_world_size(rank, files) for rank in here), default=0)
    if here and len(here) >= world:
        return _assembled(lambda: here, told, scratch=scratch, files=files)
    try:
        return _from_store(staged.store, failed, scratch=scratch, files=files)
    except ParitraceError:
        if not here:
            raise
        return _assembled(lambda: here, told, scratch=scratch, files=files)


def _failed(staged: Staged, files: Files, *, said: str) -> dict[str, str]:
    """The ranks of this node whose last sync failed; once a later one went well, there is nothing to tell.

    `said`: by the run itself when it ended, which stands where staging cannot be looked at.
    """
    from paritrace.store.status import status_of
    from paritrace.store.syncing import BATCH_BYTES

    words = said
    with suppress(HostError):
        files.list(staged.folder)  # one that is not there would look like one without trouble
        ranks = status_of(None, staged.staging, staged.run_id, batch_bytes=BATCH_BYTES, files=files).staged
        words = "; ".join(f"rank {one.rank}: {one.trouble.code}" for one in ranks if one.trouble is not None)
    return {STAGING_FAILED: words} if words else {}


def _ranks_here(staged: Staged, files: Files) -> tuple[Path, ...]:
    return rank_folders(staged.folder, files=files) if files.exists(staged.folder) else ()


def _world_size(rank: Path, files: Files) -> int:
    envelope = read_envelope(rank, files=files)
    return max((row.world_size for row in envelope.sessions), default=1) if envelope else 1


def _from_store(store: str, known: dict[str, str], *, scratch: Path | None, files: Files) -> Scratch:
    """`known`: what this node knows of its ranks beside the store."""
    from paritrace.store.kept_restores import kept_restore
    from paritrace.store.restoring import restore_into
    from paritrace.store.targets import open_target

    target = open_target(store)
    private = Scratch(scratch)
    kept = kept_restored()
    try:
        if kept is None:
            restored = private.folder / "restored"
            files.mkdir(restored)
            found = restore_into(target, restored, files=files).ranks
        else:
            restored, found = kept_restore(target, private.folder.parent, files=files)
            kept.append(restored)
        ranks = rank_folders(restored, files=files)
        _into(private, ranks, {STORE: target.label, **_not_whole(found, _elsewhere(ranks, files)), **known}, files)
    except BaseException:
        private.remove()
        raise
    return private


def _elsewhere(ranks: Sequence[Path], files: Files) -> Iterator[str]:
    """Say which ranks of the world left nothing in the store, and what may be the reason (ST-22)."""
    envelopes = [envelope for rank in ranks if (envelope := read_envelope(rank, files=files)) is not None]
    if any(CAPTURED_RANKS in envelope.metadata for envelope in envelopes):
        return
    world = max((row.world_size for envelope in envelopes for row in envelope.sessions), default=0)
    here = {int(rank.name.removeprefix(RANK_PREFIX)) for rank in ranks}
    if 0 < world - len(here) < MAX_RANKS_LISTED:
        missing = ranges(rank for rank in range(world) if rank not in here)
        yield f"rank {missing}: nothing in this store; it may have been given another one, or its node was lost"


def _not_whole(ranks: Sequence[RankFacts], elsewhere: Iterable[str]) -> dict[str, str]:
    """What the store itself says is not in it, in words; empty where everything is."""
    words = "; ".join((*elsewhere, *(text for rank in ranks for text in _words(rank))))
    return {TROUBLE: words} if words else {}


def _words(rank: RankFacts) -> Iterator[str]:
    from paritrace.store.records import is_loss

    if isinstance(rank.expected, Gap):
        yield f"rank {rank.rank}: no receipt of a final sync, so more may not have been published"
    if rank.overdue_bytes:
        yield f"rank {rank.rank}: {rank.overdue_bytes:,} bytes waited longer than two intervals"
    num_losses = sum(map(is_loss, rank.remarks))
    if num_losses:
        yield f"rank {rank.rank}: {num_losses} losses or stops of its files, see `paritrace store verify`"


def _from_archive(path: Path, *, scratch: Path | None, files: Files) -> Scratch:
    from paritrace.store.legacy import extract
    from paritrace.store.opening import old_archive

    archive = old_archive(str(path), files=files) or path
    private = Scratch(scratch)
    try:
        content = private.folder / "content"
        files.mkdir(content)
        extract(archive, content, files=files)
        ranks = rank_folders(content, files=files)
        if ranks:
            _into(private, ranks, {}, files)
        else:
            private.run_folder = content
    except BaseException:
        private.remove()
        raise
    return private


def _assembled(
    ranks: Callable[[], tuple[Path, ...]], metadata: dict[str, str], *, scratch: Path | None, files: Files
) -> Scratch:
    private = Scratch(scratch)
    try:
        _into(private, ranks(), metadata, files)
    except BaseException:
        private.remove()
        raise
    return private


def _into(private: Scratch, ranks: tuple[Path, ...], metadata: dict[str, str], files: Files) -> None:
    private.run_folder = private.folder / "run"
    files.mkdir(private.run_folder)
    assemble(ranks, private.run_folder, metadata=metadata, files=files)
