"""What the commands of `paritrace session` have in common: the directory, values, fences, patience, dry runs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from paritrace.cli.options import A_YEAR_SECONDS, FiniteRange, json_option
from paritrace.cli.output import ExitStatus, write_json, write_text
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.session.client import Client, Options
    from paritrace.session.commands import Body, Kind, Reply

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

directory_argument = click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")


def command_options(decorated: Decorated) -> Decorated:
    """What every command of a session takes; passed on as `asked`."""
    for option in reversed(
        (
            click.option("--id", "command_id", metavar="ID", help="The command's own id; the same one is done once."),
            click.option("--expect-generation", type=click.IntRange(0), metavar="N", help="Cancel it in another one."),
            click.option("--expect-step", type=click.IntRange(0), metavar="N", help="Cancel it at another step."),
            click.option("--expect-revision", type=click.IntRange(0), metavar="N", help="Cancel it under another one."),
            click.option(
                "--timeout",
                type=FiniteRange(min=0, min_open=True, max=A_YEAR_SECONDS),
                metavar="S",
                help="Give up after S seconds: withdrawn if it waits still, else unknown [default: never].",
            ),
            click.option("--dry-run", is_flag=True, help="Only say what would become of it."),
            click.option("--lease", metavar="LEASE", help="The writer lease, where somebody holds it."),
            json_option,
        )
    ):
        decorated = option(decorated)
    return decorated


def values_of(settings: tuple[str, ...], /) -> dict[str, Any]:
    """Return `NAME=VALUE` pairs as values: VALUE is JSON, or else a text; `NaN` is no JSON.

    Raises:
        RequestError: Refused, `usage`.
    """
    from msgspec import json as msgspec_json

    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not name or not equals:
            raise RequestError(f"{setting!r} is not NAME=VALUE", code="usage", fix="write for example --set lr=0.001")
        try:
            found[name] = msgspec_json.decode(text)
        except ValueError:
            found[name] = text
    return found


def object_of(text: str | None, /, *, what: str) -> dict[str, Any] | None:
    """Return the JSON object of an option, or of the file that `@FILE` names.

    Raises:
        RequestError: Refused, `usage`.
        HostError: Refused: the file cannot be read.
    """
    from msgspec import json as msgspec_json

    if text is None:
        return None
    if text.startswith("@"):
        from paritrace.files import LOCAL

        text = LOCAL.read(Path(text[1:])).decode("utf-8", "replace")
    try:
        return msgspec_json.decode(text, type=dict[str, Any])
    except ValueError as error:
        raise RequestError(f"{what}: {error}", code="usage", fix="give a JSON object, or @FILE with one") from None


class Commanding:
    """One command from its options to its exit status."""

    def __init__(self, directory: Path, given: dict[str, Any]) -> None:
        self._directory = directory
        self._given = given

    def ask(self, kind: "Kind", body: "Body", *, wait: bool = False) -> ExitStatus:
        """Ask it, print what became of it, and return 0 where it was applied, else 2."""
        from paritrace.session.client import Client

        with Client(self._directory) as session:
            session.show_lease(self._given["lease"])
            if self._given["dry_run"]:
                return self._tried(session, kind, body)
            options = self._options()
            until = options.until
            reply = session.ask(kind, body, options)
            if wait:
                reply = session.waited(reply, until=until)
        return self.tell(reply)

    def tell(self, reply: "Reply") -> ExitStatus:
        """Print a reply, and return its exit status."""
        from paritrace.session.commands import Result
        from paritrace.session.words import reply_words

        if self._given["as_json"]:
            write_json(reply)
        else:
            write_text(reply_words(reply))
        return ExitStatus.DONE if reply.result is Result.APPLIED else ExitStatus.TROUBLE

    def _tried(self, session: "Client", kind: "Kind", body: "Body") -> ExitStatus:
        found = session.try_out(kind, body, self._options())
        if self._given["as_json"]:
            write_json(found)
        else:
            write_text("\n".join([f"{kind.value}: would {found.would}", *(f"    - {r.words}" for r in found.reasons)]))
        return ExitStatus.DONE if found.would in {"begin", "wait"} else ExitStatus.TROUBLE

    def _options(self) -> "Options":
        from paritrace.session.client import Options
        from paritrace.session.commands import Fences

        given = self._given
        fences = Fences(given["expect_generation"], given["expect_step"], given["expect_revision"])
        return Options(given["command_id"], fences, given["timeout"])
