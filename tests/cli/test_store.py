"""`paritrace store`: documents, text and exit statuses (ST-11 to ST-13, SU-3, SU-4, SU-19)."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from paritrace.cli.entry import status_of

ROOT = Path(__file__).parents[2]


class Ran:
    """One command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.status = status_of(["store", *map(str, arguments)])
        self.out, self.err = capsys.readouterr()

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    (tmp_path / "staging" / "r" / "rank-0").mkdir(parents=True)
    (tmp_path / "staging" / "r" / "rank-0" / "a.jsonl").write_bytes(b"1\n2\n")
    return tmp_path / "staging"


def sync(capsys: pytest.CaptureFixture[str], staging: Path, *more: object) -> Ran:
    where = ("--staging", staging, "--store", staging.parent / "store", "--run-id", "r", "--rank", 0)
    return Ran(capsys, "sync", *where, "--node-id", "n", *more)


def test_from_staging_to_a_restored_run(
    capsys: pytest.CaptureFixture[str], staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    (tmp_path / "gpus" / "0000:01:00.0" / "information").write_text("Model: \t NVIDIA H200\nIRQ:   \t 11\n")
    monkeypatch.setattr("paritrace.capture.syncers._NVIDIA_GPUS", tmp_path / "gpus")
    first = sync(capsys, staging, "--local-rank", 0, "--once", "--json")
    assert (first.status, first.document["bundles"]) == (0, 1)
    assert Ran(capsys, "verify", store).status == 3
    assert sync(capsys, staging, "--final").status == 0
    found = Ran(capsys, "status", store, "--staging", staging, "--json")
    assert (found.status, found.document["staged"][0]["waiting_bytes"]) == (0, 0)
    assert "the cap is each node's own" in Ran(capsys, "status", "--staging", staging).out
    assert Ran(capsys, "verify", store, "--json").document["verdict"] == "intact"
    back = Ran(capsys, "restore", store, tmp_path / "back")
    assert (back.status, back.out.splitlines()[0]) == (0, f"run r restored whole into {tmp_path / 'back'}")
    node = json.loads((tmp_path / "back" / "rank-0" / "paritrace-node.n.json").read_text())
    assert (node["node_id"], node["devices"], "PATH" in node["environment_names"]) == ("n", ["NVIDIA H200"], True)


def test_damage_is_status_2_with_every_problem(
    capsys: pytest.CaptureFixture[str], staging: Path, tmp_path: Path
) -> None:
    sync(capsys, staging, "--final")
    (bundle,) = (tmp_path / "store" / ".paritrace-bundles" / "n" / "rank-0").glob("0*")
    bundle.write_bytes(bundle.read_bytes() + b"x")
    (bundle.parent / "notes\n\x1b[31m.txt").write_bytes(b"")
    for arguments in (("verify", tmp_path / "store"), ("restore", tmp_path / "store", tmp_path / "back")):
        ran = Ran(capsys, *arguments)
        assert ran.status == 2
        assert ran.out.count("wrong_digest") + ran.err.count("wrong_digest") == 1
        assert "foreign_file" in ran.out + ran.err
        assert "\x1b" not in ran.out + ran.err
    assert not (tmp_path / "back").exists()
    part = Ran(capsys, "restore", tmp_path / "store", tmp_path / "back", "--partial", "--json")
    assert (part.status, len(part.document["problems"])) == (3, 3)  # the digest, the bytes behind the frame, the file


def test_what_was_not_taken_is_status_3(capsys: pytest.CaptureFixture[str], staging: Path) -> None:
    (staging / "r" / "rank-0" / "a.jsonl").write_bytes(b"x" * 5000 + b"\n")
    ran = sync(capsys, staging, "--once", "--sync-batch-mib", 0.001)
    assert ran.status == 3
    assert "record_too_large: 'a.jsonl' from byte 0" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("sync", "--run-id", "r", "--rank", "0", "--once"), "no_store"),
        (("sync", "--store", "s", "--run-id", "r", "--rank", "0", "--once"), "no_staging"),
        (("sync", "--store", "s", "--staging", "s/x", "--run-id", "r", "--rank", "0", "--once"), "staging_in_store"),
        (("sync", "--store", "s", "--staging", "t", "--run-id", "../r", "--rank", "0", "--once"), "bad_id"),
        (("sync", "--store", "s", "--staging", "t", "--run-id", "r", "--rank", "0", "--once"), "staging_gone"),
        (("sync", "--store", "s", "--staging", "t", "--run-id", "r", "--rank", "0", "--once", "--final"), "usage"),
        (("status",), "no_store"),
        (("verify", "nowhere"), "not_a_store"),
        (("restore", "nowhere", "back"), "not_a_store"),
    ],
)
def test_refusals(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = Ran(capsys, *arguments, "--json")
    assert (ran.status, ran.document["error"]["code"], ran.document["error"]["kind"]) == (2, code, "refused")
    assert list(tmp_path.iterdir()) == []


def archive(path: Path, members: list[tuple[str, bytes, bytes]], *, mode: Literal["w:gz", "w"] = "w:gz") -> Path:
    with tarfile.open(path, mode) as opened:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname, info.mode = kind, len(data), "/etc/passwd", 0o6777
            opened.addfile(info, io.BytesIO(data))
    return path


def test_su4_a_sync_that_goes_on_is_a_stream_of_lines_and_no_document(
    capsys: pytest.CaptureFixture[str], staging: Path
) -> None:
    refused = sync(capsys, staging, "--json")
    assert (refused.status, refused.document["error"]["code"]) == (2, "usage")
    once = sync(capsys, staging, "--once", "--json-lines")
    assert (once.status, once.out.count("\n"), once.document["bundles"]) == (0, 1, 1)


@pytest.mark.slow
def test_su4_each_sync_and_each_trouble_is_a_line(staging: Path) -> None:
    where = ("--staging", staging, "--store", staging.parent / "store", "--run-id", "r", "--rank", "0")
    options = ("--node-id", "n", "--sync-interval", "0.2", "--json-lines")
    command = [sys.executable, "-m", "paritrace", "store", "sync", *map(str, where), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as syncing:
        assert syncing.stdout is not None
        try:
            first, second = (json.loads(syncing.stdout.readline()) for _ in range(2))
            assert (first["bundles"], len(first["published"])) == (1, 1)
            assert second["published"] == []
            store = staging.parent / "store"
            store.rename(staging.parent / "away")
            store.write_text("no folder")
            troubles = (json.loads(line) for line in syncing.stdout)
            error = next(one["error"] for one in troubles if one.get("ok") is False)
            assert error["kind"] in ("refused", "failed")
        finally:
            syncing.send_signal(signal.SIGINT)
        assert syncing.wait(timeout=60) == 130


@pytest.mark.parametrize(("name", "mode"), [("sync.tar.gz", "w:gz"), ("sync.tar", "w")])
def test_an_old_archive_is_restored_from_its_file_or_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, mode: Literal["w:gz", "w"]
) -> None:
    members = [
        ("./rank-0", tarfile.DIRTYPE, b""),
        ("./rank-0/a.jsonl", tarfile.REGTYPE, b"1\n"),
        ("x" * 150, b"0", b""),
    ]
    path = archive(tmp_path / name, members, mode=mode)
    for number, source in enumerate((path, tmp_path)):
        assert Ran(capsys, "restore", source, tmp_path / f"back{number}").status == 0
        assert (tmp_path / f"back{number}" / "rank-0" / "a.jsonl").read_bytes() == b"1\n"
        assert (tmp_path / f"back{number}" / "rank-0" / "a.jsonl").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize(
    "member",
    [
        ("../out", tarfile.REGTYPE, b"x"),
        ("/tmp/out", tarfile.REGTYPE, b"x"),
        ("a/../../out", tarfile.REGTYPE, b"x"),
        ("link", tarfile.SYMTYPE, b""),
        ("hard", tarfile.LNKTYPE, b""),
        ("pipe", tarfile.FIFOTYPE, b""),
        ("device", tarfile.CHRTYPE, b""),
        ("ok", tarfile.REGTYPE, b"twice"),
        ("ok/inside", tarfile.REGTYPE, b"x"),
    ],
)
def test_an_old_archive_cannot_escape(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, member: tuple[str, bytes, bytes]
) -> None:
    path = archive(tmp_path / "sync.tar.gz", [("ok", tarfile.REGTYPE, b"x"), member])
    ran = Ran(capsys, "restore", path, tmp_path / "back", "--json")
    assert (ran.status, ran.document["error"]["code"]) == (2, "bad_archive")
    assert [path.name for path in tmp_path.iterdir()] == ["sync.tar.gz"]


@pytest.mark.parametrize("keep", [0, 1, 3, 20, 60])
def test_an_old_archive_that_is_cut_off(capsys: pytest.CaptureFixture[str], tmp_path: Path, keep: int) -> None:
    path = archive(tmp_path / "sync.tar.gz", [("ok", tarfile.REGTYPE, bytes(range(256)) * 10)])
    path.write_bytes(path.read_bytes()[:keep])
    ran = Ran(capsys, "restore", path, tmp_path / "back", "--json")
    assert (ran.status, ran.document["error"]["code"]) == (2, "bad_archive")


WAIT_SECONDS = 120.0


def eventually(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
def test_st7_syncs_at_an_interval_wait_trouble_out_until_the_process_is_ended(
    capsys: pytest.CaptureFixture[str], staging: Path, tmp_path: Path
) -> None:
    journal, store = staging / "r" / "rank-0" / "a.jsonl", tmp_path / "store"
    bundles = store / ".paritrace-bundles" / "n" / "rank-0"
    store.write_bytes(b"in the way")
    where = ("--staging", str(staging), "--store", str(store), "--run-id", "r", "--rank", "0", "--node-id", "n")
    command = (sys.executable, "-m", "paritrace", "store", "sync", *where, "--sync-interval", "0.2")
    told = tmp_path / "told"
    with (
        told.open("wb") as stderr,
        subprocess.Popen(command, stderr=stderr, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}) as syncing,
    ):
        try:
            eventually(lambda: b"tried again at the next sync" in told.read_bytes())
            store.unlink()
            for number in (1, 2, 3):
                eventually(lambda number=number: len(list(bundles.glob(f"{number:08d}-*"))) == 1)  # type: ignore[misc]
                with journal.open("ab") as file:
                    file.write(b"more\n" * number)
        finally:
            syncing.terminate()
            assert syncing.wait(WAIT_SECONDS) == -signal.SIGTERM
    assert sync(capsys, staging, "--final").status == 0
    assert Ran(capsys, "verify", store).status == 0
    assert Ran(capsys, "restore", store, tmp_path / "back").status == 0
    assert (tmp_path / "back" / "rank-0" / "a.jsonl").read_bytes() == journal.read_bytes()
