"""What a command leaves behind: its exit status, one JSON document on stdout, errors with their mend (SU-3 to SU-5)."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import TypeVar

import click

from paritrace.errors import ParitraceError

Document = TypeVar("Document")


class ExitStatus(IntEnum):
    """Exit statuses of every command but `run`, which returns the workload's own (SU-3)."""

    DONE = 0
    DIFFERENCE = 1
    TROUBLE = 2
    UNDETERMINED = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141  # the reader of our output went away: what a shell reports for any program ended by SIGPIPE


_PRECEDENCE = (ExitStatus.TROUBLE, ExitStatus.DIFFERENCE, ExitStatus.UNDETERMINED, ExitStatus.DONE)


def worst(*statuses: ExitStatus) -> ExitStatus:
    """The status that counts when several parts of one command each have one: 2 > 1 > 3 > 0."""
    return min(statuses, key=_PRECEDENCE.index, default=ExitStatus.DONE)


def write_json(document: object) -> None:
    """Print one JSON document on stdout; msgspec structs, enums and plain containers are taken.

    A float that is not finite has no JSON form: it must be a string or a gap by now, so it is an error here.
    """
    import msgspec  # a protocol call that only prints help never pays for it

    plain = msgspec.to_builtins(document, str_keys=True)
    click.echo(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2))


def write_json_line(document: object) -> None:
    """Print one JSON document of a stream as a line on stdout, at once; as `write_json` otherwise."""
    import msgspec

    plain = msgspec.to_builtins(document, str_keys=True)
    click.echo(json.dumps(plain, ensure_ascii=False, allow_nan=False))
    sys.stdout.flush()


def write_json_bytes(document: bytes) -> None:
    """Print a JSON document that is already encoded."""
    click.echo(document.rstrip(b"\n"))


def write_text(text: str) -> None:
    """Print text for a person on stdout."""
    click.echo(text)


def write_report(document: Document, screen: Callable[[Document], str], /, *, as_json: bool) -> None:
    """Print a document as JSON, or what a person sees of it; the screen is made only then."""
    if as_json:
        write_json(document)
    else:
        write_text(screen(document))


class Printed:
    """Stdout as a sink of a report."""

    def write(self, data: bytes, /) -> None:
        click.echo(data, nl=False)


def note(text: str) -> None:
    """Print a remark, progress or warning on stderr, so that stdout stays one document.

    Where stderr takes nothing (full, closed by its reader) it is not told, and nothing else changes.
    """
    try:
        click.echo(text, err=True)
    except OSError:
        silence(2)


def flush() -> None:
    """Hand on what was printed on stdout; one that was closed before we started (`>&-`) has nothing.

    Raises:
        OSError: it takes no more: full, or its reader went away.
    """
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  None where descriptor 1 is closed
        sys.stdout.flush()


def silence(descriptor: int = 1) -> None:
    """Print no more on a stdout (1) or stderr (2) that takes nothing.

    What the interpreter still holds of it is gone, so that its own flush at exit does not change the status to 120.
    """
    stream = sys.stdout if descriptor == 1 else sys.stderr
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_error(error: ParitraceError, *, as_json: bool) -> None:
    """One line what, one line how to mend it, on stderr; with `as_json` also the error document on stdout (SU-4).

    Where several things are wrong, each has a line of its own in between. A stdout that takes nothing gets nothing.
    """
    try:
        flush()
    except OSError:
        silence()
    note(f"{error.outcome.value}: {error.message} [{error.code}]")
    for detail in error.details:
        note(f"    - {detail}")
    note(f"    fix: {error.fix}")
    if not as_json:
        return
    try:
        write_json({"ok": False, "error": error_document(error)})
        flush()
    except OSError:
        silence()


def error_document(error: ParitraceError) -> dict[str, object]:
    """The `error` member of the document that replaces a result; `details` only where several things are wrong."""
    told: dict[str, object] = {
        "code": error.code,
        "kind": error.outcome.value,
        "message": error.message,
        "fix": error.fix,
    }
    details: dict[str, object] = {"details": list(error.details)} if error.details else {}
    return told | details
