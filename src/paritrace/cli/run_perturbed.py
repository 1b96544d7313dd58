"""`paritrace run --perturb K`: the run itself, then K perturbed draws of it beside it, one after the other (CP-10a)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import click

from paritrace.cli.output import note
from paritrace.cli.run_launcher import options_of
from paritrace.errors import RequestError

MIN_DRAWS = 8  # CP-10a: with fewer the printed rate, 1 / (draws + 1), says little
NOT_PASSED_ON = frozenset({"perturb", "of_draws", "output", "module", "dump", "golden", "dump_bytes"})


def run_with_draws(ctx: click.Context, num_draws: int, output: Path, *, capture: bool) -> int:
    """Run the workload once as it is and `num_draws` times perturbed; returns the status of the unperturbed run.

    A draw prints nothing of the workload on standard output. One that fails is said and left out of the envelope.

    Raises:
        RequestError: Refused: `bad_perturb`, `perturb_inside_launcher`.
    """
    from paritrace.process.foreground import run_in_our_place
    from paritrace.runs.draws import draw_path

    _require_outside(num_draws)
    workload = cast(tuple[str, ...], ctx.params["workload"])
    flag = ("--module",) if ctx.params["module"] else ()
    head = (sys.executable, "-m", "paritrace", "run", *options_of(ctx, without=NOT_PASSED_ON))
    head = (*head, f"--of-draws={num_draws}")
    status = run_in_our_place((*head, f"--output={output}", *flag, *workload), environment=os.environ)
    if status or not capture:
        return status
    made = 0
    for seed in range(1, num_draws + 1):
        own = (f"--output={draw_path(output, seed)}", f"--perturb-seed={seed}")
        ended = run_in_our_place((*head, *own, *flag, *workload), environment=os.environ, silent=True)
        made += ended == 0
        if ended:
            note(f"paritrace: perturbed run {seed} of {num_draws} ended with status {ended}; it is no draw")
        if ended in TOLD_TO_END:
            return ended
    note(f"paritrace: {made} of {num_draws} perturbed runs are beside it: `paritrace compare` judges by them")
    return status


TOLD_TO_END = frozenset({129, 130, 131, 143})  # by SIGHUP, SIGINT, SIGQUIT, SIGTERM: whoever told one draw means all


def _require_outside(num_draws: int) -> None:
    if num_draws < MIN_DRAWS:
        raise RequestError(
            f"--perturb {num_draws} makes no envelope: it takes {MIN_DRAWS} draws or more",
            code="bad_perturb",
            fix=f"give --perturb {MIN_DRAWS}",
        )
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import Launcher, launch_of

    if launch_of(os.environ, process=own_identity()).start.launcher is not Launcher.PROCESS:
        raise RequestError(
            "--perturb runs the whole job again and again, and this process is one rank of a job",
            code="perturb_inside_launcher",
            fix='start the launcher from it: paritrace run --perturb 8 --launcher "torchrun …" -o RUN train.py',
        )
