"""`paritrace session`: a resident multi-rank workload, driven from any terminal (SE-1 to SE-37)."""

from pathlib import Path
from typing import Any

import click

from paritrace.cli.options import json_lines_option, json_option
from paritrace.cli.output import ExitStatus, note, write_json, write_json_line, write_text
from paritrace.cli.session_chaos import chaos
from paritrace.cli.session_options import Commanding, command_options, directory_argument, object_of, values_of
from paritrace.cli.session_start import start

_SET = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A value; JSON, or else a text.")
_INPUTS = click.option("--inputs", metavar="JSON", help="A reference to inputs, of the workload's kind; or @FILE.")
_TOLERATE = click.option("--tolerate-unknown", is_flag=True, help="Drop and name values that it does not know.")


@click.group()
def session() -> None:
    """Drive a resident workload: every command takes effect on every rank, at one step, or on none.

    Exit status of a command: 0 applied; 2 refused, cancelled, failed or unknown, with all reasons of all ranks.
    """


session.add_command(start)
session.add_command(chaos)


@session.command()
@directory_argument
@click.argument("steps", type=click.IntRange(1))
@click.option("--schedule", metavar="JSON", help="Values over the steps of this run only; or @FILE.")
@click.option("--no-autosave", is_flag=True, help="Do not save when the run pauses.")
@click.option("--preview-every", type=click.IntRange(1), metavar="N", help="Render a preview every N steps.")
@click.option("--wait", is_flag=True, help="Return once the run has ended, was stopped or has failed.")
@command_options
def run(directory: Path, steps: int, schedule: str | None, no_autosave: bool, wait: bool, **given: Any) -> int:
    """Take STEPS steps from where all ranks are; returns once they are admitted."""
    from paritrace.session.commands import Kind

    body: dict[str, Any] = {"steps": steps, "autosave": not no_autosave}
    preview_every = given.pop("preview_every")
    if schedule is not None:
        body["schedule"] = object_of(schedule, what="--schedule")
    if preview_every is not None:
        body["preview_every"] = preview_every
    return Commanding(directory, given).ask(Kind.RUN, body, wait=wait)


@session.command()
@directory_argument
@command_options
def stop(directory: Path, **given: Any) -> int:
    """Park all ranks at one agreed step; done once their device queues are drained."""
    from paritrace.session.commands import Kind

    return Commanding(directory, given).ask(Kind.STOP, {})


@session.command()
@directory_argument
@_SET
@_INPUTS
@_TOLERATE
@command_options
def configure(
    directory: Path, settings: tuple[str, ...], inputs: str | None, tolerate_unknown: bool, **given: Any
) -> int:
    """Change values of the configuration, inputs, or both, at an agreed step."""
    from paritrace.session.commands import Kind

    return Commanding(directory, given).ask(Kind.CONFIGURE, _changes(settings, inputs, tolerate_unknown))


@session.command()
@directory_argument
@click.option("--name", metavar="NAME", help="Its name within the session [default: made from the step].")
@command_options
def save(directory: Path, name: str | None, **given: Any) -> int:
    """Save a checkpoint of all ranks, at an agreed step."""
    from paritrace.session.commands import Kind

    return Commanding(directory, given).ask(Kind.SAVE, {} if name is None else {"name": name})


@session.command()
@directory_argument
@click.argument("checkpoint")
@click.option("--rebuild", is_flag=True, help="The way out of an error: new ranks, in a new generation.")
@_TOLERATE
@command_options
def load(directory: Path, checkpoint: str, rebuild: bool, tolerate_unknown: bool, **given: Any) -> int:
    """Load CHECKPOINT, a name within the session or `latest`, on every rank or on none."""
    from paritrace.session.commands import Kind

    body: dict[str, Any] = {"checkpoint": checkpoint, "rebuild": rebuild, "tolerate_unknown": tolerate_unknown}
    return Commanding(directory, given).ask(Kind.LOAD, body)


