"""The formats that a result is written in: one table of names, suffixes and writers (SU-4, SU-7)."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from paritrace.errors import RequestError

if TYPE_CHECKING:  # the table is read for --help, which loads no more than that
    from paritrace.compare.checks_result import Checked
    from paritrace.compare.result import Comparison
    from paritrace.compare.rows import CallRow
    from paritrace.compare.token_rows import TokenRowsCompared
    from paritrace.reports.first_screen import Kept
    from paritrace.runs.reading import Run

UNLIMITED = -1


class Sink(Protocol):
    """Where the bytes of a file go, in order."""

    def write(self, data: bytes, /) -> object: ...


class Allowed(Struct, frozen=True):
    """What the user accepts: so many `undetermined` calls (UNLIMITED: any), and what lies `inside_envelope`."""

    undetermined: int = 0
    inside_envelope: bool = False


class Cut(Struct, frozen=True):
    """Which calls a trace shows; None: all. `steps` is half-open. The writer says what it left out."""

    ranks: tuple[int, ...] | None = None
    steps: tuple[int, int | None] | None = None
    max_events: int | None = None

    def takes_step(self, step: int, /) -> bool:
        """Whether calls of this step are shown."""
        if self.steps is None:
            return True
        first, end = self.steps
        return first <= step and (end is None or step < end)


class OfComparison(Struct, frozen=True):
    """What the writer of a comparison is given.

    `rows`: every call of both sides, in bounded memory; may be read several times. `runs`: baseline and candidate, open
    for reading, None where only the result is there. `kept`: where its other files lie, None when nothing is kept.
    """

    comparison: "Comparison"
    rows: "Iterable[CallRow]"
    runs: "tuple[Run, Run] | None" = None
    kept: "Kept | None" = None
    token_rows: "TokenRowsCompared | None" = None
    allowed: Allowed = Allowed()
    cut: Cut = Cut()


class OfCheck(Struct, frozen=True):
    """What the writer of a check is given; `run` is open for reading, None where only the result is there."""

    checked: "Checked"
    run: "Run | None" = None
    allowed: Allowed = Allowed()
    cut: Cut = Cut()


class Format(Struct, frozen=True):
    """A format. `file` is its name in a folder of everything, `check_file` that of a check; "" where it has none.

    `comparison` and `check` name their writers as `module:function`, loaded when they are used: called with
    OfComparison or OfCheck and a Sink, they return nothing. "" where there is no such writer. `per_rank`: `file` is a
    folder with one file for each rank, made with a Cut. `streaming`: written as rows are read. `bounded`: says what it
    leaves out. `binary`: nothing that a terminal takes.
    """

    name: str
    suffixes: tuple[str, ...]
    file: str
    comparison: str = ""
    check_file: str = ""
    check: str = ""
    streaming: bool = False
    bounded: bool = False
    per_rank: bool = False
    binary: bool = False


_OF_RESULTS = "paritrace.reports.results"
_MARKDOWN = "paritrace.reports.markdown"
_JUNIT = "paritrace.reports.junit"
_TRACES = "paritrace.reports.traces"
_TABLE = (  # in the order of writing: what names the others comes last
    Format("parquet", (".parquet",), "calls.parquet", f"{_OF_RESULTS}:parquet", streaming=True, binary=True),
    Format(
        "markdown",
        (".md",),
        "report.md",
        f"{_MARKDOWN}.of_comparison:write",
        "check.md",
        f"{_MARKDOWN}.of_check:write",
        bounded=True,
    ),
    Format(
        "junit",
        (".junit.xml", ".xml"),
        "report.junit.xml",
        f"{_JUNIT}:comparison",
        "check.junit.xml",
        f"{_JUNIT}:check",
        bounded=True,
    ),
    Format(
        "pftrace",
        (".pftrace",),
        "traces",
        f"{_TRACES}.of_comparison:write",
        "traces",
        f"{_TRACES}.of_check:write",
        streaming=True,
        bounded=True,
        per_rank=True,
        binary=True,
    ),
    Format(
        "text",
        (".txt",),
        "first_screen.txt",
        f"{_OF_RESULTS}:text",
        "check.txt",
        f"{_OF_RESULTS}:check_text",
        bounded=True,
    ),
    Format(
        "html",
        (".html", ".htm"),
        "report.html",
        "paritrace.reports.html.report:comparison",
        "check.html",
        "paritrace.reports.html.report:check",
        bounded=True,
    ),
    Format("json", (".json",), "comparison.json", f"{_OF_RESULTS}:json", "check.json", f"{_OF_RESULTS}:check_json"),
)
FORMATS = {form.name: form for form in _TABLE}
GITHUB = "github"  # annotations and the summary of a step: no file of ours
CHROME = "chrome-json"  # of `paritrace export` alone: lossy
CHROME_SUFFIX = ".chrome.json"
_ORDER = ("text", "json", "markdown", "html", "junit", GITHUB, "pftrace", "parquet")  # as people read them
NAMES = tuple(name for name in _ORDER if name in FORMATS or name == GITHUB)


def of_comparisons() -> tuple[str, ...]:
    """Returns the names of the formats that have a file in the folder of a comparison, in the order of writing."""
    return tuple(form.name for form in _TABLE if form.comparison and form.file)


def of_checks() -> tuple[str, ...]:
    """Returns the names of the formats that have a file in the folder of a check, in the order of writing."""
    return tuple(form.name for form in _TABLE if form.check and form.check_file)


def format_of(path: PurePath, /) -> Format | None:
    """Returns the format that a file's suffix names, the longest suffix first; None where it names none."""
    by_suffix = sorted(((end, form) for form in _TABLE for end in form.suffixes), key=lambda one: -len(one[0]))
    return next((form for end, form in by_suffix if path.name.lower().endswith(end)), None)


def suffixes() -> str:
    """Returns all suffixes in words, for an error."""
    return ", ".join(end for form in _TABLE for end in form.suffixes)


def writer_of_comparison(form: Format, /) -> Callable[[OfComparison, Sink], None]:
    """Returns the writer of comparisons.

    Raises:
        RequestError: Refused, `no_such_format`: this format does not show comparisons.
    """
    writer: Callable[[OfComparison, Sink], None] = _loaded(form, form.comparison, what="a comparison")
    return writer


def writer_of_check(form: Format, /) -> Callable[[OfCheck, Sink], None]:
    """Returns the writer of checks.

    Raises:
        RequestError: Refused, `no_such_format`: this format does not show checks.
    """
    writer: Callable[[OfCheck, Sink], None] = _loaded(form, form.check, what="a check")
    return writer


def _loaded(form: Format, target: str, *, what: str) -> Any:
    if not target:
        raise RequestError(f"{form.name} does not show {what}", code="no_such_format", fix="choose another --format")
    module, _, name = target.partition(":")
    return vars(import_module(module))[name]
