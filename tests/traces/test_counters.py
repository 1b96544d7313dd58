"""Counters of a comparison's trace: errors of outputs beside what was expected, on tracks of their own (SU-8)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.compare.result import Ledger, LedgerEntry
from paritrace.files import LOCAL
from paritrace.reports.formats import OfComparison
from paritrace.reports.traces.of_comparison import write_comparison
from paritrace.reports.traces.verifying import read_back
from tests.reports import comparisons
from tests.reports.call_rows import rows

ERROR, TIMES = "error of outputs", "error of outputs / expected"


def entry(record_id: int, *, error: float | None, expected: float | None) -> LedgerEntry:
    return LedgerEntry(0, 0, "forward", "m", "f", record_id, record_id, error, expected)


def write(path: Path) -> None:
    """Calls at 100 ns each, 50 ns long; three of the candidate's are measured, one of them at no known time."""
    entries = (
        entry(211, error=2.0**-10, expected=2.0**-12),
        entry(214, error=None, expected=2.0**-12),
        entry(216, error=0.5, expected=None),
        entry(218, error=0.25, expected=0.25),
    )
    timed = [replace(row, start_ns=100 * row.record_id, duration_ns=50) for row in rows()[:-1]]
    comparison = replace(comparisons.parted(), ledger=Ledger(entries, total=4))
    with LOCAL.replacing(path) as sink:
        write_comparison(OfComparison(comparison=comparison, rows=[*timed, rows()[-1]]), sink)


def test_su8_errors_are_counted_and_one_that_is_not_finite_is_an_instant(tmp_path: Path) -> None:
    write(tmp_path / "a.pftrace")
    (whole,) = read_back(tmp_path / "a.pftrace", files=LOCAL)
    so_far = 2 + 4  # calls that differ, and that have no partner: counted one by one
    assert whole.counters == so_far + 3
    findings, left_out = 4, 1
    assert whole.instants == 4 + 1 + findings + 2 + left_out  # no partner, no time, findings, two not finite


@pytest.mark.slow
def test_su9_a_trace_processor_finds_errors_on_their_own_tracks(tmp_path: Path) -> None:
    from tests.traces.processor import assert_no_error, processor

    write(tmp_path / "a.pftrace")
    with processor(tmp_path / "a.pftrace") as opened:
        assert_no_error(opened)
        found = opened.rows(
            "select t.name, c.ts, c.value from counter c join counter_track t on c.track_id = t.id "
            f"where t.name like '{ERROR}%' order by t.name, c.ts"
        )
        assert [(row["name"], row["ts"], row["value"]) for row in found] == [
            (ERROR, 21150, 2.0**-10),
            (ERROR, 21650, 0.5),
            (TIMES, 21150, 4.0),
        ]
        instants = opened.rows("select name, ts from slice where name like '% is NaN' order by name")
        assert [(row["name"], row["ts"]) for row in instants] == [
            (f"{ERROR} / expected is NaN", 21450),
            (f"{ERROR} is NaN", 21450),
        ]
