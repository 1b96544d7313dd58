"""Reads the recorded sources of both sides around the places that a page shows (CA-26)."""

from collections.abc import Iterator

from paritrace.compare.result import Comparison, Difference
from paritrace.reports.html.places import parted
from paritrace.reports.wording import MAIN
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.reading import Run

MOST_TEXTS = 24
LONGEST_TEXT = 2_000_000


def texts_of(comparison: Comparison, runs: tuple[Run, Run] | None, /) -> dict[tuple[str, str], str]:
    """Returns (side, file) -> source text of the sides of findings and of the first difference, where kept.

    A text is taken only if its line says what the result says stands there: a run may hold several versions of a file.
    """
    if runs is None:
        return {}
    found: dict[tuple[str, str], str] = {}
    for number, site, source in _sites(comparison):
        file, line, _ = parted(site)
        side = ("baseline", "candidate")[number]
        if line and (side, file) not in found and len(found) < MOST_TEXTS:
            text = _text(runs[number], file, line=line, source=source)
            if text is not None:
                found[side, file] = text
    return found


def _sites(comparison: Comparison) -> Iterator[tuple[int, str, str]]:
    first = comparison.first_difference
    places: list[Difference] = [finding.place for finding in comparison.findings] + ([first] if first else [])
    for place in places:
        yield 0, place.baseline_site, place.baseline_source
        yield 1, place.candidate_site, place.candidate_source


def _text(run: Run, file: str, *, line: int, source: str) -> str | None:
    for row in run.envelope.attachments:
        if row.kind is AttachmentKind.SOURCE and row.title in (file, MAIN) and isinstance(row.sha256, str):
            text = run.source(row.sha256)
            if text is not None and len(text) <= LONGEST_TEXT and _says(text, line, source):
                return text
    return None


def _says(text: str, line: int, source: str) -> bool:
    lines = text.splitlines()
    return line <= len(lines) and bool(source.strip()) and lines[line - 1].strip() == source.strip()
