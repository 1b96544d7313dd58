"""Who holds a lock, by what /proc shows (EV-11)."""

import os
from pathlib import Path

import pytest

from paritrace.files.holders import MAX_COMMAND_CHARACTERS, command_of, holders_of


def locks(tmp_path: Path, *rows: str) -> Path:
    (tmp_path / "locks").write_text("".join(f"{row}\n" for row in rows))
    return tmp_path


def test_the_rows_of_other_files_kinds_and_containers_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    status = path.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    proc = locks(
        tmp_path,
        f"1: FLOCK  ADVISORY  WRITE 4711 {device}:{status.st_ino} 0 EOF",
        f"1: -> FLOCK  ADVISORY  WRITE 4712 {device}:{status.st_ino} 0 EOF",  # waits for it
        f"2: POSIX  ADVISORY  WRITE 4713 {device}:{status.st_ino} 0 EOF",
        f"3: FLOCK  ADVISORY  WRITE 0 {device}:{status.st_ino} 0 EOF",
        f"4: FLOCK  ADVISORY  WRITE -1 {device}:{status.st_ino} 0 EOF",
        f"5: FLOCK  ADVISORY  WRITE 4714 {device}:{status.st_ino + 1} 0 EOF",
        "6: LEASE",
    )
    assert holders_of(status, proc=proc) == (4711,)


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert holders_of(tmp_path.stat(), proc=tmp_path) == ()
    assert command_of(1, proc=tmp_path) == ""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"paritrace\0store\0sync\0", "paritrace store sync"),
        (b"a\0\x1b[31m\xff\0", "a ?[31m\ufffd"),
        (b"x" * 500, "x" * MAX_COMMAND_CHARACTERS + "…"),
        (b"", ""),
    ],
)
def test_a_command_line_is_one_bounded_printable_line(tmp_path: Path, said: bytes, told: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(said)
    assert command_of(7, proc=tmp_path) == told
