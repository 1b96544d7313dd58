"""What the options of all commands have in common: their names in files and variables, and `--json`."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from paritrace.cli.invocation import Invocation
from paritrace.cli.output import note

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

A_YEAR_SECONDS = (
    366 * 86_400
)  # the longest time that an option takes: no timer of the system knows more than some years

OF_ONE_CALL = frozenset({"help", "debug"})  # never set by a file or a variable of a command


class FiniteRange(click.FloatRange):
    """A range of numbers, NaN and infinity refused: of NaN click asks whether it is too small or too large."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


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


def json_lines_option(decorated: Decorated) -> Decorated:
    """`--json-lines`, passed on as `as_lines`: one document a line on stdout, while the command goes on (SU-4)."""
    return click.option(
        "--json-lines",
        "as_lines",
        is_flag=True,
        help="Print a JSON document on stdout for each thing that happens, a line each.",
    )(decorated)


def scratch_option(decorated: Decorated) -> Decorated:
    """`--scratch` and `--keep-restored`: where a command makes its folders, and whether a store's stays (ST-25)."""
    decorated = click.option(
        "--keep-restored",
        is_flag=True,
        callback=_keep_restored,
        expose_value=False,
        help="Keep the folder that a store is restored into, and use it again while the store is as it was.",
    )(decorated)
    return click.option(
        "--scratch",
        type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
        callback=_use_scratch,
        expose_value=False,
        metavar="DIR",
        help="Unpack archives and stores in a private folder of DIR, removed at the end [default: TMPDIR].",
    )(decorated)


def _keep_restored(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from paritrace.runs.keeping_restored import keep_restored

    kept = ctx.with_resource(keep_restored())
    ctx.call_on_close(lambda: _tell(kept))


def _tell(kept: list[Path]) -> None:
    for place in dict.fromkeys(kept):
        note(f"restored, and kept: {place}")


def _use_scratch(_ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        tempfile.tempdir = str(value.absolute())


def _remember_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        ctx.ensure_object(Invocation).json = True
    return value
