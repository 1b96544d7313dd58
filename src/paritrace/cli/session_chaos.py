"""`paritrace session chaos`: the user's own workload is hurt on purpose, and what was promised is measured (SE-19)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import ExitStatus, note, write_json, write_text
from paritrace.cli.session_options import object_of, values_of
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.session.chaos.injuries import Rehearsal

INJURIES = ("stops", "kill", "kill_two", "freeze", "kill_in_load", "coordinator")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.argument("workload", metavar="MODULE:CLASS")
@click.option("--ranks", type=click.IntRange(1), default=2, show_default=True, help="How many ranks.")
@click.option("--arguments", metavar="JSON", help="What the class is made with; or @FILE.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A value of the configuration.")
@click.option("--bound", "bounds", multiple=True, metavar="NAME=S", help="Set a wait of the sessions.")
@click.option(
    "--injury",
    "injuries",
    multiple=True,
    type=click.Choice(INJURIES),
    help="Rehearse this one; repeatable [default: all].",
)
@click.option("--stops", type=click.IntRange(1), default=100, show_default=True, help="How many stops of `stops`.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the delays.")
@json_option
def chaos(folder: Path, workload: str, as_json: bool, **given: Any) -> int:
    """Hurt MODULE:CLASS in sessions of its own below FOLDER, and say by when what was promised was kept.

    Each injury has a session of its own, on this machine: ranks are killed, one or two at once, frozen, killed within a
    load; the coordinator is killed; steps are stopped again and again while words to one rank are held up. Bounds are
    those of `session status --bounds`.

    Exit status: 0 every promise was kept; 1 one was not; 2 it could not be rehearsed.
    """
    from paritrace.process.logged import ending_signals
    from paritrace.session.chaos.injuries import Injury
    from paritrace.session.chaos.rehearsing import Plan, rehearse
    from paritrace.session.coordinator.opening_request import Opening

    if folder.exists() and any(folder.iterdir()):
        raise RequestError(f"{folder} is not empty", code="already_there", fix="name a new folder")
    opening = Opening(
        directory=str(folder.absolute()),
        workload=workload,
        arguments=object_of(given["arguments"], what="--arguments") or {},
        ranks=given["ranks"],
        bounds=values_of(given["bounds"]),
        config=values_of(given["settings"]),
    )
    wanted: tuple[Injury, ...] = tuple(Injury(one) for one in given["injuries"])
    plan = Plan(opening, wanted, num_stops=given["stops"], seed=given["seed"])
    with ending_signals():  # a session that is being hurt ends with us
        found = rehearse(plan, folder, tell=note)
    write_json(found) if as_json else write_text(words_of(found))
    return ExitStatus.DONE if found.kept else ExitStatus.DIFFERENCE


def words_of(found: "Rehearsal", /) -> str:
    """The lines of the screen."""
    kept = sum(one.kept for one in found.outcomes)
    lines = [f"{found.workload}, {found.world_size} ranks: {kept} of {len(found.outcomes)} promises kept"]
    for one in found.outcomes:
        bound = "" if one.bound_seconds is None else f"  bound {one.bound_seconds:g} s"
        seconds = "" if one.seconds is None else f"{one.seconds:.3f} s"
        mark = "kept  " if one.kept else "BROKEN"
        lines.append(
            f"  {mark}  {one.injury.value:<12} {one.promise.value:<11} {seconds:>10}{bound}  {one.words}".rstrip()
        )
    lines += [f"  not rehearsed  {one.injury.value}: {one.why}" for one in found.skipped]
    return "\n".join(lines)
