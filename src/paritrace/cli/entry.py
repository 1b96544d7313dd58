"""The command `paritrace`: one table of lazily loaded subcommands and the one place where exit statuses are decided."""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from paritrace import __version__
from paritrace.cli.invocation import Invocation
from paritrace.cli.options import options_by_key
from paritrace.cli.output import ExitStatus, flush, note, silence, write_error
from paritrace.cli.own_status import status_before_workload
from paritrace.cli.settings_places import NO_SETTINGS_FILE, here
from paritrace.errors import InternalError, Outcome, ParitraceError, RequestError

PROGRAM = "paritrace"


class Entry(NamedTuple):
    """A subcommand: `module:attribute` of its click command, and its line in `paritrace --help`."""

    target: str
    summary: str


COMMANDS = {
    "run": Entry("paritrace.cli.run:run", "Capture a training script into a run directory."),
    "record": Entry("paritrace.cli.record:record", "Run any command and record how it ended and what it used."),
    "check": Entry("paritrace.cli.check:check", "Check one run against itself."),
    "compare": Entry("paritrace.cli.compare:compare", "Compare two runs: where they part, and what is not known."),
    "narrow": Entry("paritrace.cli.narrow:narrow", "Capture two runs again until the call where they part stands."),
    "explain": Entry("paritrace.cli.explain:explain", "Show the evidence behind one line of a result."),
    "why-not": Entry("paritrace.cli.explain:why_not", "Say why a call has no partner."),
    "judge": Entry("paritrace.cli.judge:judge", "Compute a finding's call by both programs and in float64."),
    "isolate": Entry("paritrace.cli.isolate:isolate", "Replay every module of one run on the inputs of another."),
    "capsule": Entry("paritrace.cli.capsule:capsule", "Write a finding's call as a folder that runs by itself."),
    "align": Entry("paritrace.cli.align:align", "Apply a review of pairs to a kept comparison."),
    "propose-map": Entry("paritrace.cli.propose_map:propose_map", "Propose maps of names from sums of parameters."),
    "attempts": Entry("paritrace.cli.attempts:attempts", "Compare configurations by their attempts at tasks."),
    "infer": Entry("paritrace.cli.infer:infer", "Inference evidence: requests, iterations, device work, losses."),
    "export": Entry("paritrace.cli.export:export", "Write a run or a result as files for other programs."),
    "session": Entry("paritrace.cli.session:session", "Drive a resident workload of many ranks, on all or on none."),
    "view": Entry("paritrace.cli.view:view", "Show runs and comparisons in the browser, from this machine only."),
    "mcp": Entry("paritrace.cli.mcp:mcp", "Answer a coding agent's questions about runs, by MCP over stdio."),
    "demo": Entry("paritrace.cli.demo:demo", "Capture and compare two small trainings that differ by one mistake."),
    "runs": Entry("paritrace.cli.runs:runs", "List, show, verify, pack and remove runs."),
    "store": Entry("paritrace.cli.store:store", "Publish staged ranks, and restore and verify what was published."),
    "schema": Entry("paritrace.cli.schema:schema", "Print the JSON Schema of a format."),
    "doctor": Entry("paritrace.cli.doctor:doctor", "Say what this machine and this installation can do."),
    "config": Entry("paritrace.cli.config:config", "Show every setting with its value and where it comes from."),
    "completion": Entry("paritrace.cli.completion:completion", "Print the shell's completion script."),
}
READ_NO_SETTINGS = frozenset({"completion"})


class LazyGroup(click.Group):
    """The root group: a subcommand's module is imported when the subcommand is used, never for `--help`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(n, help=e.summary) for n, e in COMMANDS.items() if n.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def load_command(name: str) -> click.Command:
    """Import one subcommand of the table, named as the table names it, with what every command has."""
    entry = COMMANDS[name]
    module, _, attribute = entry.target.partition(":")
    command: click.Command = vars(import_module(module))[attribute]
    command.name, command.short_help = name, entry.summary
    _complete(command, prefix=f"{PROGRAM}_{name}")
    return command


def _complete(command: click.Command, *, prefix: str) -> None:
    """Give every command `--debug`, and every option its variable `PARITRACE_COMMAND_OPTION` unless it names one."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            _complete(child, prefix=f"{prefix}_{name}")
        return
    for key, option in options_by_key(command).items():
        if option.envvar is None:
            option.envvar = f"{prefix}_{key}".replace("-", "_").upper()
    if all(parameter.name != "debug" for parameter in command.params):
        command.params.append(_debug_option())


