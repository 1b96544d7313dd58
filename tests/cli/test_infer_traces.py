"""`infer import`, `link` and `account` on real traces, and on synthetic steps of an engine (IN-10, IN-12)."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from paritrace.cli.entry import paritrace
from tests.inference.engine_steps import steps, write_log, write_trace
from tests.inference.importers.kineto_reading import DATA

ORACLE: dict[str, dict[str, Any]] = json.loads((DATA / "oracle.json").read_text())
LARGE = 200_000  # bytes: imported by `make test-slow`


def infer(*arguments: str) -> dict[str, Any]:
    """Returns the document of a command of `paritrace infer`."""
    done = CliRunner().invoke(paritrace, ["infer", *arguments, "--json"], catch_exceptions=False, standalone_mode=False)
    document: dict[str, Any] = json.loads(done.output)
    return document


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if (DATA / name).stat().st_size > LARGE else [])
        for name in sorted(ORACLE)
    ],
)
def test_every_number_of_the_independent_parser_is_met(name: str, tmp_path: Path) -> None:
    expected, run = ORACLE[name], str(tmp_path / "run")
    infer("init", run)
    infer("import", "trace", str(DATA / name), "--run", run)
    document = infer("account", run)
    (source,) = document["sources"]
    counts: dict[str, int] = source["counts"]
    devices = {one["device"].rpartition("#")[2]: one for one in document["devices"]}
    found = {device: [one["busy_ns"], one["summed_ns"], one["activities"]] for device, one in devices.items()}
    assert found == {device: list(figures.values()) for device, figures in expected["devices"].items()}
    linked, outside = expected["link"].get("linked", 0), expected["link"].get("outside", 0)
    assert sum(one["unlinked"] for one in devices.values()) == outside
    assert counts["x_events"] == expected["x_events"]
    assert counts["device"] == expected["gpu"]
    assert counts["launches_repeated"] == expected["launch_dup"]
    assert counts["profiler_step_threads"] == expected["profilerstep_threads"]
    assert _named(counts, "estimate:steps_of_any_thread:") == expected["step_any_thread"]
    assert _named(counts, "not_imported:") == expected["other_device_cats"]
    told = {one["what"]: one["count"] for one in document["loss"] if one["status"] != "not_reported"}
    for category, count in expected["other_device_cats"].items():
        assert told.pop(f"device work of category {category}") == count
    assert told == _record_counts(expected["record_counts"])
    link = infer("link", run)
    assert link["gpu"]["linked"] == linked
    assert link["gpu"]["by_reason"] == ({"outside_every_range": outside} if outside else {})


def _named(counts: dict[str, int], start: str) -> dict[str, int]:
    return {name.removeprefix(start): count for name, count in counts.items() if name.startswith(start)}


def _record_counts(text: str | None) -> dict[str, int]:
    parts = (part.rpartition(" = ") for part in (text or "").split(", ") if part)
    return {name: int(number) for name, _, number in parts}


def test_steps_of_an_engine_join_its_log_and_one_line_removed_shifts_nothing(tmp_path: Path) -> None:
    made = steps(40, seed=5)
    gone = next(number for number, step in enumerate(made) if made.count(step) == 1)
    found: list[dict[str, Any]] = []
    for name, without in (("whole", None), ("less", gone)):
        run = str(tmp_path / name)
        infer("init", run)
        infer("import", "trace", str(write_trace(tmp_path / f"{name}.json", made)), "--run", run)
        infer("import", "log", str(write_log(tmp_path / f"{name}.log", made, without=without)), "--run", run)
        (joined,) = infer("account", run)["steps"]
        found.append(joined)
    whole, less = found
    assert (whole["ranges"], whole["iterations"], less["iterations"]) == (40, 40, 39)
    assert less["num_pairs"] == whole["num_pairs"] - 1
    pairs = [{(ours["id"], theirs["id"].rpartition(":")[2]) for ours, theirs in one["pairs"]} for one in found]
    assert pairs[1] < pairs[0]
    assert less["undetermined"]["not_there"] == 1
    said = CliRunner().invoke(paritrace, ["infer", "account", str(tmp_path / "less")], catch_exceptions=False)
    assert "undetermined: not_there 1" in said.output