@session.command()
@directory_argument
@click.argument("reference", metavar="JSON")
@command_options
def inputs(directory: Path, reference: str, **given: Any) -> int:
    """Prepare the inputs that JSON (or @FILE) refers to while steps go on, and take them at an agreed step."""
    from paritrace.session.commands import Kind

    return Commanding(directory, given).ask(Kind.INPUTS, {"reference": object_of(reference, what="JSON")})


@session.command()
@directory_argument
@click.option("--option", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the workload's preview.")
@click.option(
    "--rank", type=click.IntRange(0), metavar="R", help="Of this rank alone, not of every one that offers it."
)
@command_options
def preview(directory: Path, settings: tuple[str, ...], rank: int | None, **given: Any) -> int:
    """Have the ranks that offer one (rank 0 unless the workload says more) render a preview at an agreed step."""
    from paritrace.session.commands import Kind

    of_rank = {} if rank is None else {"rank": rank}
    return Commanding(directory, given).ask(Kind.PREVIEW, {"options": values_of(settings), **of_rank})


@session.command()
@directory_argument
@click.argument("steps", type=click.IntRange(1))
@click.option("--level", multiple=True, default=["module"], help="As of `paritrace run`, repeatable [default: module].")
@click.option("--select", multiple=True, metavar="P", help="Record only these: patterns as for `paritrace run`.")
@click.option("--statistics", is_flag=True, help="Moments and counts at level op too.")
@click.option("--name", metavar="NAME", help="Its name within the session's captures.")
@command_options
def capture(
    directory: Path,
    steps: int,
    level: tuple[str, ...],
    select: tuple[str, ...],
    statistics: bool,
    name: str | None,
    **given: Any,
) -> int:
    """Capture the next STEPS steps into a run directory of the session."""
    from paritrace.session.commands import Kind

    body: dict[str, Any] = {"steps": steps, "level": level, "select": select, "statistics": statistics}
    return Commanding(directory, given).ask(Kind.CAPTURE, body if name is None else body | {"name": name})


@session.command()
@directory_argument
@_SET
@_INPUTS
@_TOLERATE
@command_options
def rebuild(
    directory: Path, settings: tuple[str, ...], inputs: str | None, tolerate_unknown: bool, **given: Any
) -> int:
    """Make device state anew; out of an error, with new ranks in a new generation.

    Values given with --set change the last request; the rest of it holds.
    """
    from paritrace.session.commands import Kind

    body = _changes(settings, inputs, tolerate_unknown)
    if not settings:
        body.pop("values")
    return Commanding(directory, given).ask(Kind.REBUILD, body)


@session.command()
@directory_argument
@click.option("--now", is_flag=True, help="Wait for nothing under way: ranks that do not end by themselves are killed.")
@command_options
def close(directory: Path, now: bool, **given: Any) -> int:
    """Close the workload on every rank, then the session; the directory stays.

    A command and a step under way are waited for, up to the bounds `park` and `close`. With --now they are not: a
    report says what each rank was at, and all are gone within 5 s, also one that is stopped or stuck in native code.
    """
    from paritrace.session.commands import Kind

    return Commanding(directory, given).ask(Kind.CLOSE, {"now": True} if now else {})


@session.command()
@directory_argument
@click.option("--bounds", is_flag=True, help="Show every wait of the session, with its reason.")
@json_option
def status(directory: Path, bounds: bool, as_json: bool) -> int:
    """Show the session at this moment. Exit status: 0; 2 where it is in error, or nobody answers."""
    from paritrace.session.client import Client
    from paritrace.session.states import RankState
    from paritrace.session.words import bounds_words, status_words

    with Client(directory) as asked:
        if bounds:
            table = asked.bounds()
            write_json(table) if as_json else write_text(bounds_words(table.bounds))
            return ExitStatus.DONE
        found = asked.status()
    write_json(found) if as_json else write_text(status_words(found))
    return ExitStatus.TROUBLE if found.state is RankState.ERROR else ExitStatus.DONE


@session.command()
@directory_argument
@json_option
def stacks(directory: Path, as_json: bool) -> int:
    """Show where every rank of this machine is: the stacks of all its threads, also in native code.

    Exit status: 0; 2 where a rank gave none within a second: it is stopped, has ended, or runs elsewhere.
    """
    from paritrace.session.client import Client

    with Client(directory) as asked:
        found, silent = asked.stacks(), {view.rank for view in asked.status().ranks}
    if as_json:
        write_json({str(rank): text for rank, text in found.items()})
    else:
        write_text("\n".join(f"rank {rank}\n{text}" for rank, text in found.items()))
    silent -= found.keys()
    if silent:
        note(f"no stacks of ranks {', '.join(map(str, sorted(silent)))}")
    return ExitStatus.TROUBLE if silent else ExitStatus.DONE


@session.command()
@directory_argument
@click.option(
    "--cursor", type=click.IntRange(0), default=0, metavar="N", help="Those after N [default: all there are]."
)
@click.option("--follow", is_flag=True, help="Go on as they happen, until interrupted or the session is over.")
@json_lines_option
def events(directory: Path, cursor: int, follow: bool, as_lines: bool) -> int:
    """Show what happened last, from the session's ring of events; the journal has everything."""
    from paritrace.session.client import Client
    from paritrace.session.words import event_words

    with Client(directory) as asked:
        found = asked.events(cursor)
        while True:
            if found.lost:
                note(f"{found.lost} events had left the ring before they were asked for")
            for event in found.events:
                write_json_line(event) if as_lines else write_text(event_words(event))
            if not follow and not found.events:
                return ExitStatus.DONE
            found = asked.events(found.cursor, wait_seconds=30.0 if follow else 0.0)


@session.command()
@directory_argument
@click.option("--revision", type=click.IntRange(0), metavar="R", help="An earlier one [default: the present one].")
@json_option
def config(directory: Path, revision: int | None, as_json: bool) -> int:
    """Show the configuration: each value requested, applied, its default, limits and source."""
    from paritrace.session.client import Client
    from paritrace.session.words import config_words

    with Client(directory) as asked:
        found = asked.config(revision)
    write_json(found) if as_json else write_text(config_words(found))
    return ExitStatus.DONE


@session.command()
@directory_argument
@json_lines_option
def journal(directory: Path, as_lines: bool) -> int:
    """Show the journal; read from the directory, so that it works when the coordinator is gone, too."""
    from paritrace.session.opening import read_journal, read_session
    from paritrace.session.words import line_words

    read_session(directory)
    found = read_journal(directory)
    for line in found.lines:
        write_json_line(line) if as_lines else write_text(line_words(line))
    for torn in found.torn:
        note(f"{torn.num_bytes} bytes at offset {torn.offset} are no line")
    return ExitStatus.UNDETERMINED if found.torn else ExitStatus.DONE


@session.command()
@directory_argument
@json_option
def metrics(directory: Path, as_json: bool) -> int:
    """Show the samples of metrics: about one a second, of rank 0; read from the directory, as the journal is."""
    from paritrace.session.client import Client
    from paritrace.session.words import kept_words, sample_words

    with Client(directory) as asked:
        found = asked.metrics()
    if as_json:
        write_json(found)
        return ExitStatus.DONE
    for sample in found.samples:
        write_text(sample_words(sample))
    note(kept_words(found))
    return ExitStatus.DONE


@session.command()
@directory_argument
@click.argument("command_id", metavar="ID")
@json_option
def reconcile(directory: Path, command_id: str, as_json: bool) -> int:
    """Say how the command ID stands: also after a timeout. Exit status: 0 applied; 2 otherwise; 3 not known yet."""
    from paritrace.session.client import Client

    with Client(directory) as asked:
        told = asked.reconcile(command_id)
    if told.reply is None:
        write_json(told) if as_json else write_text(f"{command_id}: no result yet")
        return ExitStatus.UNDETERMINED
    return Commanding(directory, {"as_json": as_json}).tell(told.reply)


def _changes(settings: tuple[str, ...], inputs: str | None, tolerate_unknown: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"values": values_of(settings)}
    if inputs is not None:
        body["inputs"] = object_of(inputs, what="--inputs")
    return body | ({"tolerate_unknown": True} if tolerate_unknown else {})
