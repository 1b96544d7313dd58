"""What signals do to a coordinator (SE-18)."""

import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from paritrace.session.commands import Command, Kind
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.generations import Generations
from paritrace.session.coordinator.interrupts import Interrupts


class Seen:
    """Stands for the desk and the generations: keeps what they are asked."""

    def __init__(self) -> None:
        self.asked: list[Command] = []
        self.killed = 0

    def ask_ourselves(self, command: Command) -> None:
        self.asked.append(command)

    def kill(self) -> None:
        self.killed += 1


@pytest.fixture
def folder(tmp_path: Path) -> Generator[int]:
    (tmp_path / "S").mkdir()
    held = os.open(tmp_path / "S", os.O_RDONLY | os.O_DIRECTORY)
    yield held
    os.close(held)


def test_se18_a_session_whose_directory_is_removed_closes_and_one_that_is_moved_goes_on(
    tmp_path: Path, folder: int
) -> None:
    seen = Seen()
    interrupts = Interrupts(cast("Generations", seen), folder)
    interrupts.look(cast("Desk", seen))
    (tmp_path / "S").rename(tmp_path / "T")
    interrupts.look(cast("Desk", seen))
    assert not seen.asked
    (tmp_path / "T").rmdir()
    interrupts.look(cast("Desk", seen))
    interrupts.look(cast("Desk", seen))
    assert [command.id.partition("-")[0] for command in seen.asked] == ["directory_removed"]


@pytest.mark.parametrize(
    ("numbers", "killed"),
    [
        ([signal.SIGHUP], 0),
        ([signal.SIGHUP, signal.SIGHUP, signal.SIGHUP], 0),
        ([signal.SIGINT, signal.SIGINT], 1),
        ([signal.SIGHUP, signal.SIGTERM], 1),
        ([signal.SIGINT, signal.SIGHUP], 0),
    ],
)
def test_se18_a_terminal_that_goes_closes_the_session_and_a_second_wish_ends_its_ranks(
    folder: int, numbers: list[signal.Signals], killed: int
) -> None:
    seen = Seen()
    interrupts = Interrupts(cast("Generations", seen), folder)
    for number in numbers:
        interrupts(number, None)
        interrupts.look(cast("Desk", seen))
    assert [command.kind for command in seen.asked] == [Kind.CLOSE]
    assert seen.killed == killed
