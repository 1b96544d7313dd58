"""What on disk speaks against a checkpoint, before new ranks are started for it (SE-7, SE-10)."""

import threading
from pathlib import Path

import pytest

from paritrace.files import LOCAL
from paritrace.session.checkpoint_choice import Wanted
from paritrace.session.checkpoint_records import Origin, Receipt
from paritrace.session.checkpoints import publish, seal
from paritrace.session.coordinator.surveying import Surveying
from paritrace.session.coordinator_events import Survey, Surveyed

OURS = Wanted("m:Ours", 1)


def saved(directory: Path, name: str, *, workload: str = "m:Ours", made: int = 1) -> Path:
    staging = directory / "checkpoints" / f".{name}"
    LOCAL.mkdir(staging)
    (staging / "state.bin").write_bytes(b"state")
    seal(staging, ("state.bin",), Receipt(0, Origin("s", workload, 1, 1, 1, 0, 3), made))
    return publish(staging, directory / "checkpoints" / name).folder / "state.bin"


def against(directory: Path, name: str) -> list[str]:
    return [one.code for one in Surveying(directory, OURS, tell=lambda _: None).reasons_against(name)]


def test_se7_a_checkpoint_that_is_not_there_whole_or_as_it_was_saved_is_told(tmp_path: Path) -> None:
    file = saved(tmp_path, "here")
    assert against(tmp_path, "here") == []
    assert against(tmp_path, "there") == ["not_a_checkpoint"]
    assert against(tmp_path, "../there") == ["bad_name"]
    file.write_bytes(b"etats")
    assert against(tmp_path, "here") == ["damaged_file"]
    file.unlink()
    assert against(tmp_path, "here") == ["damaged_file"]


def test_se10_latest_is_that_of_this_class_and_anothers_is_left_to_the_ranks(tmp_path: Path) -> None:
    assert against(tmp_path, "latest") == ["no_checkpoint"]
    theirs = saved(tmp_path, "theirs", workload="m:Theirs", made=5)
    assert against(tmp_path, "latest") == []  # the class may say that it accepts it
    ours = saved(tmp_path, "ours")
    ours.write_bytes(b"etats")
    assert against(tmp_path, "latest") == ["damaged_file"]
    ours.unlink()
    theirs.unlink()
    assert against(tmp_path, "latest") == ["no_checkpoint", "rejected", "rejected"]


@pytest.mark.parametrize("name", ["here", "there"])
def test_se21_what_is_found_is_told_from_a_thread_of_its_own(tmp_path: Path, name: str) -> None:
    saved(tmp_path, "here")
    told: list[tuple[Surveyed, int]] = []
    done = threading.Event()

    def tell(event: Surveyed) -> None:
        told.append((event, threading.get_ident()))
        done.set()

    Surveying(tmp_path, OURS, tell=tell)(Survey("again", name))
    assert done.wait(30)
    assert (told[0][0].command_id, bool(told[0][0].reasons)) == ("again", name == "there")
    assert told[0][1] != threading.get_ident()
