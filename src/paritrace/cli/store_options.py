"""The options by which ranks are staged on their node and published to a store, of every command (ST-1, SU-18)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from paritrace.cli.options import FiniteRange

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)


class _Setting(NamedTuple):
    """A setting of publishing: its variable is the same for every command (ST-1)."""

    option: str
    variable: str
    metavar: str
    help: str
    type: Any = None
    default: float | None = None


STORE = _Setting("--store", "PARITRACE_STORE", "TARGET", "Where to publish: a directory, or s3://BUCKET/PREFIX.")
STAGING = _Setting(
    "--staging", "PARITRACE_STAGING_DIR", "DIR", "Staging directory, on a disk of this node; ranks write to it.", _PATH
)
NODE_ID = _Setting(
    "--node-id", "PARITRACE_NODE_ID", "ID", "This node's name, unique in the run and stable [default: the host's]."
)
RUN_ID = _Setting(
    "--run-id",
    "PARITRACE_RUN_ID",
    "ID",
    "The run's id, the same on every node [default: the launcher's, or a new one].",
)
INTERVAL = _Setting(
    "--sync-interval",
    "PARITRACE_SYNC_INTERVAL_SECONDS",
    "SECONDS",
    "A rank publishes this often.",
    FiniteRange(min=0.1, max=86_400.0),
    60.0,
)
BATCH = _Setting(
    "--sync-batch-mib",
    "PARITRACE_SYNC_BATCH_MIB",
    "MIB",
    "Payload of a bundle; one whole file may exceed it.",
    FiniteRange(min=0.001, max=4096.0),
    256.0,
)
PACE = _Setting(
    "--sync-mib-per-second",
    "PARITRACE_SYNC_MIB_PER_SECOND",
    "RATE",
    "Cap of this node's uploads, in MiB per second.",
    FiniteRange(min=0.001, max=100_000.0),
    32.0,
)
_OF_RUN = (STORE, STAGING, NODE_ID, RUN_ID, INTERVAL, BATCH, PACE)


def setting(one: _Setting, *names: str) -> Callable[[_Command], _Command]:
    """The option of a setting; `names`: the parameter's, where it is another than the option's."""
    return _option(one, names, variables=one.variable, help_text=one.help)


def store_options(command: _Command) -> _Command:
    """Add those of `paritrace run`; each has a variable of the command too."""
    command = click.option("--staged-in", type=_PATH, hidden=True, help="The node's ranks write below this.")(command)
    for one in reversed(_OF_RUN):
        own = f"PARITRACE_RUN_{one.option.removeprefix('--').replace('-', '_').upper()}"
        intro = "" if one is STORE else "With --store: "
        command = _option(one, (), variables=[one.variable, own], help_text=f"{intro}{_lowered(one.help, intro)}")(
            command
        )
    return command


def publishes(options: Mapping[str, object]) -> bool:
    """Whether this command is the one that publishes: a store is named, and its ranks are not staged by another."""
    apart = options["estimate"] or options["replay"] is not None  # nothing of these is kept
    return bool(options["store"]) and options["staged_in"] is None and not apart


def _option(
    one: _Setting, names: tuple[str, ...], *, variables: str | list[str], help_text: str
) -> Callable[[_Command], _Command]:
    return click.option(
        one.option,
        *names,
        envvar=variables,
        metavar=one.metavar,
        type=one.type,
        default=one.default,
        show_default=one.default is not None,
        help=help_text,
    )


def _lowered(text: str, intro: str) -> str:
    return text[0].lower() + text[1:] if intro else text
