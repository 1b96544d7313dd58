"""`python -m paritrace.automation` and `paritrace-tools`: one action, one JSON document (AU-1, AU-2)."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from paritrace import __version__
from paritrace.automation.protocol.table import ACTIONS, load_action

PROGRAM = "paritrace-tools"
READER_GONE = 141  # whoever read the document went away, as a shell reports it


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("action", type=click.Choice(list(ACTIONS)), metavar="ACTION")
@click.option("--request", type=click.Path(path_type=Path), metavar="FILE", help="The request, a JSON document.")
@click.option("--functions", is_flag=True, help="Of capabilities: every action as a function schema, nothing else.")
@click.option(
    "--schemas", is_flag=True, help="Of capabilities: the JSON Schema of every request and result, nothing else."
)
@click.option("--debug", is_flag=True, help="Show our traceback on standard error.")
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM)
def tools(action: str, request: Path | None, functions: bool, schemas: bool, debug: bool) -> None:
    """Carry out one ACTION and print one JSON document; the action `capabilities` names them all.

    Actions that run a workload execute its code with your permissions: this is no sandbox, and for trusted local
    operators only. Exit status 0 with `"ok": true`, whatever was found; 2 with `"ok": false`.
    """
    if (functions or schemas) and (action != "capabilities" or request is not None or (functions and schemas)):
        raise click.UsageError("--functions and --schemas each go with capabilities alone")
    answer = _own_stdout()
    signal.signal(signal.SIGTERM, _interrupt)
    from paritrace.automation.protocol.serving import serve, status_of

    if functions:
        document = functions_document()
    elif schemas:
        document = schemas_document()
    else:
        document = serve(load_action(action), request, debug=debug)
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2)
    try:
        with os.fdopen(answer, "w", encoding="ascii") as stdout:
            stdout.write(text + "\n")
    except BrokenPipeError:
        sys.exit(READER_GONE)
    sys.exit(status_of(document))


def functions_document() -> dict[str, object]:
    """Return every action as a function schema, in the wrapper (AU-14)."""
    from paritrace.automation.protocol.schemas import function_schema
    from paritrace.automation.protocol.serving import success
    from paritrace.automation.protocol.table import all_actions

    return success({"functions": [function_schema(action) for action in all_actions()]})


def schemas_document() -> dict[str, object]:
    """Return every published schema by its file name, in the wrapper (AU-1)."""
    from paritrace.automation.protocol.schemas import published
    from paritrace.automation.protocol.serving import success
    from paritrace.automation.protocol.table import all_actions

    return success({"schemas": published(all_actions())})


def _own_stdout() -> int:
    """Keep standard output for the one document: whatever else writes to it, in C too, goes to standard error."""
    sys.stdout.flush()
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Run one command line and end the process with the status of the protocol."""
    tools.main(prog_name=PROGRAM)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
