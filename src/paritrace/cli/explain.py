"""`paritrace explain` and `paritrace why-not`: the evidence behind a line, the reason for an unpaired call (P9)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes, write_text
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.reports.kept_result import KeptResult


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="[RESULT] ID")
@json_option
def explain(arguments: tuple[str, ...], as_json: bool) -> None:
    """List the files, journal lines and record ids behind ID.

    ID is a label of the first screen (F1, ladder, not_seen), a rung (ladder.forward), a figure (counts.paired,
    undetermined.no_anchor) or a call (baseline:123). RESULT is the folder of a comparison, or a run that was its
    candidate; left out, it is the last comparison made of a run in this folder.
    """
    from paritrace.files import LOCAL
    from paritrace.reports import explanation
    from paritrace.reports.documents import encoded
    from paritrace.reports.harmless import harmless

    result, identity = result_and_id(arguments)
    found = explanation.explain(result, identity, files=LOCAL)
    if as_json:
        write_json_bytes(encoded(found))
    else:
        write_text("\n".join(harmless(line) for line in explanation.as_text(found)))


@click.command("why-not")
@click.argument("arguments", nargs=-1, required=True, metavar="[RESULT] ID")
@json_option
def why_not(arguments: tuple[str, ...], as_json: bool) -> None:
    """Say why a call has no partner: its key, the calls of that key on the other side, the pairs around it.

    ID is a call such as candidate:213. RESULT may be left out as with `paritrace explain`.
    """
    from paritrace.files import LOCAL
    from paritrace.reports import why_not as answers
    from paritrace.reports.calls_table import CallsTable
    from paritrace.reports.documents import encoded
    from paritrace.reports.harmless import harmless
    from paritrace.reports.kept_result import required_calls_path

    result, identity = result_and_id(arguments)
    table = CallsTable(required_calls_path(result, files=LOCAL))
    found = answers.why_not(table, answers.find_call(table, identity))
    if as_json:
        write_json_bytes(encoded(found))
    else:
        write_text("\n".join(harmless(line) for line in answers.as_text(found)))


def result_and_id(arguments: tuple[str, ...]) -> "tuple[KeptResult, str]":
    """The result and the id that `[RESULT] ID` names; without RESULT, the last comparison made here."""
    from paritrace.files import LOCAL
    from paritrace.reports.kept_result import last_result, open_result

    match arguments:
        case (identity,):
            result = last_result(Path.cwd(), files=LOCAL)
            note(f"result: {result.directory}")
            return result, identity
        case (place, identity):
            return open_result(Path(place), files=LOCAL), identity
        case _:
            raise RequestError(f"{len(arguments)} arguments were given", code="usage", fix="give ID, or RESULT and ID")
