"""`paritrace doctor` (SU-6)."""

import json
import os
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of


def test_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert status_of(["doctor", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"]) == ("paritrace-doctor", "1.0")
    probes = {probe["id"]: probe for probe in document["probes"]}
    assert probes["directory"]["value"] == str(tmp_path)
    wanted = {"python", "cores", "clock", "boot id", "accelerator", "ptrace", "cgroup", "space", "file system"}
    assert wanted | {"fsync", "rename", "claim", "flock", "append"} <= probes.keys()
    assert all(probe["status"] == "available" or probe["reason"] for probe in probes.values())


def test_nothing_is_left_behind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status_of(["doctor", str(tmp_path)])
    capsys.readouterr()
    assert list(tmp_path.iterdir()) == []


def test_text_names_a_mend_for_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paritrace.automation.probes.installation.DISTRIBUTION", "a-distribution-nobody-has")
    assert status_of(["doctor", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("paritrace        unavailable: ") and "; pip install" in line for line in lines)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_directory_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.touch()
    assert status_of(["doctor", str(path)]) == 2
    assert "is not a directory [no_directory]" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system in which nobody can make a folder")
def test_a_directory_in_which_nothing_can_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["doctor", "/proc/self", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "directory_not_writable"
