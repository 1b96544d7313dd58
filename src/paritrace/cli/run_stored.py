"""`paritrace run --store`: the run as a child that writes to staging, published by this process meanwhile (ST-17)."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

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

    Everything that can be refused is refused before the workload starts: the staging directory, the target, another
    machine under this node id. What fails later is said at the end and never changes the workload.

    Raises:
        RequestError: Refused: `store_with_draws`, `store_inside_launcher`, `no_staging`,
            `staging_in_store`, `bad_id`, `bad_target`.
        EvidenceError: Refused: `run_exists`, `duplicate_node`, `foreign_run`, `old_layout`, `checkpoint_lost`.
        HostError: Refused: `overwriting_target`, and what disk or target say.
    """
    from paritrace.runs.staged import claim_staged

    _require_one_run(ctx)
    staged = _staged(ctx)
    publisher = _publisher(ctx, staged)
    claim_staged(output, staged, title=str(ctx.params["title"]))
    publisher.start()
    try:
        status = _started(ctx, output, staged)
    finally:
        publisher.stop()
        _finish(output, staged, publisher)
    return status


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


def _staged(ctx: click.Context) -> Staged:
    from paritrace.clock import SYSTEM
    from paritrace.evidence.ids import checked_id, new_run_id
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import Launcher, launch_of
    from paritrace.runs.staged import Staged

    if launch_of(os.environ, process=own_identity()).start.launcher is not Launcher.PROCESS:
        raise RequestError(
            "--store starts and publishes the ranks of a node, and this process is one rank of a job",
            code="store_inside_launcher",
            fix='start the launcher from it, on each node: paritrace run --store … --launcher "torchrun …" train.py',
        )
    made = new_run_id(unix_ns=SYSTEM.wall_ns(), random=secrets.token_bytes(10))
    staging = ctx.params["staging"]
    return Staged(
        run_id=checked_id(str(ctx.params["run_id"] or made), what="run id"),
        store=_absolute(str(ctx.params["store"])),
        staging=Path() if staging is None else Path(staging).expanduser().absolute(),
        node_id=checked_id(str(ctx.params["node_id"] or socket.gethostname()), what="node id"),
    )


def _absolute(store: str) -> str:
    """A directory by its absolute path, since the run's envelope names it."""
    return store if "://" in store else str(Path(store).expanduser().absolute())


def _publisher(ctx: click.Context, staged: Staged) -> NodePublisher:
    from paritrace.cli.store_sync import SyncRequest, make_syncer, publish_node
    from paritrace.files import LOCAL
    from paritrace.process.identity import own_identity
    from paritrace.store.layout import StagedRank
    from paritrace.store.node_publisher import NodePublisher
    from paritrace.store.ownership import Ownership
    from paritrace.store.targets import open_target
    from paritrace.store.throttle import Throttle

    def request(rank: int) -> SyncRequest:
        return SyncRequest(
            staging=None if ctx.params["staging"] is None else staged.staging,
            target=staged.store,
            run_id=staged.run_id,
            rank=rank,
            node_id=staged.node_id,
            interval_seconds=float(ctx.params["sync_interval"]),
            batch_mib=float(ctx.params["sync_batch_mib"]),
            mib_per_second=float(ctx.params["sync_mib_per_second"]),
        )

    make_syncer(request(0))  # checks what was asked for
    LOCAL.mkdir(staged.folder)
    target = open_target(staged.store)
    target.probe()
    place = StagedRank(staging=staged.staging, run_id=staged.run_id, node_id=staged.node_id, rank=0)
    Ownership(place, target, throttle=Throttle(None)).token(own_identity())
    publisher = NodePublisher(
        staged.folder,
        lambda rank: make_syncer(request(rank)),
        node_id=staged.node_id,
        interval_seconds=float(ctx.params["sync_interval"]),
    )
    publisher.first = lambda syncer: publish_node(syncer, request(0))
    return publisher


def _finish(output: Path, staged: Staged, publisher: NodePublisher) -> None:
    """Publish the rest, say what was published, and keep in the run's own envelope what was not."""
    from paritrace.runs.staged import NOT_PUBLISHED, TROUBLE, note_staged

    ended = publisher.final()
    failed = {rank: error for rank, error in ended.items() if isinstance(error, ParitraceError)}
    reports = [report for report in ended.values() if not isinstance(report, ParitraceError)]
    _say_published(staged, reports)
    facts: dict[str, str] = {}
    for rank, error in failed.items():
        note(f"{error.outcome.value}: rank {rank} is not published to the end: {error.message} [{error.code}]")
        note(f"    fix: {error.fix}; then {_again(staged, rank)}")
    if failed:
        facts[TROUBLE] = "; ".join(f"staging_failed: rank {rank}: {error.code}" for rank, error in failed.items())
    waiting = sum(report.waiting_bytes for report in reports)
    if waiting:
        facts[NOT_PUBLISHED] = str(waiting)
    if facts:
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
