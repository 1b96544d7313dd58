"""What the options of all commands have in common: their names in files and variables, and `--json`."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from paritrace.cli.invocation import Invocation

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

OF_ONE_CALL = frozenset({"help", "debug"})  # never set by a file or a variable of a command


def options_by_key(command: click.Command) -> dict[str, click.Option]:
    """The options of a command that a file or the environment may set, by their key: the long name without dashes."""
    named = {_key(option): option for option in command.params if isinstance(option, click.Option)}
    return {key: option for key, option in named.items() if key not in OF_ONE_CALL}


def _key(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


def json_option(decorated: Decorated) -> Decorated:
    """`--json`, passed on as `as_json`: one document on stdout, everything else on stderr, errors too (SU-4)."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_remember_json,
        help="Print one JSON document on stdout; everything else goes to stderr.",
    )(decorated)


def scratch_option(decorated: Decorated) -> Decorated:
    """`--scratch`: where a command makes its private folders; nothing is passed on (ST-25)."""
    return click.option(
        "--scratch",
        type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
        callback=_use_scratch,
        expose_value=False,
        metavar="DIR",
        help="Unpack archives and stores in a private folder of DIR, removed at the end [default: TMPDIR].",
    )(decorated)


def _use_scratch(_ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        tempfile.tempdir = str(value.absolute())


def _remember_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        ctx.ensure_object(Invocation).json = True
    return value
