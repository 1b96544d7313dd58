"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from paritrace.cli.invocation import Invocation

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


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
