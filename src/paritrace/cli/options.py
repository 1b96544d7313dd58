"""What the options of all commands have in common: their names in files and variables, and `--json`."""

from collections.abc import Callable
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


def _remember_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        ctx.ensure_object(Invocation).json = True
    return value
