"""Putting a store's run together beside its destination, whole or not at all (ST-11)."""

import secrets
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from msgspec import Struct

from paritrace.errors import HostError
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.store import records
from paritrace.store.checking import Checker, RankFacts, StoreFacts
from paritrace.store.documents import canonical
from paritrace.store.gathering import StreamWriter
from paritrace.store.layout import RankKey, is_safe_path
from paritrace.store.placing import Placed, collisions, node_facts_path, placements
from paritrace.store.problems import Problem, damaged_store
from paritrace.store.records import RemarkKind
from paritrace.store.targets import Target

RESTORED_NAME = "restore.json"
FORMAT = "paritrace-store-restored"


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
    writer = StreamWriter(folder, files=files)
    checker = Checker(target, writer=writer)
    facts = checker.check(upto=upto)
    placed = [one for chain in checker.chains.values() for one in placements(chain)]
    found = [*(facts.problems if upto is None else ()), *collisions(placed)]
    if found or not isinstance(facts.run_id, str) or not _is_as_before(facts, upto):
        raise damaged_store(target.label, found or facts.problems)
    _place(folder, checker, placed, writer, files=files)
    _place_nodes(folder, facts, files=files)
    older = sum(not one.to.startswith("rank-") for one in placed)
    restored = Restored(FORMAT, records.VERSION, facts.run_id, target.label, facts.ranks, older, problems)
    files.extend_scratch(folder / RESTORED_NAME, (canonical(restored),))
    return restored


def _is_as_before(facts: StoreFacts, upto: dict[RankKey, int] | None) -> bool:
    """Say whether everything that was whole when it was checked still was when it was written."""
    return upto is None or upto == {RankKey(rank.node_id, rank.rank): rank.bundles for rank in facts.ranks}


def discard(folder: Path) -> None:
    """Remove a folder of ours that nobody else sees."""
    with suppress(OSError):
        rmtree(folder)


def _place(folder: Path, checker: Checker, placed: list[Placed], writer: StreamWriter, *, files: Files) -> None:
    writer.settle(placed)
    for one in placed:
        if checker.chains[one.key].streams[one.stream].executable:
            files.make_executable(folder / one.to)
    for key, chain in checker.chains.items():
        writer.make_folder(f"rank-{key.rank}")
        for remark in chain.stated:
            if remark.kind is RemarkKind.EMPTY_FOLDER and is_safe_path(remark.path):
                writer.make_folder(f"rank-{key.rank}/{remark.path}")


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
