"""`paritrace runs`: documents, text and exit statuses (SU-3, SU-4, SU-19)."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paritrace.cli.entry import status_of
from paritrace.cli.runs_text import catalog_text, summary_text, verification_text
from paritrace.evidence.calls import NotCaptured
from paritrace.evidence.codec import encode_mark
from paritrace.runs.catalog import MAX_DEPTH, catalog
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.removal import REMOVED_PREFIX
from paritrace.runs.showing import summarise
from paritrace.runs.verify import verify
from tests.runs.making import another_process, capture, request, torchrun, write_records


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    capture(tmp_path / "run")
    return tmp_path / "run"


class Ran:
    """One command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.status = status_of(["runs", *map(str, arguments)])
        self.out, self.err = capsys.readouterr()

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def test_ls(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "ls", tmp_path, "--json")
    assert ran.status == 0
    assert [line["run_id"] for line in ran.document["runs"]] == ["run-1"]
    assert ran.err == ""
    text = Ran(capsys, "ls", tmp_path).out
    assert text.splitlines()[0].split() == ["run", "made", "sessions", "status", "title", "path"]
    assert str(run_dir) in text.splitlines()[1]


def test_ls_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Ran(capsys, "ls", tmp_path).out == f"no run in or below {tmp_path}\n"


def test_ls_tells_what_is_doubtful(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin_session(tmp_path / "a", replace(request(torchrun(0)), run_id="a"))
    begin_session(tmp_path / "b", replace(request(torchrun(1)), run_id="b"))
    (tmp_path / "bad.tar.zst").write_bytes(b"nothing")
    (tmp_path / f"{REMOVED_PREFIX}01").mkdir()
    capture(tmp_path.joinpath("copy", *["deep"] * MAX_DEPTH) / "run")
    capture(tmp_path / "twin")
    out = Ran(capsys, "ls", tmp_path).out
    assert f"one run id in 2 places, none is chosen: run-1: {run_dir}, {tmp_path / 'twin'}" in out
    assert f"of one job: job-1: {tmp_path / 'a'}, {tmp_path / 'b'}" in out
    assert f"cannot be read: {tmp_path / 'bad.tar.zst'}: " in out
    assert f"a removal was cut off, this is left: {tmp_path / REMOVED_PREFIX}01" in out
    assert "too deep, not looked into: " in out


def test_show_says_once_what_is_true_of_many_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(3):
        session = begin_session(tmp_path / "run", request(torchrun(rank, world_size=3)))
        with session.open_journal() as journal:
            write_records(session, journal)
            journal.write(encode_mark(NotCaptured(("scheduler",))))
    out = Ran(capsys, "show", tmp_path / "run").out
    assert "rank-0 and 2 more: not captured: scheduler" in out
    assert out.count("not captured") == 1


def test_show_of_a_damaged_run(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = run_dir / "sessions" / "rank-0" / "calls.jsonl"
    kept = journal.read_bytes()
    journal.write_bytes(kept.replace(b'"calls":3', b'"calls":4') + b"{torn\n" * 30)
    out = Ran(capsys, "show", run_dir).out
    assert "rank-0: 3 calls, the end mark says 4" in out
    assert "rank-0: 10 more losses" in out
    assert "incomplete" in out
    journal.write_bytes(b'{"format":"other","version":"1.0"}\n')
    out = Ran(capsys, "show", run_dir).out
    assert "unreadable" in out
    assert "it says format 'other'" in out


def test_show_of_a_run_of_a_later_version(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_dir / "run.json"
    document = {**json.loads(path.read_text()), "version": "1.9", "mood": "calm", "tags": ["x", "y"], "title": "T"}
    path.write_text(json.dumps(document))
    out = Ran(capsys, "show", run_dir).out
    assert "run run-1  T" in out
    assert "tags x, y" in out
    assert "written by a later paritrace: 1 fields were left out" in out


def test_verify_lists_losses_and_what_it_left_out(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (run_dir / "sessions" / "rank-0" / "calls.jsonl").open("ab") as file:
        file.write(b"{torn\n" * 130)
    out = Ran(capsys, "verify", run_dir).out
    assert out.count("loss         rank-0: line ") == 100
    assert "loss         rank-0: 30 more" in out


def test_show(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = Ran(capsys, "show", run_dir, "--json").document
    assert document["envelope"]["run_id"] == "run-1"
    (session,) = document["sessions"]
    assert (session["status"], session["steps"], session["account"]["calls"]) == ("completed", [0], 3)
    assert session["coverage"] == {"observed": 3, "expected": 3, "complete": True, "gaps": {}}
    text = Ran(capsys, "show", run_dir).out
    assert "run run-1" in text
    assert "3 of 3" in text
    assert "attachments: 1 other, 1 source, 1 tensor_trace" in text


def test_show_of_a_killed_run_with_a_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    with session.open_journal() as journal:
        write_records(session, journal)
    with session.journal_path.open("ab") as file:
        file.write(b'["c",4,')
    document = Ran(capsys, "show", tmp_path / "run", "--json").document
    (shown,) = document["sessions"]
    assert shown["status_words"] == "interrupted; cause unknown"
    assert shown["coverage"] == {
        "observed": 3,
        "expected": {"gap": "not_recorded", "detail": "no receipt"},
        "complete": False,
        "gaps": {"loss": 1},
    }
    text = Ran(capsys, "show", tmp_path / "run").out
    assert "interrupted; cause unknown" in text
    assert "3 of an unknown number" in text
    assert "rank-0: loss: line 7, byte " in text


def test_markup_and_control_characters_in_names_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "[red]x[/red] \x1b[31m\n"
    session = begin_session(tmp_path / "run", request(process=another_process()))
    session.set_metadata({odd: odd})
    session.flush()
    path = tmp_path / "run" / "run.json"
    document = json.loads(path.read_text())
    document["title"] = odd
    path.write_text(json.dumps(document))
    for command in ("ls", "show", "verify"):
        assert Ran(capsys, command, tmp_path / "run").status in (0, 3)
    run = open_run(tmp_path / "run")
    for text in (catalog_text(catalog(tmp_path)), summary_text(summarise(run)), verification_text(verify(run))):
        assert all(char.isprintable() or char == "\n" for char in text)
    assert "[red]x[/red] \\x1b[31m\\n" in catalog_text(catalog(tmp_path))


def test_verify_statuses(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "verify", run_dir, "--json")
    assert (ran.status, ran.document["verdict"]) == (0, "intact")
    journal = run_dir / "sessions" / "rank-0" / "calls.jsonl"
    kept = journal.read_bytes()
    journal.write_bytes(kept[:-1])
    ran = Ran(capsys, "verify", run_dir)
    assert ran.status == 2
    assert "changed      tensor_trace:rank-0:calls" in ran.out
    journal.unlink()
    ran = Ran(capsys, "verify", run_dir, "--json")
    assert ran.status == 2
    assert {item["id"]: item["status"] for item in ran.document["items"]}["tensor_trace:rank-0:calls"] == "missing"
    begin_session(tmp_path / "killed", request(process=another_process()))
    ran = Ran(capsys, "verify", tmp_path / "killed", "--json")
    assert (ran.status, ran.document["verdict"]) == (3, "not_checked")


def test_pack_then_everything_reads_the_archive(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "out" / "run.tar.zst"
    assert Ran(capsys, "pack", run_dir, "-o", archive, "--json").document["num_members"] == 4
    assert Ran(capsys, "verify", archive).status == 0
    shown, plain = (Ran(capsys, "show", path, "--json").document for path in (archive, run_dir))
    assert shown["sessions"] == plain["sessions"]
    assert Ran(capsys, "pack", run_dir, "-o", archive).status == 2
    assert Ran(capsys, "rm", archive).status == 0
    assert Ran(capsys, "rm", run_dir, "--json").document["run_id"] == "run-1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_pack_says_what_it_wrote(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "link").symlink_to("/nowhere")
    out = Ran(capsys, "pack", run_dir, "-o", tmp_path / "x.tar.zst").out
    assert out.startswith("run run-1: 4 files in ")
    assert "left out, not a plain file: link" in out


@pytest.mark.parametrize("command", ["show", "verify", "rm"])
def test_what_is_not_a_run_is_refused_with_a_mend(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capsys, command, tmp_path / "no", "--json")
    assert ran.status == 2
    assert ran.document["ok"] is False
    assert (ran.document["error"]["code"], ran.document["error"]["kind"]) == ("not_found", "refused")
    assert ran.document["error"]["fix"]


def test_rm_of_a_running_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin_session(tmp_path / "run", request())
    ran = Ran(capsys, "rm", tmp_path / "run")
    assert ran.status == 2
    assert "run_is_running" in ran.err
    assert (tmp_path / "run" / "run.json").exists()
