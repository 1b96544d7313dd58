"""`paritrace export`: a run or a kept comparison as files that other programs read (SU-2, SU-8)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from paritrace.cli.options import json_option
from paritrace.cli.output import write_json, write_text
from paritrace.cli.progress import progress
from paritrace.errors import RequestError
from paritrace.reports.formats import CHROME, CHROME_SUFFIX, GITHUB, NAMES, Cut, format_of, suffixes

if TYPE_CHECKING:
    from paritrace.reports.exporting import Exported

TRACE = "pftrace"
CHOICES = (*(name for name in NAMES if name != GITHUB), CHROME)


class _Asked(Struct, frozen=True):
    """What to write and where."""

    output: Path
    formats: tuple[str, ...]
    cut: Cut


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Folder, or a file.")
@click.option(
    "--format", "formats", multiple=True, type=click.Choice(CHOICES), help="[default: by the file, else pftrace]"
)
@click.option("--rank", "ranks", metavar="R", help="Ranks in a trace, as 0,1 [default: all].")
@click.option("--steps", metavar="A:B", help="Steps in a trace, half-open [default: all].")
@click.option(
    "--max-events", type=click.IntRange(min=1), metavar="N", help="Calls of a rank in a trace [default: 1,000,000]."
)
@click.option("--verify", is_flag=True, help="Read the trace SOURCE back instead: is it whole?")
@json_option
def export(  # noqa: PLR0913  one parameter per option of the synopsis
    source: Path,
    output: Path | None,
    formats: tuple[str, ...],
    ranks: str | None,
    steps: str | None,
    max_events: int | None,
    verify: bool,
    as_json: bool,
) -> None:
    """Write SOURCE, a run or the folder of a kept comparison, as files for other programs.

    A run becomes traces that Perfetto opens, one for each rank in a folder. What a trace leaves out is said.
    """
    from paritrace.cli.selections import parse_ranks, parse_steps

    if verify:
        _verify(source, as_json=as_json)
        return
    if output is None:
        raise RequestError("export was not told where to write", code="no_place_for_format", fix="name it with -o PATH")
    cut = Cut(ranks=parse_ranks(ranks), steps=parse_steps(steps), max_events=max_events)
    if _is_inference(source):
        _export_inference(source, output, formats, cut, as_json=as_json)
        return
    asked = _Asked(output, formats or _by_suffix(output), cut)
    with progress() as stage:
        stage(f"exporting {source}")
        written = _export(source, asked)
    _tell(written, as_json=as_json)


def _is_inference(source: Path) -> bool:
    """Whether a run has inference evidence and no calls: its trace is that of the evidence."""
    from paritrace.inference.artifact import ARTIFACT_NAME
    from paritrace.reports.traces.of_inference import has_evidence_alone

    return source.name == ARTIFACT_NAME if source.is_file() else has_evidence_alone(source)


def _export_inference(source: Path, output: Path, formats: tuple[str, ...], cut: Cut, *, as_json: bool) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.inference.trace_file import in_words, write_trace_file

    if set(formats) - {TRACE} or cut.ranks is not None or cut.steps is not None:
        raise RequestError(
            "the trace of an inference run is whole: it has no --rank, no --steps and no other --format",
            code="no_such_format",
            fix=f"give -o FILE.{TRACE}, with --max-events if it is to be smaller",
        )
    place = output / f"inference.{TRACE}" if output.is_dir() or not output.suffix else output
    with progress() as stage:
        stage(f"exporting {source}")
        written = write_trace_file(source, place, cut=cut, files=LOCAL)
    if as_json:
        write_json({"files": [written]})
    else:
        write_text("\n".join(in_words(written)))


def _by_suffix(output: Path) -> tuple[str, ...]:
    if output.is_dir() or not output.suffix:
        return (TRACE,)
    if output.name.endswith(CHROME_SUFFIX):
        return (CHROME,)
    form = format_of(output)
    if form is None:
        raise RequestError(
            f"no format is known by the name {output.name}",
            code="no_such_format",
            fix=f"name a file that ends in {suffixes()}, {CHROME_SUFFIX}, or a folder",
        )
    return (form.name,)


def _export(source: Path, asked: _Asked) -> "list[Exported]":
    from paritrace.files import LOCAL
    from paritrace.reports import exporting
    from paritrace.reports.keeping import MANIFEST
    from paritrace.runs.reading import open_run

    if LOCAL.exists(source / MANIFEST) or source.name == MANIFEST:
        return exporting.export_result(source, asked.output, names=asked.formats, cut=asked.cut, files=LOCAL)
    with open_run(source) as run:
        return exporting.export_run(run, asked.output, names=asked.formats, cut=asked.cut, files=LOCAL)


def _tell(written: "list[Exported]", *, as_json: bool) -> None:
    if as_json:
        write_json({"files": written})
        return
    from paritrace.reports.exporting import in_words

    for one in written:
        write_text("\n".join(in_words(one)))


def _verify(source: Path, *, as_json: bool) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.harmless import harmless
    from paritrace.reports.traces.verifying import read_back

    parts = read_back(source, files=LOCAL)
    if as_json:
        write_json({"path": str(source), "parts": parts})
        return
    for part in parts:
        of = " ".join(f"{name} {value}" for name, value in part.facts.items() if name in ("of", "run", "candidate"))
        write_text(
            harmless(f"whole: {of}: {part.slices:,} slices, {part.instants:,} instants, {part.packets:,} packets")
        )
