"""Putting a store's run together beside its destination, whole or not at all (ST-11)."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from msgspec import Struct

from paritrace.errors import HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.store import records
from paritrace.store.aside import Buffer
from paritrace.store.chain import Chain, StreamKey
from paritrace.store.checking import Checker, RankFacts, StoreFacts
from paritrace.store.documents import canonical
from paritrace.store.layout import RankKey, is_safe_path
from paritrace.store.placing import Placed, collisions, node_facts_path, placements
from paritrace.store.problems import Problem, damaged_store
from paritrace.store.records import Manifest, RemarkKind, Segment
from paritrace.store.targets import Target

RESTORED_NAME = "restore.json"
FORMAT = "paritrace-store-restored"
SPACE_KEPT_FREE_BYTES = 64 << 20  # so that restoring never fills a file system to its last byte
_STREAMS = ".streams"


class Restored(Struct, frozen=True, tag_field="type", tag="restored", forbid_unknown_fields=True):
    """restore.json of a restored run: what is in it, and with `--partial` what is not, as problems (ST-11)."""

    format: str
    version: str
    run_id: str
    source: str
    ranks: tuple[RankFacts, ...]
    older_versions: int
    problems: tuple[Problem, ...]


def restore(target: Target, destination: Path, *, partial: bool = False, files: Files = LOCAL) -> Restored:
    """Restore a store into a directory that does not exist yet.

    It is built beside the destination under a hidden name and gets its name last. With `partial`, each rank is restored
    up to its first problem, and the problems stand in restore.json.

    Raises:
        EvidenceError: Refused: `damaged_store` with every problem, `not_a_store`; nothing is left.
        HostError: Refused: `already_there`, `disk_full` before the space runs out, and what the disk or target says.
    """
    require_absent(destination, files)
    files.mkdir(destination.parent)
    folder = destination.parent / f"{TEMPORARY_PREFIX}restore-{secrets.token_hex(8)}"
    files.mkdir(folder)
    try:
        restored = restore_into(target, folder, partial=partial, files=files)
        files.sync_all(folder)
        files.publish_folder(folder, destination)
    except BaseException:
        discard(folder)
        raise
    return restored


def restore_into(target: Target, folder: Path, *, partial: bool = False, files: Files = LOCAL) -> Restored:
    """Restore a store into an empty, private folder; nothing is forced to disk. Raises as `restore` does."""
    upto: dict[RankKey, int] | None = None
    problems: tuple[Problem, ...] = ()
    if partial:
        whole = Checker(target).check()
        problems = whole.problems
        upto = {RankKey(rank.node_id, rank.rank): rank.bundles for rank in whole.ranks}
    checker = Checker(target, writer=StreamWriter(folder, files=files))
    facts = checker.check(upto=upto)
    placed = [one for chain in checker.chains.values() for one in placements(chain)]
    found = [*(facts.problems if upto is None else ()), *collisions(placed)]
    if found or not isinstance(facts.run_id, str):
        raise damaged_store(target.label, found or facts.problems)
    _place(folder, checker, placed, files=files)
    _place_nodes(folder, facts, files=files)
    older = sum(not one.to.startswith("rank-") for one in placed)
    restored = Restored(FORMAT, records.VERSION, facts.run_id, target.label, facts.ranks, older, problems)
    files.extend_scratch(folder / RESTORED_NAME, (canonical(restored),))
    return restored


def discard(folder: Path) -> None:
    """Remove a folder of ours that nobody else sees."""
    with suppress(OSError):
        rmtree(folder)


class StreamWriter:
    """Writes the bytes of every stream into a file of its own; names come later, when the last ones are known."""

    def __init__(self, folder: Path, *, files: Files) -> None:
        self._folder = folder
        self._streams = folder / _STREAMS
        self._files = files

    def begin(self, chain: Chain, manifest: Manifest, /) -> None:
        """Make sure of the space for one bundle.

        Raises:
            HostError: Refused, code `disk_full`.
        """
        due = sum(segment.length for segment in manifest.segments) + SPACE_KEPT_FREE_BYTES
        self._files.mkdir(self._streams)
        free = self._files.free_bytes(self._folder)
        if due > free:
            raise HostError(
                f"restoring needs {due} more bytes in {self._folder.parent}, {free} are free",
                code="disk_full",
                fix="free space, or restore to another place",
            )

    def take(self, chain: Chain, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        key = StreamKey(segment.origin, segment.version)
        self._files.extend_scratch(self._streams / _stream_name(chain.key, key), chunks)


def _stream_name(key: RankKey, stream: StreamKey) -> str:
    """Return the name of the file in which a stream is gathered: a digest, since paths may be long and nested."""
    told = f"{key.node_id}\0{key.rank}\0{stream.version}\0{stream.origin}"
    return sha256_hex(told.encode("utf-8"))


def _place(folder: Path, checker: Checker, placed: list[Placed], *, files: Files) -> None:
    streams, made = folder / _STREAMS, set[Path]()
    for key in checker.chains:
        files.mkdir(folder / f"rank-{key.rank}")
        for remark in checker.chains[key].stated:
            if remark.kind is RemarkKind.EMPTY_FOLDER and is_safe_path(remark.path):
                files.mkdir(folder / f"rank-{key.rank}" / remark.path)
    for one in placed:
        path = folder / one.to
        if path.parent not in made:
            files.mkdir(path.parent)
            made.add(path.parent)
        files.rename(streams / _stream_name(one.key, one.stream), path)
        if checker.chains[one.key].streams[one.stream].executable:
            files.make_executable(path)
    if files.exists(streams):
        files.remove_folder(streams)


def _place_nodes(folder: Path, facts: StoreFacts, *, files: Files) -> None:
    by_node = {node.node_id: canonical(node) for node in facts.nodes}
    for rank in facts.ranks:
        key = RankKey(rank.node_id, rank.rank)
        if key.node_id in by_node and not files.exists(folder / node_facts_path(key)):
            files.extend_scratch(folder / node_facts_path(key), (by_node[key.node_id],))


def require_absent(destination: Path, files: Files) -> None:
    """Refuse a destination that exists.

    Raises:
        HostError: Refused, code `already_there`.
    """
    if files.exists(destination):
        raise HostError(f"{destination} exists", code="already_there", fix="name a directory that does not exist yet")
