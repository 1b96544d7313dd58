"""Two real ranks of torch under a real coordinator: loads, saves, captures, on both or on none (SE-8, SE-15, SE-16)."""

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.state_dict_loader import load as distributed_load

from paritrace import Session
from paritrace.runs.envelope import ENVELOPE_NAME, SessionStatus
from paritrace.session.client import NotAppliedError
from paritrace.session.commands import Reply, Result
from paritrace.session.opening import read_journal, read_session
from paritrace.session.pytorch.digests import digest_of_state
from paritrace.session.states import RankState
from tests.session.coordinator.test_serving import has_ended, until

pytestmark = pytest.mark.slow
REPLICATED, SHARDED = "tests.session.torch_ranks:Replicated", "tests.session.torch_ranks:Sharded"


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """Where a session goes; its coordinator is ended after the test, whatever became of it."""
    yield tmp_path / "session"
    if (tmp_path / "session" / "session.json").exists():
        owner = read_session(tmp_path / "session").owner.pid
        if not has_ended(owner):
            os.kill(owner, signal.SIGKILL)
            until(lambda: has_ended(owner))


def _saved(session: Session, name: str) -> str:
    """The digest of the live state, as a save tells it."""
    return str(session.save(name).facts["state_digest"])


def _refused(error: pytest.ExceptionInfo[NotAppliedError]) -> Reply:
    reply = error.value.reply
    assert reply is not None
    assert reply.result is Result.REFUSED
    return reply


def test_se8_the_same_steps_after_a_load_give_the_same_bits_on_both_ranks(folder: Path) -> None:
    with Session.start(folder, REPLICATED, ranks=2) as session:
        session.run(2, wait=True, autosave=False)
        two = _saved(session, "two")
        session.run(2, wait=True, autosave=False)
        four = _saved(session, "four")
        loaded = session.load("two")
        assert (loaded.step, loaded.facts["state_digest"]) == (2, two)
        session.run(2, wait=True, autosave=False)
        assert _saved(session, "again") == four != two
        session.close()
    with Session.start(folder, REPLICATED, ranks=1, start_from="two") as alone:  # a whole state: any number of ranks
        assert alone.status().step == 2
        assert _saved(alone, "of-one") == two
        alone.close()
    begun = [line.facts for line in read_journal(folder).lines if line.facts.get("event") == "loaded"]
    assert begun[-1]["accepted"] == {"world_size": 2}


def test_f09_what_is_wrong_on_any_rank_refuses_the_load_on_all_and_the_next_command_works(folder: Path) -> None:
    with Session.start(folder, REPLICATED, ranks=2) as session:
        session.run(1, wait=True, autosave=False)
        one = _saved(session, "one")
        (folder / "checkpoints" / "one" / "random-1.pt").unlink()
        state = folder / "checkpoints" / "one" / "state.pt"
        data = bytearray(state.read_bytes())
        data[len(data) // 2] ^= 1
        state.write_bytes(data)
        with pytest.raises(NotAppliedError) as error:
            session.load("one")
        words = [f"{reason.rank}: {reason.words}" for reason in _refused(error).reasons]
        assert "1: random-1.pt: not in the checkpoint" in words
        assert any("state.pt: its content is not what was saved" in line for line in words)
        assert session.status().state is RankState.IDLE
        assert _saved(session, "after") == one
        assert session.run(1, wait=True).step == 2
        session.close()


def test_se8_a_disk_that_is_full_on_one_rank_leaves_no_checkpoint_and_a_session_that_goes_on(folder: Path) -> None:
    with Session.start(folder, REPLICATED, ranks=2, arguments={"full_on": 1}) as session:
        session.run(1, wait=True, autosave=False)
        with pytest.raises(NotAppliedError) as error:
            session.save("one")
        (reason,) = _refused(error).reasons
        assert reason.rank == 1
        assert "No space left" in reason.words
        assert not (folder / "checkpoints" / "one").exists()
        assert session.save("one").result is Result.APPLIED
        assert [path.name for path in (folder / "checkpoints").iterdir()] == ["one"]
        assert session.load("one").step == 1
        session.close()


def test_se8_a_sharded_state_is_saved_by_all_ranks_and_loaded_by_metadata_first(folder: Path) -> None:
    with Session.start(folder, SHARDED, ranks=2) as session:
        session.run(2, wait=True, autosave=False)
        saved = session.save("two")
        manifest = json.loads((folder / "checkpoints" / "two" / "manifest.json").read_bytes())
        assert manifest["sharded"] is True
        assert len(set(manifest["state_digests"].values())) == 2  # each rank holds another part
        session.run(1, wait=True, autosave=False)
        loaded = session.load("two")
        assert loaded.facts["retained_bytes"] == 0
        assert (loaded.step, loaded.facts["state_digest"]) == (2, saved.facts["state_digest"])
        session.close()
    whole = {
        f"{layer}.{kind}": torch.zeros(8, 8) if kind == "weight" else torch.zeros(8)
        for layer in (0, 2)
        for kind in ("weight", "bias")
    }
    state: dict[str, Any] = {"model": whole}
    distributed_load(state, checkpoint_id=folder / "checkpoints" / "two", no_dist=True)
    with Session.start(folder, SHARDED, ranks=1, start_from="two") as alone:  # resharded, since it says that it can
        assert _saved(alone, "of-one") == digest_of_state(whole)
        alone.close()


def test_se15_the_next_steps_are_captured_into_a_run_of_both_ranks_and_bits_stay(folder: Path) -> None:
    with Session.start(folder, REPLICATED, ranks=2) as session:
        session.run(2, wait=True, autosave=False)
        session.save("two")
        session.run(2, wait=True, autosave=False)
        four = _saved(session, "four")
        session.load("two")
        assert session.capture(1, level="module", name="look").facts["first_step"] == 2
        session.run(2, wait=True, autosave=False)
        assert _saved(session, "captured") == four
        session.close()
    envelope = json.loads((folder / "captures" / "look" / ENVELOPE_NAME).read_bytes())
    assert {one["rank"] for one in envelope["sessions"]} == {0, 1}
    assert {one["status"] for one in envelope["sessions"]} == {SessionStatus.COMPLETED.value}
    stamps: list[dict[str, Any]] = [json.loads(one["metadata"]["paritrace_session"]) for one in envelope["sessions"]]
    for stamp in stamps:
        assert (stamp["step"], stamp["config_revision"], stamp["command_epoch"]) == (2, 1, 7)
        assert stamp["checkpoint"]["path"] == "checkpoints/two"
        assert stamp["checkpoint"]["digest"]
        assert stamp["session"] == read_session(folder).session_id
    assert envelope["metadata"]["expected_steps"] == "2:3"
