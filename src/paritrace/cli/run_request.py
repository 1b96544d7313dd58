"""What `paritrace run` was asked for, as the record that the run keeps of it (CP-15)."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.run_launcher import STORE_OPTIONS, options_of

if TYPE_CHECKING:
    from paritrace.evidence.gaps import CaptureGap, Gap
    from paritrace.runs.request import RunRequest

KEPT = frozenset({"deterministic", "eager", "mesh", "no_sources", "no_diff", "no_argv"})
OURS = frozenset(
    {
        "output",
        "module",
        "launcher",
        "launched_by",
        "of_draws",
        "local_rank_argument",
        "perturb",
        "replay",
        *STORE_OPTIONS,
    }
)


def request_record(ctx: click.Context, workload: tuple[str, ...], *, root: Path, main: Path, argv: bool) -> RunRequest:
    """The request of this command line; `workload` as the user wrote it, `argv` false leaves its arguments out."""
    from paritrace.runs.request import FORMAT, VERSION, RunRequest

    return RunRequest(
        format=FORMAT,
        version=VERSION,
        name=workload[0],
        module=bool(ctx.params["module"]),
        arguments=_arguments(workload[1:], argv=argv),
        directory=str(Path.cwd()),
        python=sys.executable,
        root=str(root),
        main=str(main),
        launcher=_launcher(ctx.params["launched_by"], argv=argv),
        kept=tuple(_kept(ctx)),
        capture=tuple(options_of(ctx, without=OURS | KEPT)),
        num_draws=int(ctx.params["of_draws"] or 0),
    )


def _kept(ctx: click.Context) -> list[str]:
    """Whatever gave them: a variable or a settings file may be another one at the next start."""
    flags = [f"--{name.replace('_', '-')}" for name in sorted(KEPT - {"mesh"}) if ctx.params[name]]
    mesh = ctx.params["mesh"]
    return flags if mesh is None else [*flags, f"--mesh={mesh}"]


def _arguments(arguments: tuple[str, ...], *, argv: bool) -> tuple[str, ...] | Gap[CaptureGap]:
    from paritrace.capture.surroundings import masked
    from paritrace.evidence.gaps import CaptureGap, Gap

    if not argv and arguments:
        return Gap(CaptureGap.NOT_COLLECTED, "--no-argv")
    hidden = sum(one != other for one, other in zip(arguments, masked(arguments), strict=True))
    return Gap(CaptureGap.REDACTED, f"{hidden} masked") if hidden else arguments


def _launcher(text: str | None, *, argv: bool) -> str | Gap[CaptureGap]:
    from paritrace.capture.surroundings import masked
    from paritrace.evidence.gaps import CaptureGap, Gap
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import Launcher, launch_of
    from paritrace.runs.request import NO_LAUNCHER

    if text:
        words = tuple(shlex.split(text))
        if not argv:
            return Gap(CaptureGap.NOT_COLLECTED, "--no-argv")
        return Gap(CaptureGap.REDACTED, "masked") if masked(words) != words else text
    launch = launch_of(os.environ, process=own_identity())
    if launch.start.launcher is Launcher.PROCESS:
        return NO_LAUNCHER
    ranks = "1 rank" if launch.world_size == 1 else f"{launch.world_size} ranks"
    return Gap(CaptureGap.NOT_OBSERVED, f"{ranks}, started by {launch.start.launcher.value}")
