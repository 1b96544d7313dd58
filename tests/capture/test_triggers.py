"""Ranks tell each other of a trigger by a name in a shared folder; one stat a step, and nothing raises (CA-36)."""

import errno
import os
from pathlib import Path

import pytest

from paritrace.capture.triggers import Signs, sign_of
from paritrace.files import LOCAL
from paritrace.testing.faults import ErrnoFiles


def opened(folder: Path, session_id: str) -> Signs:
    signs = Signs(folder, session_id=session_id, files=LOCAL)
    signs.open()
    return signs


def test_others_hear_once_and_the_one_who_told_does_not(tmp_path: Path) -> None:
    one, other = (opened(tmp_path / "triggers", f"rank-{rank}") for rank in (0, 1))
    assert (one.look(), other.look()) == ([], [])
    assert one.leave(37, "non_finite", window=False)
    (heard,) = other.look()
    assert (heard.name, heard.step, heard.window) == ("rank-0.37.non_finite", 37, False)
    assert one.look() == other.look() == []


def test_two_names_within_one_tick_of_the_clock_are_both_heard(tmp_path: Path) -> None:
    folder = tmp_path / "triggers"
    one, other = (opened(folder, f"rank-{rank}") for rank in (0, 1))
    one.leave(3, "loss_outlier", window=False)
    stood = os.stat(folder).st_mtime_ns
    assert [sign.step for sign in other.look()] == [3]
    one.leave(4, "crash", window=False)
    os.utime(folder, ns=(stood, stood))
    assert [sign.step for sign in other.look()] == [4]


def test_what_lay_there_when_the_session_began_says_nothing(tmp_path: Path) -> None:
    opened(tmp_path / "triggers", "rank-1").leave(9, "crash", window=False)
    assert opened(tmp_path / "triggers", "rank-0.restart-1").look() == []


@pytest.mark.parametrize(
    ("name", "step", "window"),
    [
        ("rank-1.37.non_finite", 37, False),
        ("rank-1.restart-2.5.user.window", 5, True),
        ("look", None, False),
        ("window", None, True),
        ("rank-1.x.crash", None, False),
        ("rank-1.99999999999999999999.crash", None, False),
        ("rank-", None, False),
        ("ä.1.b", None, False),
    ],
)
def test_a_name_says_its_step_or_was_left_by_a_person(name: str, step: int | None, window: bool) -> None:
    assert (sign_of(name).step, sign_of(name).window) == (step, window)


def test_telling_twice_is_no_fault_and_a_disk_that_refuses_is_one(tmp_path: Path) -> None:
    signs = opened(tmp_path / "triggers", "rank-0")
    assert signs.leave(1, "user", window=False)
    assert signs.leave(1, "user", window=False)
    full = Signs(tmp_path / "triggers", session_id="rank-1", files=ErrnoFiles(operation="open", number=errno.ENOSPC))
    full.open()
    assert not full.leave(1, "user", window=False)


def test_a_folder_that_is_gone_is_silence(tmp_path: Path) -> None:
    signs = opened(tmp_path / "triggers", "rank-0")
    (tmp_path / "triggers").rmdir()
    assert signs.look() == []
    assert not signs.leave(1, "crash", window=False)
