"""`paritrace run --launcher`: starts the launcher with `-m paritrace run` as what it runs on each rank (CA-1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import click
from click.core import ParameterSource

from paritrace.cli.output import note

STORE_OPTIONS = frozenset(
    {
        "store",
        "staging",
        "node_id",
        "sync_interval",
        "sync_batch_mib",
        "sync_mib_per_second",
        "run_id",
        "staged_in",
    }
)
NOT_PASSED_ON = frozenset(
    {"launcher", "launched_by", "local_rank_argument", "module", *STORE_OPTIONS}
)  # those the inner command has from us


def launch(ctx: click.Context, text: str, *, capture: bool, staged: tuple[str, ...] = ()) -> int:
    """Run the launcher in our place and return its exit status; without capture it starts the bare workload.

    `staged`: options that tell the ranks where they write to.

    Raises:
        RequestError: Refused: `bad_launcher`, `no_launcher`.
    """
    from paritrace.process.launchers import Workload, launcher_command

    name, *arguments = cast(tuple[str, ...], ctx.params["workload"])
    workload = Workload(name, tuple(arguments), bool(ctx.params["module"]))
    launcher = launcher_command(text, python=sys.executable)
    options = (*options_of(ctx, without=NOT_PASSED_ON), f"--launched-by={text}", *staged)
    command = launcher.captured(workload, options) if capture else launcher.of(workload)
    if not capture or _taken(Path(ctx.params["output"])):
        from paritrace.process.foreground import run_in_our_place

        return run_in_our_place(command, environment=os.environ)
    return _recorded(command, Path(ctx.params["output"]))


def _taken(output: Path) -> bool:
    """Whether the ranks will be refused, so that nothing of ours is written beside another start's evidence."""
    from paritrace.runs.recorded_launch import is_over

    return is_over(output)


def _recorded(command: tuple[str, ...], output: Path) -> int:
    """Run it in our place, with a record of its end and of the ends of its ranks in the run directory."""
    from paritrace.runs.recorded_launch import record_launch

    done = record_launch(command, output)
    if done.record.trouble is not None:
        note(f"{done.record.trouble.outcome.value}: {done.record.trouble.message} [{done.record.trouble.code}]")
        note(f"    fix: {done.record.trouble.fix}; the launcher was not disturbed, its run record is incomplete")
    assert done.status is not None
    return done.status


def options_of(ctx: click.Context, *, without: frozenset[str]) -> Iterator[str]:
    """The options of this command line, each as one word; those of variables and files every rank reads itself."""
    for parameter in ctx.command.params:
        key = parameter.name or ""
        given = ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE
        if given and isinstance(parameter, click.Option) and parameter.expose_value and key not in without:
            yield from _words(parameter, ctx.params[key])


def _words(option: click.Option, value: object) -> Iterator[str]:
    name = max(option.opts, key=len)
    if option.is_flag:
        yield name if value else max(option.secondary_opts, key=len)
        return
    values = cast(tuple[object, ...], value) if option.multiple else (value,)
    yield from (f"{name}={one}" for one in values)
