"""How far each rank is: on the target, and in the staging directory of this node (ST-10, ST-13, ST-18)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.store import checkpoint as checkpoints
from paritrace.store.checkpoint import Checkpoint, LogState, Progress
from paritrace.store.documents import staged_document
from paritrace.store.inventory import contiguous, inventory_of, sequence_problems
from paritrace.store.layout import BUNDLES, STATE, StagedRank
from paritrace.store.outcomes import Trouble, load_outcome
from paritrace.store.problems import Problem
from paritrace.store.records import StoreGap
from paritrace.store.sources import listing_of
from paritrace.store.targets import Target

_RANK = "rank-"


class PublishedRank(Struct, frozen=True):
    """By names and sizes alone: `bundles` in one chain, `stored_bytes` of all of them, whether a receipt ends it."""

    node_id: str
    rank: int
    bundles: int
    stored_bytes: int
    has_receipt: bool


class StagedRankStatus(Struct, frozen=True):
    """What this node knows of one of its ranks.

    `waiting_bytes`: staged and not published, incomplete last records included. `overdue_bytes`: of complete ones, by
    the last sync, for longer than two intervals. `trouble`: what the last sync ended with.
    """

    node_id: str
    rank: int
    bundles: int
    payload_bytes: int
    pending_bytes: int
    waiting_bytes: int | Gap[StoreGap]
    overdue_bytes: int
    last_success_unix_ns: int | Gap[StoreGap]
    trouble: Trouble | None
    checkpoint_readable: bool


class StoreStatus(Struct, frozen=True):
    """`status --json`. `free_bytes`, `needed_bytes`: of staging, where all traces and one pending bundle must fit."""

    source: str | None
    published: tuple[PublishedRank, ...]
    staged: tuple[StagedRankStatus, ...]
    free_bytes: int | Gap[StoreGap]
    needed_bytes: int | Gap[StoreGap]
    problems: tuple[Problem, ...]


def status_of(
    target: Target | None, staging: Path | None, run_id: str | None, *, batch_bytes: int, files: Files = LOCAL
) -> StoreStatus:
    """Look at target and staging directory; nothing is read but names, sizes and small documents.

    Raises:
        HostError: Refused, what target or disk say.
    """
    published, problems = ((), ()) if target is None else _published(target)
    staged = () if staging is None else tuple(_staged(staging, run_id, files))
    return StoreStatus(
        source=None if target is None else target.label,
        published=tuple(published),
        staged=staged,
        free_bytes=Gap(StoreGap.NOT_COLLECTED) if staging is None else files.free_bytes(staging),
        needed_bytes=Gap(StoreGap.NOT_COLLECTED) if staging is None else batch_bytes,
        problems=tuple(problems),
    )


def _published(target: Target) -> tuple[list[PublishedRank], list[Problem]]:
    sizes = {entry.name: entry.num_bytes for entry in target.list(f"{BUNDLES}/")}
    inventory = inventory_of(sizes)
    ranks = [
        PublishedRank(
            node_id=key.node_id,
            rank=key.rank,
            bundles=len(contiguous(inventory.bundles.get(key, ()))),
            stored_bytes=sum(sizes[str(name)] for name in inventory.bundles.get(key, ())),
            has_receipt=key in inventory.receipts,
        )
        for key in inventory.ranks
    ]
    gaps = [problem for key, names in inventory.bundles.items() for problem in sequence_problems(key, names)]
    return ranks, [*inventory.problems, *gaps]


def _staged(staging: Path, run_id: str | None, files: Files) -> Iterator[StagedRankStatus]:
    runs = [path.name for path in files.list(staging)] if run_id is None else [run_id]
    for run in runs:
        state = staging / run / STATE
        for path in files.list(state) if files.exists(state) else ():
            number = path.name.removeprefix(_RANK)
            if path.name.startswith(_RANK) and number.isdigit():
                yield _rank(StagedRank(staging, run, "", int(number)), files)


def _rank(place: StagedRank, files: Files) -> StagedRankStatus:
    found = _checkpoint(place, files)
    progress = Progress() if found is None else found.progress
    outcome = load_outcome(place, files=files)
    pending = None if found is None else found.pending
    never: int | Gap[StoreGap] = Gap(StoreGap.NOT_OBSERVABLE)
    return StagedRankStatus(
        node_id="" if found is None else found.node_id,
        rank=place.rank,
        bundles=progress.bundles,
        payload_bytes=progress.payload_bytes,
        pending_bytes=0 if pending is None else pending.num_bytes,
        waiting_bytes=_waiting(place, progress, files),
        overdue_bytes=outcome.overdue_bytes,
        last_success_unix_ns=outcome.last_success_unix_ns or never,
        trouble=outcome.last_error,
        checkpoint_readable=found is not None,
    )


def _checkpoint(place: StagedRank, files: Files) -> Checkpoint | None:
    try:
        return staged_document(place.checkpoint, Checkpoint, format_name=checkpoints.FORMAT, files=files)
    except EvidenceError:
        return None


def _waiting(place: StagedRank, progress: Progress, files: Files) -> int | Gap[StoreGap]:
    """Return the staged bytes that are not published, by sizes; a changed whole file counts whole."""
    try:
        listing = listing_of(place.originals, files=files)
    except HostError:
        return Gap(StoreGap.NOT_OBSERVABLE)
    if listing.unreadable:
        return Gap(StoreGap.NOT_OBSERVABLE)
    total = 0
    for path, source in listing.found.items():
        state = progress.files.get(path)
        if isinstance(state, LogState):
            total += max(0, source.num_bytes - state.offset) if state.source.inode == source.inode else source.num_bytes
        elif state is None or state.source != source:
            total += source.num_bytes
    return total
