"""`-o PATH` and `--format` of the commands that write results (SU-4)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.reports.formats import FORMATS, GITHUB, NAMES, format_of, suffixes

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Output(Struct, frozen=True):
    """Where results go. `formats` empty: all of them in a folder, text on stdout."""

    path: Path | None
    formats: tuple[str, ...]
    as_json: bool

    @property
    def files(self) -> tuple[str, ...]:
        """The formats that are files of ours."""
        return tuple(name for name in self.formats if name != GITHUB)

    @property
    def to_github(self) -> bool:
        """Whether GitHub was asked for by name."""
        return GITHUB in self.formats


def report_options(decorated: Decorated) -> Decorated:
    """`-o PATH`, passed on as `output`, and `--format`, as `formats`."""
    for option in (
        click.option("--format", "formats", multiple=True, type=click.Choice(NAMES), help="Only these; repeatable."),
        click.option(
            "-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Folder for everything, or a file."
        ),
    ):
        decorated = option(decorated)
    return decorated


def require_a_place(output: Output) -> None:
    """Refuse before anything is read what could not be delivered.

    Raises:
        RequestError: Refused: `no_place_for_format`, `no_such_format`.
    """
    files = output.files
    if output.path is None and (len(files) > 1 or any(FORMATS[name].binary for name in files)):
        raise RequestError(
            f"--format {' --format '.join(files)} needs a place",
            code="no_place_for_format",
            fix="name a folder or file with -o",
        )
    if output.path is not None and not files and _is_unknown(output.path):
        raise RequestError(
            f"no format is known by the name {output.path.name}",
            code="no_such_format",
            fix=f"name a file that ends in {suffixes()}, or a folder (one that is there, or a name without a suffix)",
        )


def one_format(output: Output) -> str | None:
    """Return the format of the file that `-o` names, None when it names a folder."""
    if output.path is None or output.path.is_dir() or len(output.files) > 1:
        return None
    if output.files:
        return output.files[0] if output.path.suffix else None
    form = format_of(output.path)
    return None if form is None else form.name


def _is_unknown(path: Path) -> bool:
    return bool(path.suffix) and not path.is_dir() and format_of(path) is None
