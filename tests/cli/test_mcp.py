"""`paritrace mcp` refuses before it serves: without the extra, and for what is no folder (AU-12)."""

from pathlib import Path

import pytest

from paritrace.cli import mcp
from paritrace.cli.entry import status_of


def test_au12_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mcp, "find_spec", lambda _name: None)
    assert status_of(["mcp", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "paritrace[mcp]" in told.err
    assert "[missing_extra]" in told.err


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_au12_only_folders_are_served(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "file").touch()
    assert status_of(["mcp", str(tmp_path), str(tmp_path / name)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "[not_a_folder]" in told.err
