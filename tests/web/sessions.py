"""Directories of resident sessions that tests of the web view look at: the records a session writes, without ranks."""

import zlib
from pathlib import Path
from struct import pack
from typing import Any

import msgspec

from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.identity import own_identity
from paritrace.process.stop_facts import Signalled
from paritrace.session.checkpoint_records import Manifest, Origin, Written
from paritrace.session.commands import Reason
from paritrace.session.directory import CAPTURES, CHECKPOINTS, FAILURES, JOURNAL, SESSION, SessionRecord
from paritrace.session.engines.seam import ExitEvidence
from paritrace.session.failure import FailureReport, LastHeard, RankFailure, Role
from paritrace.session.journal import encoded
from paritrace.session.kept_records import PREVIEW_RECORD, PREVIEWS, IdenticalTo, InputsNamed, PreviewRecord, Stamp
from paritrace.session.states import RankState
from tests.session.journals import Told
from tests.web.shelves import MARKUP, write_run

NO_PID = 2**22 + 1  # above what a kernel gives


def write_session(folder: Path, *, owner: ProcessIdentity | None = None, port: int = 1, words: str = MARKUP) -> Path:
    """A session that was run, stopped, saved, previewed, captured and failed; its owner has ended unless one is given.

    `words`: what the workload wrote and said.
    """
    folder.mkdir(parents=True)
    gone = msgspec.structs.replace(own_identity(), pid=NO_PID)
    record = SessionRecord("s-1", "local", "package:Fit", {"words": words}, 2, owner or gone, "127.0.0.1", port, 5)
    (folder / SESSION).write_bytes(msgspec.json.encode(record))
    (folder / JOURNAL).write_bytes(b"".join(map(encoded, _journal(words).lines)) + b"torn")
    _checkpoint(folder)
    _preview(folder, words)
    write_run(folder / CAPTURES / "mine")
    (folder / CAPTURES / "begun").mkdir()
    _failure(folder, words)
    return folder


def _journal(words: str) -> Told:
    told = Told()
    told.generation = 1
    told.add("generation", event="started", generation=1, config_revision=0)
    for number, (kind, body, result, reasons) in enumerate(_commands(words)):
        told.add("command", id=f"c{number}", kind=kind, body=body)
        if kind == "run":
            told.ran(0, 100)
        if kind == "save":
            told.checkpoint("saved", "here", 100)
        if kind == "capture":
            told.add("capture", id="c3", name="mine", steps=2, level="op", step=100, epoch=4, config_revision=0)
        if result:
            told.add("result", id=f"c{number}", kind=kind, result=result, step=100, epoch=number + 1, reasons=reasons)
    told.add("transition", before="idle", after="running", step=100, epoch=6)
    told.add("finding", rank=1, finding="unresponsive", words=words)
    told.add("exit", rank=1, words="ended by SIGKILL, not sent by us", step=120)
    return told.add("failure", code="rank_ended", why="rank 1 ended", step=120, epoch=6)


def _commands(words: str) -> tuple[tuple[str, dict[str, Any], str, list[str]], ...]:
    return (
        ("run", {"steps": 100}, "applied", []),
        ("configure", {"values": {"lr": -1}}, "refused", [f"1: invalid_value: {words}"]),
        ("save", {"name": "here"}, "applied", []),
        ("capture", {"steps": 2, "level": "op"}, "applied", []),
        ("preview", {"options": {"prompt": words}}, "", []),
    )


def _checkpoint(folder: Path) -> None:
    place = folder / CHECKPOINTS / "here"
    place.mkdir(parents=True)
    (place / "state.bin").write_bytes(b"123")
    origin = Origin("s-1", "package:Fit", 2, 1, 3, 0, 100)
    manifest = Manifest(origin, False, {"state.bin": Written(0, 3, "a")}, {"0": None}, 1_700_000_000_000_000_000)
    (place / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    (folder / CHECKPOINTS / "broken").mkdir()


def _preview(folder: Path, words: str) -> None:
    place = folder / PREVIEWS / "3"
    place.mkdir(parents=True)
    (place / "loss.png").write_bytes(png(40, 20))
    (place / "sample.txt").write_text(words)
    (place / "weights.bin").write_bytes(bytes(7))
    stamp = Stamp("s-1", 1, 4, 0, 100, InputsNamed(0, "digest"), IdenticalTo("checkpoints/here", 100, "d"))
    names = ("loss.png", "sample.txt", "weights.bin", "missing.txt")
    record = PreviewRecord(3, "previews/3", 100, stamp, {"prompt": words}, names)
    (place / PREVIEW_RECORD).write_bytes(msgspec.json.encode(record))


def _failure(folder: Path, words: str) -> None:
    place = folder / FAILURES
    place.mkdir()
    killed = RankFailure(
        rank=1,
        role=Role.CAUSE,
        words="ended by SIGKILL, not sent by us",
        exit=ExitEvidence(1, 4242, Signalled(9)),
        last=LastHeard(RankState.RUNNING, 6, 120, heartbeat_age_seconds=0.4, findings=("unresponsive",)),
        log_tail=f"line\n{words}\n",
    )
    ended = RankFailure(
        rank=0,
        role=Role.COLLATERAL,
        words="ended by SIGTERM, sent by us",
        exit=ExitEvidence(0, 4241, Signalled(15), signals_by_us=(15,)),
        last=LastHeard(RankState.RUNNING, 6, 119, errors=(Reason(0, "step_failed", words),)),
        stacks="Thread 1\n  File x, line 3 in step\n",
    )
    report = FailureReport(
        "s-1",
        1,
        "rank_ended",
        "rank 1 ended",
        "rank 1",
        "rank 1 ended by itself",
        "2026-01-01T00:00:00Z",
        (ended, killed),
    )
    (place / "1.json").write_bytes(msgspec.json.encode(report))


def png(width: int, height: int) -> bytes:
    """A picture of one grey."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([128]) * width) * height
    head = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
