"""What doctor says of a staging directory and of a target (ST-14, ST-18)."""

import errno
import os
from pathlib import Path

import pytest

from paritrace.automation.probes.probe import Availability
from paritrace.automation.probes.store import probe_staging, probe_target
from paritrace.cli.entry import status_of
from paritrace.errors import RequestError
from paritrace.files import Primitives


def test_a_local_disk_can_stage(tmp_path: Path) -> None:
    probes = {probe.id: probe for probe in probe_staging(tmp_path)}
    assert list(probes) == ["staging", "staging space", "staging disk", "staging fsync", "staging flock"]
    assert {probe.status for probe in probes.values()} == {Availability.AVAILABLE}
    assert "needs all traces and 0.25 GiB" in probes["staging space"].value
    assert list(tmp_path.iterdir()) == []


def test_a_staging_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError):
        list(probe_staging(tmp_path / "none"))


def test_a_directory_is_a_target(tmp_path: Path) -> None:
    probes = list(probe_target(str(tmp_path / "store")))
    assert [(probe.id, probe.status) for probe in probes] == [
        ("target", Availability.AVAILABLE),
        ("put if absent", Availability.AVAILABLE),
    ]
    assert list((tmp_path / "store").iterdir()) == []


def test_a_target_without_exclusive_names_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(self: Primitives, source: Path, target: Path) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(Primitives, "link", no_links)
    probes = list(probe_target(str(tmp_path / "store")))
    assert probes[-1].status is Availability.UNAVAILABLE
    assert "[not_supported]" in probes[-1].reason


def test_a_text_that_is_no_target_is_unavailable() -> None:
    (probe,) = probe_target("ftp://x")
    assert probe.status is Availability.UNAVAILABLE
    assert "[bad_target]" in probe.reason


def test_doctor_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "staging").mkdir()
    given = ["--staging", str(tmp_path / "staging"), "--store", str(tmp_path / "store")]
    assert status_of(["doctor", str(tmp_path), *given]) == 0
    printed = capsys.readouterr().out
    assert "put if absent" in printed
    assert "staging space" in printed
