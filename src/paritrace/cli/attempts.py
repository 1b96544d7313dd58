"""`paritrace attempts`: what attempts at tasks used, what was judged, what is missing (AT-17)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from paritrace.cli.attempts_diverge import diverge
from paritrace.cli.attempts_import import import_results
from paritrace.cli.options import json_option
from paritrace.cli.output import ExitStatus, note, write_json_bytes, write_text
from paritrace.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from paritrace.attempts.gate import Gate
    from paritrace.attempts.loading import Loaded
    from paritrace.attempts.rate_card import RateCard
    from paritrace.attempts.result import AttemptsComparison, Summary
    from paritrace.correspondence.vocabulary import Verdict
    from paritrace.reports.attempts.directories import DirectoriesCompared
    from paritrace.reports.attempts.sections import Part

_PATH = click.Path(path_type=Path)
FORMATS = ("text", "json", "markdown", "html")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group()
def attempts() -> None:
    """Compare configurations by their attempts at tasks, with what is missing named."""


attempts.add_command(import_results, "import")
attempts.add_command(diverge, "diverge")


def _report_options(decorated: Decorated) -> Decorated:
    for option in (
        json_option,
        click.option("--require-complete", is_flag=True, help="Exit status 3 where evidence is incomplete."),
        click.option("--gate", type=_PATH, metavar="FILE", help="Judge by the rules in FILE (TOML)."),
        click.option("--rate-card", type=_PATH, metavar="FILE", help="Price usage again by the rate card FILE (TOML)."),
        click.option("--format", "form", type=click.Choice(FORMATS), help="Of the report [default: text]."),
        click.option("-o", "--output", type=_PATH, metavar="FILE", help="Write the report to FILE."),
    ):
        decorated = option(decorated)
    return decorated


@attempts.command()
@click.argument("manifest", type=_PATH)
@click.option("--details", is_flag=True, help="Every attempt and request too.")
@_report_options
def summarize(  # noqa: PLR0913  one parameter per option of the synopsis
    manifest: Path,
    details: bool,
    output: Path | None,
    form: str | None,
    rate_card: Path | None,
    gate: Path | None,
    require_complete: bool,
    as_json: bool,
) -> int:
    """Summarise the attempts in MANIFEST: coverage first, then outcomes, usage, cost and warnings.

    Exit status 0 when a report was made, 2 for an invalid manifest; with --require-complete 3 where evidence is
    incomplete; with --gate 1 where a rule fails and 3 where one is undetermined. Where the manifest declares a primary
    analysis, the look is recorded beside it (MANIFEST.looks.jsonl).
    """
    from paritrace.attempts.api import load, require_scipy, summarize
    from paritrace.reports.attempts.sections import parts_of_summary

    require_scipy()
    loaded = load(manifest)
    found = summarize(loaded, details=details, card=_card(rate_card), gate=_gate(gate))
    record(loaded)
    deliver(found, parts_of_summary(found), output=output, form="json" if as_json else form)
    return _status(found.verdict, complete=found.complete or not require_complete)


@attempts.command()
@click.argument("manifest", type=_PATH)
@click.option("--baseline", metavar="ID", help="The configuration to compare with [default: the primary analysis].")
@click.option("--candidate", metavar="ID", help="The configuration that is compared [default: all others].")
@_report_options
def compare(  # noqa: PLR0913  one parameter per option of the synopsis
    manifest: Path,
    baseline: str | None,
    candidate: str | None,
    output: Path | None,
    form: str | None,
    rate_card: Path | None,
    gate: Path | None,
    require_complete: bool,
    as_json: bool,
) -> int:
    """Compare configurations in MANIFEST on the tasks that they have in common, and say what the evidence supports.

    Without --baseline and --candidate: the primary analysis that the manifest declares, else every two of them. Such an
    analysis may claim as long as attempts are not added after a look that was not planned; looks are recorded beside
    the manifest (MANIFEST.looks.jsonl).
    """
    from paritrace.attempts.api import compare, load, require_scipy
    from paritrace.reports.attempts.sections import parts_of_comparison

    require_scipy()
    loaded = load(manifest)
    found = compare(loaded, baseline=baseline, candidate=candidate, card=_card(rate_card), gate=_gate(gate))
    record(loaded)
    deliver(found, parts_of_comparison(found), output=output, form="json" if as_json else form)
    return _status(found.verdict, complete=found.summary.complete or not require_complete)


@attempts.command()
@click.argument("manifest", type=_PATH)
@click.argument("figure")
@click.option("--rate-card", type=_PATH, metavar="FILE", help="The rate card, for figures that it makes.")
@json_option
def explain(manifest: Path, figure: str, rate_card: Path | None, as_json: bool) -> int:
    """List the attempts, files and lines behind FIGURE: CONFIGURATION.tokens.input_tokens, .costs, .states.missing …

    A name that is none is answered with those that there are.
    """
    from paritrace.attempts.api import explain, load
    from paritrace.reports.attempts.explained import explained_text
    from paritrace.reports.documents import encoded

    found = explain(load(manifest), figure, card=_card(rate_card))
    if as_json:
        write_json_bytes(encoded(found))
    else:
        write_text(explained_text(found).rstrip("\n"))
    return ExitStatus.DONE


def record(loaded: "Loaded") -> None:
    """Record the look that a report is, before it is shown; where that fails it is shown all the same, and said so."""
    from paritrace.attempts.api import record_look
    from paritrace.reports.harmless import harmless

    try:
        record_look(loaded)
    except HostError as error:
        note(f"this look at results is not recorded: {harmless(error.message)} [{error.code}]")


def deliver(
    found: "Summary | AttemptsComparison | DirectoriesCompared",
    parts: "Iterable[Part]",
    *,
    output: Path | None,
    form: str | None,
) -> None:
    """Print the report, or write it where `output` says; in what `form`, its suffix says where nothing else does."""
    from paritrace.files import LOCAL
    from paritrace.reports.documents import encoded

    chosen = form or _format_of(output)
    data = encoded(found) if chosen == "json" else _written(parts, chosen).encode()
    if output is not None:
        LOCAL.replace(output, data)
    else:
        click.echo(data.rstrip(b"\n"))


def _written(parts: "Iterable[Part]", form: str) -> str:
    if form == "markdown":
        from paritrace.reports.attempts.markdown import markdown_of

        return markdown_of(parts)
    if form == "html":
        from paritrace.reports.attempts.html import html_of

        return html_of(parts)
    from paritrace.reports.attempts.text import text_of

    return text_of(parts)


def _format_of(output: Path | None) -> str:
    """The format that a file's suffix names; text where it names none."""
    by_suffix = {".json": "json", ".md": "markdown", ".html": "html", ".htm": "html"}
    return "text" if output is None else by_suffix.get(output.suffix.lower(), "text")


def _status(verdict: "Verdict", *, complete: bool) -> ExitStatus:
    from paritrace.cli.output import worst
    from paritrace.correspondence.vocabulary import Verdict

    judged = {Verdict.FAIL: ExitStatus.DIFFERENCE, Verdict.UNDETERMINED: ExitStatus.UNDETERMINED}
    return worst(judged.get(verdict, ExitStatus.DONE), ExitStatus.DONE if complete else ExitStatus.UNDETERMINED)


def _card(path: Path | None) -> "RateCard | None":
    from paritrace.attempts.toml_files import parse_rate_card
    from paritrace.files import LOCAL

    return None if path is None else parse_rate_card(LOCAL.read(path), name=str(path))


def _gate(path: Path | None) -> "Gate | None":
    from paritrace.attempts.toml_files import parse_gate
    from paritrace.files import LOCAL

    return None if path is None else parse_gate(LOCAL.read(path), name=str(path))
