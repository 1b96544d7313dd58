"""F-11, F-15: a folder is a checkpoint by its manifest, written last, with the files of all ranks (SE-8)."""

import json
import shutil
from pathlib import Path

import pytest

from paritrace.session.client import NotAppliedError
from paritrace.session.directory import CHECKPOINTS
from tests.cases.live_sessions import layers

pytestmark = pytest.mark.slow


def test_f11_a_folder_without_its_manifest_is_passed_over_and_does_not_hold_up_the_next_start(tmp_path: Path) -> None:
    with layers(tmp_path / "S") as session:
        session.run(3, autosave=False, wait=True)
        session.save("three")
        session.run(2, autosave=False, wait=True)
        session.save("torn")
        (tmp_path / "S" / CHECKPOINTS / "torn" / "manifest.json").unlink()
        with pytest.raises(NotAppliedError) as refused:
            session.load("torn")
        assert any("manifest" in one for one in refused.value.details)
        reply = session.load("latest")
        assert reply.step == 3
        assert any(note.startswith("not taken: ") and "torn" in note for note in reply.notes), reply
        session.run(1, autosave=False, wait=True)
        session.save("four")
        assert session.load("latest").step == 4


def test_f15_a_checkpoint_without_the_file_of_one_rank_is_refused_on_all(tmp_path: Path) -> None:
    with layers(tmp_path / "S") as session:
        session.run(3, autosave=False, wait=True)
        session.save("three")
        folder = tmp_path / "S" / CHECKPOINTS / "three"
        assert set(json.loads((folder / "manifest.json").read_text())["files"]) == {"rank-0.json", "rank-1.json"}
        copy = tmp_path / "S" / CHECKPOINTS / "copy"
        shutil.copytree(folder, copy)
        (copy / "rank-1.json").unlink()
        session.run(1, autosave=False, wait=True)
        with pytest.raises(NotAppliedError) as refused:
            session.load("copy")
        assert any("rank-1.json" in one for one in refused.value.details)
        assert session.status().step == 4
        assert session.load("three").step == 3