def _set_debug(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Invocation).debug = True


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"], is_flag=True, is_eager=True, expose_value=False, callback=_set_debug, help="Show our traceback."
    )


@click.group(
    cls=LazyGroup,
    params=[_debug_option()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM)
@click.pass_context
def paritrace(ctx: click.Context) -> None:
    """Where two machine-learning runs first part, by how much more than noise, and what could not be checked."""
    name = ctx.invoked_subcommand
    if name is not None and name not in READ_NO_SETTINGS:
        ctx.default_map = {name: _defaults_from_file(name)}


def _defaults_from_file(name: str) -> dict[str, object]:
    from paritrace.cli.settings_file import check_command_names, defaults_of, read_nearest, table_of

    if os.environ.get(NO_SETTINGS_FILE):
        return {}
    folder = here()
    if folder is None:
        return {}
    settings = read_nearest(folder)
    check_command_names(settings, known=COMMANDS)
    if name not in settings.tables:
        return {}
    return defaults_of(load_command(name), table_of(settings, name), path=settings.path)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its status; click's own mapping (everything is 1) is not used."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else list(arguments)))


def status_of(arguments: list[str]) -> int:
    """Run one command line and return the exit status SU-3 names; every error ends here, in words."""
    invocation = Invocation()
    try:
        status = _invoke(arguments, invocation)
        flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the top: whatever comes, a person gets a reason
        return status_after(error, invocation, words=arguments, asked_for_json=_asks_for_json(arguments))
    return status


def status_after(error: BaseException, invocation: Invocation, *, words: Sequence[str], asked_for_json: bool) -> int:
    """Tell an error that ended the command `words`, and return the exit status SU-3 names."""
    match error:
        case BrokenPipeError():
            silence()
            return ExitStatus.BROKEN_PIPE
        case Exception() if not isinstance(error, EOFError | click.Abort):
            return status_before_workload(_report(error, invocation, asked_for_json=asked_for_json), words)
        case _:
            note("interrupted")
            return ExitStatus.INTERRUPTED


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        paritrace.main(arguments, prog_name=PROGRAM)  # click answers the shell and ends the process
    try:
        with paritrace.make_context(PROGRAM, arguments, obj=invocation) as context:
            returned = paritrace.invoke(context)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    return returned if isinstance(returned, int) else ExitStatus.DONE


def _report(error: Exception, invocation: Invocation, *, asked_for_json: bool) -> int:
    known = as_paritrace_error(error)
    if invocation.debug or os.environ.get("PARITRACE_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(error)
    write_error(known, as_json=invocation.json or (asked_for_json and isinstance(error, click.UsageError)))
    return known.exit_status


def as_paritrace_error(error: Exception) -> ParitraceError:
    """Any exception as one of ours, so that it has a code, a kind and a mend."""
    match error:
        case ParitraceError():
            return error
        case click.ClickException():
            return RequestError(_one_line(error.format_message()), code="usage", fix=_usage_fix(error))
        case OSError():
            from paritrace.files.faults import host_error

            return host_error(error, str(error.filename or "a file or standard output"), "use", outcome=Outcome.FAILED)
        case _:
            return InternalError(
                f"a fault of paritrace itself: {type(error).__name__}: {_one_line(str(error))}",
                code="internal",
                fix="run the same command with --debug and report what it prints",
                outcome=Outcome.FAILED,
            )


def _usage_fix(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see `{context.command_path if context else PROGRAM} --help`"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _asks_for_json(arguments: list[str]) -> bool:
    """For an error found before options were read: `--json` stands among paritrace's own arguments."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own
