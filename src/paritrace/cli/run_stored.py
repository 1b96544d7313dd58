"""`paritrace run --store`: the run as a child that writes to staging, published by this process meanwhile (ST-17)."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from paritrace.cli.output import note
from paritrace.cli.run_launcher import NOT_PASSED_ON, launch, options_of
from paritrace.errors import ParitraceError, RequestError

if TYPE_CHECKING:
    from paritrace.runs.staged import Staged
    from paritrace.store.node_publisher import NodePublisher
    from paritrace.store.syncing import SyncReport


def run_stored(ctx: click.Context, output: Path) -> int:
    """Run the workload, or its launcher, and publish what this node's ranks write; returns the workload's status.

    As the inner command of a launcher it runs one rank and publishes that one alone; local rank 0 publishes what the
    node is, and rank 0 makes the run's own directory. Everything that can be refused is refused before the workload
    starts: the staging directory, the target, another machine under this node id. What fails later is said at the end
    and never changes the workload.

    Raises:
        RequestError: Refused: `store_with_draws`, `store_inside_launcher`, `no_run_id`, `no_local_rank`, `no_staging`,
            `staging_in_store`, `bad_id`, `bad_target`, `bad_launch_environment`.
        EvidenceError: Refused: `run_exists`, `duplicate_node`, `foreign_run`, `old_layout`, `checkpoint_lost`.
        HostError: Refused: `staging_is_shared`, `overwriting_target`, and what disk or target say.
    """
    from paritrace.runs.staged import claim_staged

    _require_one_run(ctx)
    rank = _rank(ctx)
    staged = _staged(ctx, rank)
    publisher = _publisher(ctx, staged, rank)
    if rank is None or rank.number == 0:
        claim_staged(output, staged, title=str(ctx.params["title"]), again=rank is not None)
    publisher.start()
    try:
        status = _started(ctx, output, staged)
    finally:
        publisher.stop()
        facts = _finish(staged, publisher)
    if facts and (rank is None or rank.number == 0):
        _noted(output, facts)
    return status


class _Rank(NamedTuple):
    """This process's rank in a launcher's start; `run_id`: what its ranks derive alike, None where nothing tells."""

    number: int
    local: int
    run_id: str | None


def _started(ctx: click.Context, output: Path, staged: Staged) -> int:
    from paritrace.process.foreground import run_in_our_place

    own = (f"--staged-in={staged.folder}", f"--run-id={staged.run_id}", f"--node-id={staged.node_id}")
    if ctx.params["launcher"]:
        return launch(ctx, str(ctx.params["launcher"]), capture=True, staged=own)
    workload = cast(tuple[str, ...], ctx.params["workload"])
    flag = ("--module",) if ctx.params["module"] else ()
    options = options_of(ctx, without=NOT_PASSED_ON | {"output"})
    head = (sys.executable, "-m", "paritrace", "run", *options, f"--output={output}", *own, *flag)
    return run_in_our_place((*head, *workload), environment=os.environ)


def _require_one_run(ctx: click.Context) -> None:
    if ctx.params["perturb"] is not None:
        raise RequestError(
            "--perturb makes several runs, and a store holds one",
            code="store_with_draws",
            fix="run without --store, or without --perturb",
        )


def _rank(ctx: click.Context) -> _Rank | None:
    """Which rank of a launcher's start this command is; None where it is the outer command of its node."""
    from paritrace.evidence.gaps import Gap
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import Launcher, launch_of, shared_run_id

    launch = launch_of(os.environ, process=own_identity())
    if launch.start.launcher is Launcher.PROCESS:
        return None
    if ctx.params["launcher"]:
        raise RequestError(
            "--store with --launcher starts the ranks of a node, and this process is one rank of a job",
            code="store_inside_launcher",
            fix="leave --launcher out: each rank publishes itself; or start this command outside of the launcher",
        )
    if isinstance(launch.local_rank, Gap):
        raise RequestError(
            f"rank {launch.rank} has no local rank, by which one rank of the node publishes what the node is",
            code="no_local_rank",
            fix="set LOCAL_RANK to each rank's number on its node, from 0",
        )
    return _Rank(launch.rank, launch.local_rank, shared_run_id(launch))


