"""Real traces through the commands give the numbers of independent integer parses, exactly, in any order (issue 10)."""

import json
from pathlib import Path
from typing import Any

import pytest

from paritrace.cli.entry import status_of

DATA = Path(__file__).parents[1] / "data" / "inference" / "kineto"
ORACLE: dict[str, dict[str, Any]] = json.loads((DATA / "oracle.json").read_text())
WORDS = {"linked": "step_range_anchor", "outside": "outside_every_range", "no_launch": "no_launch_record"}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert status_of(["infer", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ORACLE))
def test_import_link_and_account(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, run = ORACLE[name], str(tmp_path / "run")
    told(capsys, "init", run)
    imported = told(capsys, "import", "trace", str(DATA / name), "--run", run)
    again = told(capsys, "import", "trace", str(DATA / name), "--run", run)
    assert (again["num_written"], again["already_present"]) == (0, imported["num_written"])
    linked = told(capsys, "link", run)
    assert {**linked["gpu"]["by_basis"], **linked["gpu"]["by_reason"]} == {
        WORDS[word]: count for word, count in expected["link"].items() if count
    }
    assert linked["gpu"]["activities"] == expected["gpu"]
    assert told(capsys, "link", run)["written"] == 0
    account = told(capsys, "account", run)
    devices = {one["device"].rpartition("#")[2]: one for one in account["devices"]}
    found = {
        name: {"busy_ns": one["busy_ns"], "summed_ns": one["summed_ns"], "n": one["activities"] - one["unmeasured"]}
        for name, one in devices.items()
    }
    assert found == expected["devices"]
    if expected["record_counts"]:
        said = dict(part.split(" = ") for part in expected["record_counts"].split(", "))
        lost = {one["what"]: one["count"] for one in account["loss"]}
        assert {what: lost[what] for what in said} == {what: int(count) for what, count in said.items()}
    for category, count in expected["other_device_cats"].items():
        assert imported["counts"][f"not_imported:{category}"] == count
