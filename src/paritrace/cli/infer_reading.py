"""`paritrace infer link`, `account` and `show`: what the evidence of an inference run says (IN-7 to IN-9)."""

from pathlib import Path

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_report

MODELS = ("tokens/1", "members/1")
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option("--explain", metavar="ID", help="Show why one activity is linked or not, with the lines behind it.")
@json_option
def link(run: Path, explain: str | None, as_json: bool) -> None:
    """Derive which iteration each activity of RUN belongs to, and keep the links; never by time alone.

    The whole artifact is looked at each time, so that evidence may arrive in any order. --explain writes nothing.
    """
    from paritrace.inference.link_report import explain_link, link_artifact
    from paritrace.reports.inference.screens import explanation_screen, link_screen

    _repair(run)
    if explain is not None:
        explanation = explain_link(run, explain)
        write_report(explanation, explanation_screen, as_json=as_json)
        return
    report = link_artifact(run)
    write_report(report, link_screen, as_json=as_json)


@click.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option(
    "--shares", type=click.Choice(MODELS), help="Share each iteration's busy time among its requests by this model."
)
@json_option
def account(run: Path, shares: str | None, as_json: bool) -> None:
    """Add up the device time of RUN: busy, summed and elapsed, for each device and clock apart; and what was lost."""
    from paritrace.inference.account_report import account_artifact
    from paritrace.inference.shares import ShareModel
    from paritrace.reports.inference.screens import account_screen

    _repair(run)
    report = account_artifact(run, model=None if shares is None else ShareModel(shares))
    write_report(report, account_screen, as_json=as_json)


@click.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option("--request", metavar="ID", help="Show what served one request: iterations, device work, what is unknown.")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="Write a trace for Perfetto instead: FILE.pftrace.")
@json_option
def show(run: Path, request: str | None, output: Path | None, as_json: bool) -> None:
    """Show what the artifact of RUN holds: events, components, conflicts, references in vain, losses.

    With --request: how each party tells that request, joined by ids alone, and the iterations it took part in.
    With -o: a trace of all of it; clocks that no record aligns stand one behind the other.
    """
    if request is not None and output is not None:
        raise click.UsageError("--request shows one request, and -o draws the whole run: give one of them")
    if request is not None:
        _show_request(run, request, as_json=as_json)
        return
    from paritrace.inference.show_report import show_artifact
    from paritrace.reports.inference.screens import show_screen

    _repair(run)
    if output is not None:
        _draw(run, output, as_json=as_json)
        return
    report = show_artifact(run)
    write_report(report, show_screen, as_json=as_json)


def _draw(run: Path, output: Path, *, as_json: bool) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.formats import Cut
    from paritrace.reports.inference.trace_file import in_words, write_trace_file

    written = write_trace_file(run, output, cut=Cut(), files=LOCAL)
    write_report(written, lambda one: "\n".join(in_words(one)), as_json=as_json)


def _repair(run: Path) -> None:
    """Finish or drop first what a killed append left, and say so (EV-11)."""
    from paritrace.inference.recovering import repair
    from paritrace.reports.inference.screens import recovered_words

    for words in recovered_words(repair(run).value):
        note(words.strip())


def _show_request(run: Path, request: str, *, as_json: bool) -> None:
    from paritrace.inference.serving_request import served_request
    from paritrace.reports.inference.request_screen import request_screen

    _repair(run)
    report = served_request(run, request)
    write_report(report, request_screen, as_json=as_json)
