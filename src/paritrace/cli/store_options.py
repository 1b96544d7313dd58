"""The options by which a run is staged on its node and published to a store (ST-1, SU-18)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def store_options(command: _Command) -> _Command:
    """Add them; each has a variable of its own, for launchers."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def publishes(options: Mapping[str, object]) -> bool:
    """Whether this command is the one that publishes: a store is named, and its ranks are not staged by another."""
    apart = options["estimate"] or options["replay"] is not None  # nothing of these is kept
    return bool(options["store"]) and options["staged_in"] is None and not apart


_OPTIONS = (
    click.option(
        "--store",
        envvar=["PARITRACE_STORE", "PARITRACE_RUN_STORE"],
        metavar="TARGET",
        help="Publish the run here while it goes on: a directory, or s3://BUCKET/PREFIX.",
    ),
    click.option(
        "--staging",
        envvar=["PARITRACE_STAGING_DIR", "PARITRACE_RUN_STAGING"],
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="With --store: a directory on a disk of this node, to which its ranks write.",
    ),
    click.option(
        "--node-id",
        envvar=["PARITRACE_NODE_ID", "PARITRACE_RUN_NODE_ID"],
        metavar="ID",
        help="With --store: this node's name, unique in the run and stable [default: the host's].",
    ),
    click.option(
        "--run-id",
        envvar=["PARITRACE_RUN_ID", "PARITRACE_RUN_RUN_ID"],
        metavar="ID",
        help="With --store: the run's id, the same on every node [default: a new one, for a single node].",
    ),
    click.option(
        "--sync-interval",
        envvar=["PARITRACE_SYNC_INTERVAL_SECONDS", "PARITRACE_RUN_SYNC_INTERVAL"],
        type=click.FloatRange(min=0.1, max=86_400.0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="With --store: a rank publishes this often.",
    ),
    click.option(
        "--sync-batch-mib",
        envvar=["PARITRACE_SYNC_BATCH_MIB", "PARITRACE_RUN_SYNC_BATCH_MIB"],
        type=click.FloatRange(min=0.001, max=4096.0),
        default=256.0,
        show_default=True,
        metavar="MIB",
        help="With --store: the most that is published at once.",
    ),
    click.option(
        "--sync-mib-per-second",
        envvar=["PARITRACE_SYNC_MIB_PER_SECOND", "PARITRACE_RUN_SYNC_MIB_PER_SECOND"],
        type=click.FloatRange(min=0.01, max=100_000.0),
        default=32.0,
        show_default=True,
        metavar="RATE",
        help="With --store: the pace of this node's uploads.",
    ),
    click.option(
        "--staged-in", type=click.Path(path_type=Path), hidden=True, help="The node's ranks write below this."
    ),
)
