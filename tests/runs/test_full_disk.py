"""A disk that is really full: a small tmpfs, mounted where root allows (EV-10, P4)."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paritrace.errors import HostError, Outcome
from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import Loss
from paritrace.files import LOCAL, Appender
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import Receipt, SessionStatus
from paritrace.runs.journals import write_lines
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from paritrace.testing.faults import hidden_leftovers
from tests.runs.making import another_process, capture, header, request

SIZE_KIB = 160


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "tmpfs", str(disk)], check=False, capture_output=True
    ).returncode  # fmt: skip
    if not mounted:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(path: Path) -> None:
    """Write to a file until the disk takes no more."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


def write_until_full(journal: Appender) -> int:
    """Write records until the disk refuses one; return how many were acknowledged."""
    told = 0
    while True:
        try:
            write_lines(journal, codec.encode_mark(Name(told, "x" * 997)))
        except HostError as error:
            code = error.code
            break
        told += 1
    assert code == "disk_full"
    return told


@pytest.mark.slow
def test_a_capture_on_a_disk_that_fills_keeps_what_it_acknowledged(small_disk: Path) -> None:
    run_dir = small_disk / "run"
    session = begin_session(run_dir, request(process=another_process()))
    with session.open_journal() as journal:
        write_lines(journal, codec.encode_mark(header(session)))
        told = write_until_full(journal)
        records = [item for item in open_run(run_dir).records("rank-0") if isinstance(item, Name)]
        assert [record.id for record in records] == list(range(told))
    before = read_envelope(run_dir, files=LOCAL)
    with pytest.raises(HostError) as ending:
        session.end(SessionStatus.INCOMPLETE, Receipt(lines=told + 1, calls=0, details=0, states=0))
    assert (ending.value.code, ending.value.outcome) == ("disk_full", Outcome.REFUSED)
    assert read_envelope(run_dir, files=LOCAL) == before
    assert hidden_leftovers(small_disk) == []
    run = open_run(run_dir)
    assert run.sessions[0].seen.words == "interrupted; cause unknown"
    assert verify(run).verdict is Finding.NOT_CHECKED


@pytest.mark.slow
def test_space_that_comes_back_is_used_and_the_torn_line_named(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * (SIZE_KIB - 60) * 1024)
    session = begin_session(small_disk / "run", request(process=another_process()))
    with session.open_journal() as journal:
        write_lines(journal, codec.encode_mark(header(session)))
        told = write_until_full(journal)
        torn = journal.torn
        (small_disk / "ballast").unlink()
        write_lines(journal, codec.encode_mark(Name(told, "after")))
    items = list(open_run(small_disk / "run").records("rank-0"))
    assert isinstance(items[-1], Name)
    assert (items[-1].id, items[-1].text) == (told, "after")
    lost = [item for item in items if isinstance(item, Loss)]
    assert [(loss.offset, loss.length - 1) for loss in lost] == ([torn] if torn else [])


@pytest.mark.slow
def test_a_run_that_does_not_fit_is_not_begun_or_packed(small_disk: Path, tmp_path: Path) -> None:
    fill(small_disk / "ballast")
    capture(tmp_path / "run")
    for name in range(3):
        (tmp_path / "run" / "attachments" / f"noise-{name}").write_bytes(os.urandom(200_000))
    with pytest.raises(HostError) as packing:
        pack(tmp_path / "run", small_disk / "run.tar.zst")
    assert packing.value.code == "disk_full"
    with pytest.raises(HostError) as beginning:
        begin_session(small_disk / "other", request())
    assert (beginning.value.code, beginning.value.outcome) == ("disk_full", Outcome.REFUSED)
    assert hidden_leftovers(small_disk) == []
    assert not (small_disk / "run.tar.zst").exists()
    (small_disk / "ballast").unlink()
    begin_session(small_disk / "other", request())