def _staged(ctx: click.Context, rank: _Rank | None) -> Staged:
    from paritrace.evidence.ids import checked_id
    from paritrace.runs.staged import Staged

    staging = ctx.params["staging"]
    return Staged(
        run_id=checked_id(str(ctx.params["run_id"] or _new_run_id(rank)), what="run id"),
        store=_absolute(str(ctx.params["store"])),
        staging=Path() if staging is None else Path(staging).expanduser().absolute(),
        node_id=checked_id(str(ctx.params["node_id"] or socket.gethostname()), what="node id"),
    )


def _new_run_id(rank: _Rank | None) -> str:
    from paritrace.clock import SYSTEM
    from paritrace.evidence.ids import new_run_id

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
    return store if "://" in store else str(Path(store).expanduser().absolute())


def _publisher(ctx: click.Context, staged: Staged, rank: _Rank | None) -> NodePublisher:
    from paritrace.cli.probes.store import require_own_disk
    from paritrace.cli.store_sync import SyncRequest, make_syncer, publish_node
    from paritrace.files import LOCAL
    from paritrace.process.identity import own_identity
    from paritrace.store.layout import StagedRank
    from paritrace.store.node_publisher import NodePublisher
    from paritrace.store.ownership import Ownership
    from paritrace.store.targets import open_target
    from paritrace.store.throttle import Throttle

    def request(one: int) -> SyncRequest:
        return SyncRequest(
            staging=None if ctx.params["staging"] is None else staged.staging,
            target=staged.store,
            run_id=staged.run_id,
            rank=one,
            node_id=staged.node_id,
            interval_seconds=float(ctx.params["sync_interval"]),
            batch_mib=float(ctx.params["sync_batch_mib"]),
            mib_per_second=float(ctx.params["sync_mib_per_second"]),
        )

    number, local = (0, 0) if rank is None else (rank.number, rank.local)
    make_syncer(request(number))  # checks what was asked for
    require_own_disk(staged.staging)
    LOCAL.mkdir(staged.folder)
    target = open_target(staged.store)
    target.probe()
    place = StagedRank(staging=staged.staging, run_id=staged.run_id, node_id=staged.node_id, rank=number)
    Ownership(place, target, throttle=Throttle(None)).token(own_identity())
    publisher = NodePublisher(
        staged.folder,
        lambda one: make_syncer(request(one)),
        node_id=staged.node_id,
        interval_seconds=float(ctx.params["sync_interval"]),
    )
    publisher.only = None if rank is None else (number, local)
    if local == 0:
        publisher.first = lambda syncer: publish_node(syncer, request(number))
    return publisher


def _finish(staged: Staged, publisher: NodePublisher) -> dict[str, str]:
    """Publish the rest, say what was published; return what was not, for the run's own envelope."""
    from paritrace.runs.staged import NOT_PUBLISHED, STAGING_FAILED

    ended = publisher.final()
    failed = {rank: error for rank, error in ended.items() if isinstance(error, ParitraceError)}
    reports = [report for report in ended.values() if not isinstance(report, ParitraceError)]
    _say_published(staged, reports)
    facts: dict[str, str] = {}
    for rank, error in failed.items():
        note(f"{error.outcome.value}: rank {rank} is not published to the end: {error.message} [{error.code}]")
        note(f"    fix: {error.fix}; then {_again(staged, rank)}")
    if failed:
        facts[STAGING_FAILED] = "; ".join(f"rank {rank}: {error.code}" for rank, error in failed.items())
    waiting = sum(report.waiting_bytes for report in reports)
    if waiting:
        facts[NOT_PUBLISHED] = str(waiting)
    return facts


def _noted(output: Path, facts: dict[str, str]) -> None:
    """Keep it in the run's own directory, which is this command's alone."""
    from paritrace.runs.staged import note_staged

    try:
        note_staged(output, facts)
    except ParitraceError as error:
        note(f"{error.outcome.value}: {error.message} [{error.code}]")


def _say_published(staged: Staged, reports: list[SyncReport]) -> None:
    bundles = sum(report.bundles for report in reports)
    left = sum(report.waiting_bytes for report in reports)
    tail = f", {left:,} bytes of incomplete records stay in staging" if left else ""
    told = f"{_counted(len(reports), 'rank')}, {_counted(bundles, 'bundle')}"
    note(f"paritrace: run {staged.run_id}, node {staged.node_id}: {told} -> {staged.store}{tail}")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _again(staged: Staged, rank: int) -> str:
    return (
        f"paritrace store sync --final --store {staged.store} --staging {staged.staging} --run-id {staged.run_id}"
        f" --node-id {staged.node_id} --rank {rank}"
    )
