"""Writers of the formats that a result always has: its screen, its document, its table of calls (SU-7)."""

from paritrace.reports.documents import checked_document, comparison_document
from paritrace.reports.formats import OfCheck, OfComparison, Sink


def text(given: OfComparison, sink: Sink, /) -> None:
    """Writes the first screen (CP-29)."""
    from paritrace.reports.first_screen import first_screen

    sink.write(first_screen(given.comparison, kept=given.kept).encode())


def json(given: OfComparison, sink: Sink, /) -> None:
    """Writes the document of `compare --json`."""
    sink.write(comparison_document(given.comparison))


def parquet(given: OfComparison, sink: Sink, /) -> None:
    """Writes every call of both sides (CP-16)."""
    from paritrace.reports.parquet import write_calls

    write_calls(given.rows, sink, schemes=given.comparison.schemes)


def check_text(given: OfCheck, sink: Sink, /) -> None:
    """Writes the screen of `check` (CP-25)."""
    from paritrace.reports.check_screen import check_screen

    sink.write(check_screen(given.checked).encode())


def check_json(given: OfCheck, sink: Sink, /) -> None:
    """Writes the document of `check --json`."""
    sink.write(checked_document(given.checked))
