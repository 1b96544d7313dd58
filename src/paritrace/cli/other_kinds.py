"""Options of `paritrace compare` where it is given what is no run: attempts, traces, sessions (AT-22, IN-18, SE-15)."""

from collections.abc import Callable, Sequence

import click
from click.core import ParameterSource

from paritrace.cli.report_options import Output
from paritrace.errors import RequestError

SHARED = frozenset({"base", "cand", "output", "formats", "exit_code", "exit_zero", "as_json", "debug"})
"""Parameters of `compare` that mean the same for all kinds; every other one speaks of calls and tensors."""


def require_only(
    context: click.Context, refusal: Callable[[str], RequestError], *, also: frozenset[str] = frozenset()
) -> None:
    """Refuse options that mean nothing for another kind, by an error made of their names; `also`: those that do.

    Raises:
        RequestError: Refused: as `refusal` says.
    """
    given = [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name not in SHARED | also
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise refusal(", ".join(given))


def form_of(output: Output, formats: Sequence[str], /, *, what: str) -> str | None:
    """Return the one format that was asked for; None: as the suffix says, else text.

    Raises:
        RequestError: Refused, `no_such_format`.
    """
    wanted = ("json",) if output.as_json else output.files
    if len(wanted) > 1 or not set(wanted) <= set(formats) or output.to_github:
        raise RequestError(
            f"{what} in one of {', '.join(formats)}",
            code="no_such_format",
            fix="give one --format, and with -o the file's name",
        )
    return wanted[0] if wanted else None


def form_or_suffix(output: Output, formats: Sequence[str], /, *, what: str) -> str:
    """Return the one format that was asked for, else JSON for a file called `.json`, else text; raises as `form_of`."""
    by_suffix = "json" if output.path is not None and output.path.suffix.lower() == ".json" else "text"
    return form_of(output, formats, what=what) or by_suffix
