"""Ranks that write to staging, published by this process meanwhile and to the end afterwards (ST-1, ST-17, ST-18)."""

import os
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from paritrace.capture.syncers import SyncRequest, make_syncer, publish_node
from paritrace.clock import SYSTEM
from paritrace.errors import HostError, ParitraceError, RequestError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import checked_id, new_run_id
from paritrace.files import LOCAL
from paritrace.process.identity import own_identity
from paritrace.process.mounts import kind_at
from paritrace.runs.launch import Launcher, launch_of, shared_run_id
from paritrace.runs.staged import NOT_PUBLISHED, STAGING_FAILED, Staged, claim_staged, note_staged
from paritrace.store.layout import StagedRank
from paritrace.store.node_publisher import NodePublisher
from paritrace.store.ownership import Ownership
from paritrace.store.syncing import BATCH_BYTES, INTERVAL_SECONDS, MIB, SyncReport
from paritrace.store.targets import open_target
from paritrace.store.throttle import Throttle

MIB_PER_SECOND = 32.0
SHARED = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "afs", "wekafs", "panfs", "orangefs"),
        *("gfs2", "ocfs2", "glusterfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.sshfs"),
        *("fuse.gcsfuse", "fuse.s3fs", "fuse.juicefs", "fuse.mount-s3"),
    }
)


class StoreSettings(Struct, frozen=True):
    """Where a run is staged and published. Without `run_id` its launcher tells, without `node_id` the host's name."""

    store: str
    staging: Path | None = None
    run_id: str | None = None
    node_id: str | None = None
    interval_seconds: float = INTERVAL_SECONDS
    batch_mib: float = BATCH_BYTES / MIB
    mib_per_second: float = MIB_PER_SECOND


class RankHere(NamedTuple):
    """This process's rank in a launcher's start; `run_id`: what its ranks derive alike, None where nothing tells."""

    number: int
    local: int
    run_id: str | None


def store_settings(environ: Mapping[str, str]) -> StoreSettings | None:
    """Return what the environment says of a store, None where it names none.

    Raises:
        RequestError: Refused, code `bad_store_variable`.
    """
    if not environ.get("PARITRACE_STORE"):
        return None
    staging = environ.get("PARITRACE_STAGING_DIR")
    return StoreSettings(
        store=environ["PARITRACE_STORE"],
        staging=Path(staging) if staging else None,
        run_id=environ.get("PARITRACE_RUN_ID") or None,
        node_id=environ.get("PARITRACE_NODE_ID") or None,
        interval_seconds=_positive(environ, "PARITRACE_SYNC_INTERVAL_SECONDS", INTERVAL_SECONDS),
        batch_mib=_positive(environ, "PARITRACE_SYNC_BATCH_MIB", BATCH_BYTES / MIB),
        mib_per_second=_positive(environ, "PARITRACE_SYNC_MIB_PER_SECOND", MIB_PER_SECOND),
    )


def rank_here(environ: Mapping[str, str]) -> RankHere | None:
    """Return which rank of a launcher's start this process is, None where there is no launcher.

    Raises:
        RequestError: Refused: `no_local_rank`, `bad_launch_environment`.
    """
    launch = launch_of(environ, process=own_identity())
    if launch.start.launcher is Launcher.PROCESS:
        return None
    if isinstance(launch.local_rank, Gap):
        raise RequestError(
            f"rank {launch.rank} has no local rank, by which one rank of the node publishes what the node is",
            code="no_local_rank",
            fix="set LOCAL_RANK to each rank's number on its node, from 0",
        )
    return RankHere(launch.rank, launch.local_rank, shared_run_id(launch))


def require_own_disk(staging: Path) -> None:
    """Refuse a staging directory, which need not be there yet, on storage that other nodes share (ST-1).

    Raises:
        HostError: Refused, code `staging_is_shared`.
    """
    kind = kind_at(staging)
    if kind in SHARED:
        raise HostError(
            f"staging {staging} lies on {kind}, which is shared storage",
            code="staging_is_shared",
            fix="name a directory on a disk of this node: --staging, or PARITRACE_STAGING_DIR",
        )


def is_shared(path: Path) -> bool:
    """Whether a folder lies on storage that other nodes share."""
    return kind_at(path) in SHARED


