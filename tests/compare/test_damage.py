"""A damaged journal is compared as far as it reads, and what is lost is counted (EV-8, CP-3c)."""

import json
from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison
from paritrace.runs.reading import open_run
from paritrace.testing.tables import RunTable
from tests.compare.runs import training


def against(place: Path, journal: bytes) -> Comparison:
    """The whole run against one whose journal holds these bytes."""
    training(steps=1).write(place / "a")
    broken = training(steps=1).write(place / "b")
    path = next(broken.glob("sessions/*/calls.jsonl"))
    path.write_bytes(journal)
    return compare(open_run(place / "a"), open_run(broken)).result


def lines_of(place: Path) -> list[bytes]:
    run = training(steps=1).write(place / "whole")
    return next(run.glob("sessions/*/calls.jsonl")).read_bytes().splitlines(keepends=True)


@pytest.mark.slow
def test_no_lost_line_breaks_a_comparison(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    for number in range(1, len(lines)):
        damaged = [*lines[:number], b"#" * (len(lines[number]) - 1) + b"\n", *lines[number + 1 :]]
        result = against(tmp_path / str(number), b"".join(damaged))
        side = result.coverage["candidate"]
        assert side.bytes_lost == len(lines[number])
        assert not side.complete
        assert all(row.group is not None for row in result.origins)
        assert result.recorded_on_one_side == ()


@pytest.mark.parametrize("kind", ["function", "context", "scope", "kind", "name", "scalars", "origin", "state_names"])
def test_ev8_what_refers_to_a_definition_that_was_never_written_is_counted(tmp_path: Path, kind: str) -> None:
    """No byte is lost: each line is right, and the journal still speaks of what it does not define."""
    lines = lines_of(tmp_path)
    first = next(line for line in lines if line.startswith(b'{"type":"%s"' % kind.encode()))
    result = against(tmp_path, b"".join(line for line in lines if line is not first))
    side = result.coverage["candidate"]
    assert (side.bytes_lost, side.complete) == (0, False)
    assert side.gaps["undefined_reference"] > 0
    assert result.counts.calls_candidate < result.counts.calls_baseline or kind == "state_names"


@pytest.mark.parametrize("place", [4, 5, 7, 8, 12, 13])
def test_ev8_a_call_that_refers_to_nothing_is_left_out_and_counted(tmp_path: Path, place: int) -> None:
    lines = lines_of(tmp_path)
    number = next(n for n, line in enumerate(lines) if line.startswith(b'["c"'))
    row = json.loads(lines[number])
    row[place] = 999
    lines[number] = json.dumps(row, separators=(",", ":")).encode() + b"\n"
    result = against(tmp_path, b"".join(lines))
    assert result.coverage["candidate"].gaps["undefined_reference"] == 1
    assert result.counts.calls_candidate == result.counts.calls_baseline - 1


@pytest.mark.parametrize("kept", [0.1, 0.4, 0.7])
def test_a_torn_journal_is_compared_as_far_as_it_reads(tmp_path: Path, kept: float) -> None:
    whole = b"".join(lines_of(tmp_path))
    result = against(tmp_path, whole[: int(len(whole) * kept)])
    assert result.counts.calls_candidate < result.counts.calls_baseline
    assert not result.coverage["candidate"].complete
    assert result.recorded_on_one_side == ()
    assert "dropped" in result.undetermined_by_reason["baseline"]


@pytest.mark.parametrize("killed", ["a", "b"])
def test_what_a_killed_session_had_not_written_yet_is_no_change(tmp_path: Path, killed: str) -> None:
    """CA-30, EV-4: its code and configuration are not known, which is not that they are absent."""
    for name in ("a", "b"):
        run = training(steps=1).write(tmp_path / name)
        if name == killed:
            next(run.glob("sessions/*/receipt.json")).unlink()
            next(run.glob("sessions/*/calls.jsonl")).write_bytes(b"")
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    assert result.changed == ()
    assert {result.ladder[rung] for rung in ("code", "config")} == {"?"}


def test_two_empty_runs_are_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        RunTable().write(tmp_path / name)
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    assert (result.counts.paired, result.first_difference, result.steps_compared) == (0, None, ())
