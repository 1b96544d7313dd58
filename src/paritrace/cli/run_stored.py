"""`paritrace run --store`: the run as a child that writes to staging, published by this process meanwhile (ST-17)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from paritrace.cli.output import note
from paritrace.cli.run_launcher import NOT_PASSED_ON, launch, options_of
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.capture.publishing import StoreSettings
    from paritrace.runs.staged import Staged


def run_stored(ctx: click.Context, output: Path) -> int:
    """Run the workload, or its launcher, and publish what this node's ranks write; returns the workload's status.

    As the inner command of a launcher it runs one rank and publishes that one alone. Everything that can be refused is
    refused before the workload starts.

    Raises:
        RequestError: Refused: `store_with_draws`, `store_inside_launcher`, and as `Publishing` says.
        EvidenceError, HostError: as `Publishing.begin` says.
    """
    from paritrace.capture.publishing import Publishing, rank_here

    _require_one_run(ctx)
    rank = rank_here(os.environ)
    if rank is not None and ctx.params["launcher"]:
        raise RequestError(
            "--store with --launcher starts the ranks of a node, and this process is one rank of a job",
            code="store_inside_launcher",
            fix="leave --launcher out: each rank publishes itself; or start this command outside of the launcher",
        )
    publishing = Publishing(_settings(ctx), rank, say=note)
    publishing.begin(output, title=str(ctx.params["title"]))
    try:
        return _started(ctx, output, publishing.staged)
    finally:
        publishing.end()


def _settings(ctx: click.Context) -> StoreSettings:
    from paritrace.capture.publishing import StoreSettings

    asked = ctx.params
    return StoreSettings(
        store=str(asked["store"]),
        staging=None if asked["staging"] is None else Path(asked["staging"]),
        run_id=None if asked["run_id"] is None else str(asked["run_id"]),
        node_id=None if asked["node_id"] is None else str(asked["node_id"]),
        interval_seconds=float(asked["sync_interval"]),
        batch_mib=float(asked["sync_batch_mib"]),
        mib_per_second=float(asked["sync_mib_per_second"]),
    )


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