class Publishing:
    """The publishing of this node's ranks, or of one rank that a launcher started (`rank`).

    `begin` before anything writes to `staged.folder`, `end` after the last write. Local rank 0 publishes what the node
    is, and rank 0 makes the run's own directory. What fails after `begin` is told and never reaches the workload.
    """

    def __init__(self, settings: StoreSettings, rank: RankHere | None, *, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._rank = rank
        self._say = say
        self._owns_run = rank is None or rank.number == 0
        self._run_dir = Path()
        self.staged = Staged(
            run_id=checked_id(settings.run_id or _run_id(rank), what="run id"),
            store=_absolute(settings.store),
            staging=Path() if settings.staging is None else settings.staging.expanduser().absolute(),
            node_id=checked_id(settings.node_id or socket.gethostname(), what="node id"),
        )
        self._publisher = NodePublisher(
            self.staged.folder,
            lambda one: make_syncer(self._request(one)),
            node_id=self.staged.node_id,
            interval_seconds=settings.interval_seconds,
        )

    def begin(self, run_dir: Path, *, title: str) -> None:
        """Check everything that can be refused, make the run's own directory where it is ours, begin to publish.

        Raises:
            RequestError: Refused: `no_staging`, `staging_in_store`, `bad_target`, `bad_rate`.
            EvidenceError: Refused: `run_exists`, `duplicate_node`, `foreign_run`, `old_layout`, `checkpoint_lost`.
            HostError: Refused: `staging_is_shared`, `overwriting_target`, and what disk or target say.
        """
        number, local = (0, 0) if self._rank is None else self._rank[:2]
        make_syncer(self._request(number))  # checks what was asked for
        require_own_disk(self.staged.staging)
        LOCAL.mkdir(self.staged.folder)
        target = open_target(self.staged.store)
        target.probe()
        Ownership(self._place(number), target, throttle=Throttle(None)).token(own_identity())
        self._publisher.only = None if self._rank is None else (number, local)
        if local == 0:
            self._publisher.first = lambda syncer: publish_node(syncer, self._request(number))
        self._run_dir = run_dir
        if self._owns_run:
            claim_staged(run_dir, self.staged, title=title, again=self._rank is not None)
        self._publisher.start()

    def end(self) -> None:
        """Publish the rest, say what was published, and keep in the run's own directory what was not.

        Raises:
            HostError: Failed, code `sync_stuck`.
        """
        self._publisher.stop()
        ended = self._publisher.final()
        failed = {rank: error for rank, error in ended.items() if isinstance(error, ParitraceError)}
        reports = [report for report in ended.values() if not isinstance(report, ParitraceError)]
        self._say_published(reports)
        facts: dict[str, str] = {}
        for rank, error in failed.items():
            self._say(f"{error.outcome.value}: rank {rank} is not published to the end: {error.message} [{error.code}]")
            self._say(f"    fix: {error.fix}; then {self._again(rank)}")
        if failed:
            facts[STAGING_FAILED] = "; ".join(f"rank {rank}: {error.code}" for rank, error in failed.items())
        waiting = sum(report.waiting_bytes for report in reports)
        if waiting:
            facts[NOT_PUBLISHED] = str(waiting)
        if facts and self._owns_run:
            self._note(facts)

    def _note(self, facts: dict[str, str]) -> None:
        try:
            note_staged(self._run_dir, facts)
        except ParitraceError as error:
            self._say(f"{error.outcome.value}: {error.message} [{error.code}]")

    def _request(self, rank: int) -> SyncRequest:
        return SyncRequest(
            staging=None if self._settings.staging is None else self.staged.staging,
            target=self.staged.store,
            run_id=self.staged.run_id,
            rank=rank,
            node_id=self.staged.node_id,
            interval_seconds=self._settings.interval_seconds,
            batch_mib=self._settings.batch_mib,
            mib_per_second=self._settings.mib_per_second,
        )

    def _place(self, rank: int) -> StagedRank:
        staged = self.staged
        return StagedRank(staging=staged.staging, run_id=staged.run_id, node_id=staged.node_id, rank=rank)

    def _say_published(self, reports: list[SyncReport]) -> None:
        bundles = sum(report.bundles for report in reports)
        left = sum(report.waiting_bytes for report in reports)
        tail = f", {left:,} bytes of incomplete records stay in staging" if left else ""
        told = f"{_counted(len(reports), 'rank')}, {_counted(bundles, 'bundle')}"
        staged = self.staged
        self._say(f"paritrace: run {staged.run_id}, node {staged.node_id}: {told} -> {staged.store}{tail}")

    def _again(self, rank: int) -> str:
        staged = self.staged
        return (
            f"paritrace store sync --final --store {staged.store} --staging {staged.staging}"
            f" --run-id {staged.run_id} --node-id {staged.node_id} --rank {rank}"
        )


def _run_id(rank: RankHere | None) -> str:
    if rank is None:
        return new_run_id(unix_ns=SYSTEM.wall_ns(), random=secrets.token_bytes(10))
    if rank.run_id is None:
        raise RequestError(
            "the launcher gives its ranks no id of this start, so that they cannot agree on one for the run",
            code="no_run_id",
            fix="give every rank the same one: --run-id, PARITRACE_RUN_ID, or torchrun --rdzv-id",
        )
    return rank.run_id


def _absolute(store: str) -> str:
    """A directory by its absolute path, since the run's envelope names it."""
    return store if "://" in store else os.path.abspath(os.path.expanduser(store))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _positive(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        number = float(text) if text else default
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise RequestError(
            f"{name} is {text[:40]!r}, not a positive number", code="bad_store_variable", fix=f"set {name} to a number"
        )
    return number
