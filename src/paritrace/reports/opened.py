"""What `paritrace.open` gives in a notebook or a script: a run or a kept comparison, shown and as columns (SU-14)."""

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritrace.errors import EvidenceError, HostError
from paritrace.files import LOCAL
from paritrace.reports import keeping
from paritrace.reports.kept_result import KeptResult, open_result
from paritrace.runs.envelope import ENVELOPE_NAME
from paritrace.runs.reading import open_run
from paritrace.runs.showing import RunSummary, summarise

if TYPE_CHECKING:
    import pyarrow as pa

    from paritrace.compare.result import Comparison as Result

__all__ = ["Comparison", "Run", "open"]
OF_A_RESULT = frozenset({keeping.MANIFEST, *keeping.NAMES.values()})


class _Columns:
    """Calls as columns, for whichever library a person works with."""

    def to_arrow(self) -> "pa.Table":
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Returns the calls as a pandas.DataFrame.

        Raises:
            HostError: Refused, `missing_extra`: pandas is not installed.
        """
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns the calls as a polars.DataFrame.

        Raises:
            HostError: Refused, `missing_extra`: polars is not installed.
        """
        return _require("polars").from_arrow(self.to_arrow())


class Comparison(_Columns):
    """A kept comparison: `result` is its document, `directory` where its files lie."""

    def __init__(self, kept: KeptResult, /) -> None:
        self._kept = kept

    @property
    def result(self) -> "Result":
        return self._kept.comparison

    @property
    def directory(self) -> Path:
        return self._kept.directory

    def to_arrow(self) -> "pa.Table":
        """Returns every call of both sides, one row each, as calls.parquet has them (docs/formats/comparison.md).

        Raises:
            EvidenceError: Refused, `damaged_result`: calls.parquet was not kept or cannot be read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._kept.calls_path()
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise EvidenceError(
                f"{path} cannot be read: {error}",
                code="damaged_result",
                fix="run paritrace compare again without --format, so that calls.parquet is kept",
            ) from error

    def to_html(self, path: str | PathLike[str], /) -> None:
        """Writes the report: one HTML file that needs nothing beside it. A folder gets `report.html`.

        Raises:
            EvidenceError: Refused, `damaged_result`.
            HostError: Refused: `path` cannot be written.
        """
        from paritrace.reports.exporting import export_result
        from paritrace.reports.formats import Cut

        export_result(self.directory, Path(path), names=("html",), cut=Cut(), files=LOCAL)

    def __repr__(self) -> str:
        from paritrace.reports.first_screen import first_screen

        return first_screen(self.result)

    def _repr_html_(self) -> str:
        from paritrace.reports.html.notebook import comparison_cell

        return comparison_cell(self.result)


class Run(_Columns):
    """A recorded run: `summary` is what `paritrace runs show --json` prints of it."""

    def __init__(self, path: Path, /) -> None:
        with open_run(path) as run:
            self.summary: RunSummary = summarise(run)
        self.path = path

    @property
    def run_id(self) -> str:
        return self.summary.envelope.run_id

    def to_arrow(self) -> "pa.Table":
        """Returns every recorded call of every session, one row each, in order of execution.

        Columns: session_id, rank, record_id, parent_id, step, microbatch, phase, level, function, file, line, module,
        started_ns, duration_ns. Times are monotonic nanoseconds since the session started; `parent_id` is -1 at the
        root.

        Raises:
            EvidenceError: Refused: a journal is of another format or of a newer major version.
        """
        from paritrace.reports.run_columns import run_columns

        with open_run(self.path) as run:
            return run_columns(run)

    def __repr__(self) -> str:
        sessions: Sequence[object] = self.summary.sessions
        return f"<paritrace run {self.run_id}, {len(sessions)} sessions, at {self.path}>"

    def _repr_html_(self) -> str:
        from paritrace.reports.html.notebook import run_cell

        return run_cell(self.summary)


def open(path: str | PathLike[str], /) -> Run | Comparison:  # noqa: A001  the public name (SU-14): paritrace.open
    """Opens a run (a directory, its run.json, a packed archive) or a kept comparison (its folder or a file in it).

    A run that was compared is a run; its last comparison is opened by the folder that `paritrace compare` printed.

    Raises:
        HostError: Refused, `not_found`.
        EvidenceError: Refused: `not_a_run`, `damaged_result` and what else opening a run may say.
    """
    place = Path(path)
    folder = place.parent if place.name in OF_A_RESULT else place
    if LOCAL.exists(folder / keeping.MANIFEST) and not LOCAL.exists(folder / ENVELOPE_NAME):
        return Comparison(open_result(folder, files=LOCAL))
    return Run(place)


def _require(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise HostError(
            f"{package} is not installed",
            code="missing_extra",
            fix=f"pip install {package}; to_arrow needs nothing more",
        ) from error
