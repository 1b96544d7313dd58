"""`paritrace align` from the command line: applied, templates, refusals (CP-14, SU-4)."""

import json
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from tests.reports.aligned_runs import THEIR_G, G, artifact, pair, write_map
from tests.reports.test_first_screen import assert_within_bounds


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return artifact(tmp_path)


def test_cp14_a_map_is_applied_and_its_result_shown(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_map(tmp_path / "map.json", kept, pairs=[pair("reject", G, THEIR_G)])
    assert status_of(["align", str(kept), str(path), str(tmp_path / "out")]) == 0
    screen = capsys.readouterr().out
    assert_within_bounds(screen)
    assert "[review]    by Ada: 1 rejected" in screen
    assert status_of(["explain", str(tmp_path / "out"), "review"]) == 0
    assert "baseline:12 with candidate:16 rejected, unaligned (read both sources)" in capsys.readouterr().out
    assert status_of(["align", str(kept / "manifest.json"), str(path), str(tmp_path / "more"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["reports"]["directory"]) == ("not_evaluated", str(tmp_path / "more"))


def test_cp14_a_template_is_one_document(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["align", "--template", str(kept)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "paritrace-alignment-map"
    assert document["pairs"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["kept"], "usage"),
        (["kept", "map.json"], "usage"),
        (["--template", "kept", "map.json"], "usage"),
        (["nowhere", "map.json", "out"], "no_result"),
        (["kept", "nothing.json", "out"], "not_found"),
        (["kept", "kept/manifest.json", "out"], "bad_alignment_map"),
        (["kept", "map.json", "A"], "already_there"),
    ],
)
def test_su4_what_cannot_be_done_is_refused_and_nothing_is_written(
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_map(tmp_path / "map.json", kept, pairs=[pair("reject", G, THEIR_G)])
    before = set(tmp_path.rglob("*"))
    assert status_of(["align", *arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["kind"]) == (code, "refused")
    assert set(tmp_path.rglob("*")) == before
