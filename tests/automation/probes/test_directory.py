"""Each trial of a directory can fail: tried on file layers that break exactly the promise it looks at."""

import fcntl
import os
from pathlib import Path

import pytest

from paritrace.automation.probes.directory import TRIALS, probe_directory, try_claim, try_lock, try_replace
from paritrace.automation.probes.probe import Availability


def test_a_local_directory_keeps_every_promise(tmp_path: Path) -> None:
    found = {probe.id: probe.status for probe in probe_directory(tmp_path)}
    assert {found[name] for name in TRIALS} == {Availability.AVAILABLE}


def test_a_file_system_without_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_locks(_file: object, _operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    probe = {probe.id: probe for probe in probe_directory(tmp_path)}["flock"]
    assert probe.status is Availability.UNAVAILABLE
    assert "Function not implemented" in probe.reason
    assert probe.fix


def test_locks_that_exclude_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda _file, _operation: None)
    with pytest.raises(Exception, match="two open files hold one exclusive lock"):
        try_lock(tmp_path)


def test_a_folder_that_can_be_made_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", lambda self: real(self, exist_ok=True))
    with pytest.raises(Exception, match="made twice"):
        try_claim(tmp_path)


def test_a_rename_that_does_not_replace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "replace", lambda _self, target: target)
    with pytest.raises(Exception, match="did not replace it"):
        try_replace(tmp_path)


def test_a_sync_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    probe = {probe.id: probe for probe in probe_directory(tmp_path)}["fsync"]
    assert probe.status is Availability.UNAVAILABLE
