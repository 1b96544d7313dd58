"""What the work thread does for each command, one rank driven by hand (SE-7 to SE-10, SE-22 to SE-35)."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paritrace.session.checkpoints import keep, read_checkpoint
from paritrace.session.commands import Kind
from paritrace.session.messages import Answer, Autosaved, Beat, Ended, Round, RoundName, Verdict
from paritrace.session.states import RankState
from tests.session.rank.lines import Played
from tests.session.rank.workloads import Resident

RESIDENT = "tests.session.rank.workloads:Resident"
OTHER = "tests.session.rank.workloads:Other"


class Session:
    """A built rank of `Resident`."""

    def __init__(self, directory: Path, workload: str = RESIDENT, **changes: Any) -> None:
        self.directory = directory
        self.played = Played(directory, workload, **changes)
        self.built = self.played.built()
        self.resident = Resident.made[-1]

    def ask(self, kind: Kind, body: dict[str, Any] | None = None) -> list[Answer]:
        return self.played.command(kind, body or {})

    def save(self, name: str) -> dict[str, Any]:
        answers = self.ask(Kind.SAVE, {"name": name})
        assert answers[-1].verdict is Verdict.YES, answers
        return keep(self.directory, {"ranks": [answers[-1].facts]})

    def state(self) -> tuple[object, ...]:
        """All that is resident."""
        one = self.resident
        return (one.total, one.add, one.size, one.text)


def _refused(answers: list[Answer]) -> list[str]:
    """The words of a refusal; the rank is Idle again and its next command works."""
    refused = next(answer for answer in answers if answer.verdict is not Verdict.YES)
    assert refused.verdict is Verdict.REFUSED, refused
    return [reason.words for reason in refused.reasons]


def test_se34_a_check_that_finds_things_missing_tells_all_of_them_before_loading(tmp_path: Path) -> None:
    session = Session(tmp_path, arguments={"raising": "check"})
    assert session.built.state is RankState.ERROR
    assert [reason.words for reason in session.built.reasons] == ["no accelerator", "no package x"]
    assert session.played.close() == 0


def test_se23_the_identity_of_inputs_is_told_and_written_down(tmp_path: Path) -> None:
    session = Session(tmp_path)
    assert session.built.facts["inputs"] == {"digest": "digest-of-first", "generation": 0}
    assert session.built.facts["state_digest"] == "0.0 1 first"
    assert json.loads((tmp_path / "inputs" / "digest-of-first.json").read_bytes())["entries"] == [{"name": "first"}]
    assert session.resident.calls == ["release_setup"]
    assert session.played.close() == 0


def test_se23_inputs_whose_manifest_cannot_be_written_are_there_and_it_is_warned_of(tmp_path: Path) -> None:
    session = Session(tmp_path)
    shutil.rmtree(tmp_path / "inputs")
    (tmp_path / "inputs").write_text("a disk that refuses")
    assert session.ask(Kind.INPUTS, {"reference": {"text": "second"}})[-1].verdict is Verdict.YES
    assert session.resident.text == "second"
    beat = session.played.line.first(Beat, lambda beat: bool(beat.warnings))
    assert "the manifest of these inputs was not kept" in beat.warnings[0]
    assert session.played.run(1, at=0).step == 1
    assert session.played.close() == 0


def test_se8_no_checkpoint_is_called_latest_and_one_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    session = Session(tmp_path)
    assert _refused(session.ask(Kind.SAVE, {"name": "latest"})) == [
        "latest is what a load calls the newest checkpoint; give another name"
    ]
    assert _refused(session.ask(Kind.LOAD, {"checkpoint": "nothere"})) == [
        "nothere is no checkpoint: there is nothing of this name"
    ]
    assert session.played.close() == 0


def test_se9_configure_plans_then_applies_and_adds_one_to_the_revision(tmp_path: Path) -> None:
    session = Session(tmp_path)
    answers = session.ask(Kind.CONFIGURE, {"values": {"add": 5.0}})
    assert [answer.verdict for answer in answers] == [Verdict.YES, Verdict.YES]
    assert answers[-1].config_revision == 1
    assert answers[-1].facts["changed"] == ["add"]
    session.played.run(2, at=0)
    assert session.resident.total == 10
    assert session.played.close() == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"add": 13.0}, ["13 is not wanted", "and never was"]),
        ({"add": 500.0}, ["add: 500.0 is above 100.0 (from the request)"]),
        ({"size": 2}, ["size: takes effect by a rebuild only"]),
        ({"num_letters": 3}, ["num_letters: belongs to the inputs, 5"]),
        ({"ad": 1.0}, ["ad: no field of this workload"]),
    ],
)
def test_se9_a_refused_configure_gives_every_reason_and_changes_nothing(
    tmp_path: Path, values: dict[str, Any], words: list[str]
) -> None:
    session = Session(tmp_path)
    session.played.run(1, at=0)
    before = session.state()
    assert _refused(session.ask(Kind.CONFIGURE, {"values": values})) == words
    assert session.state() == before
    assert session.ask(Kind.CONFIGURE, {"values": {"add": 2.0}})[-1].config_revision == 1
    assert session.played.close() == 0


@pytest.mark.parametrize(
    ("method", "kind", "body"),
    [
        ("apply_config", Kind.CONFIGURE, {"values": {"add": 2.0}}),
        ("rebuild", Kind.REBUILD, {"values": {"size": 3}}),
        ("install_inputs", Kind.INPUTS, {"reference": {"text": "second"}}),
        ("apply", Kind.LOAD, {"checkpoint": "one"}),
    ],
)
@pytest.mark.parametrize("fault", ["raising", "unchanged"])
def test_se7_a_fault_is_fatal_once_something_is_released_and_a_refusal_before(
    tmp_path: Path, method: str, kind: Kind, body: dict[str, Any], fault: str
) -> None:
    session = Session(tmp_path)
    session.played.run(1, at=0)
    session.save("one")
    before = session.state()
    setattr(session.resident, fault, method)
    answers = session.ask(kind, body)
    answer = next(answer for answer in answers if answer.verdict is not Verdict.YES)
    if fault == "raising":
        assert answer.verdict is Verdict.FAILED
        assert f"{method} fails" in answer.reasons[0].words
        assert session.played.line.first(Beat, lambda beat: beat.state is RankState.ERROR).epoch == answer.epoch
    else:
        assert answer.verdict is Verdict.REFUSED
        assert [reason.words for reason in answer.reasons] == [f"{method}: nothing was touched", "so it is said"]
        assert session.state() == before
        session.played.round(kind, RoundName.ABORT)
        session.resident.unchanged = ""
        retried = session.ask(kind, body)
        assert retried[-1].verdict is Verdict.YES, retried
    assert session.played.close() == 0
    assert session.resident.calls[-1] == "close"


def test_se33_configure_takes_values_and_inputs_together(tmp_path: Path) -> None:
    session = Session(tmp_path)
    answers = session.ask(Kind.CONFIGURE, {"values": {"add": 3.0}, "inputs": {"text": "second"}})
    assert answers[-1].verdict is Verdict.YES, answers
    assert answers[-1].facts["inputs"] == {"digest": "digest-of-second", "generation": 1}
    assert (session.resident.text, session.resident.add) == ("second", 3.0)
    assert _refused(session.ask(Kind.CONFIGURE, {"values": {"add": 500.0}, "inputs": {}})) == [
        "no text was named",
        "add: 500.0 is above 100.0 (from the request)",
    ]
    assert session.played.close() == 0


def test_se33_values_whose_first_step_fails_are_put_back_and_it_is_said(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(1, at=0)
    session.ask(Kind.CONFIGURE, {"values": {"add": 5.0}})
    session.resident.raising = "step"
    heard = session.played.line.num_heard
    session.played.begin_run(3, at=1)
    ended = session.played.line.first(Ended, after=heard)
    assert [reason.code for reason in ended.reasons] == ["step_raised", "values_put_back"]
    assert "revision 0" in ended.reasons[1].words
    assert session.resident.add == 1.0
    assert session.played.close() == 0


def test_se33_a_rebuild_keeps_the_inputs_and_carries_the_whole_request(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(2, at=0)
    answers = session.ask(Kind.REBUILD, {"values": {"size": 4, "add": 2.0}})
    assert answers[-1].verdict is Verdict.YES, answers
    assert answers[-1].config_revision == 1
    assert (session.resident.size, session.resident.total, session.resident.text) == (4, 0.0, "first")
    assert session.resident.calls == ["release_setup", "release_setup"]
    assert session.played.close() == 0


def test_se25_an_unknown_value_that_was_tolerated_once_is_not_refused_by_the_next_command(tmp_path: Path) -> None:
    session = Session(tmp_path)
    for kind in (Kind.CONFIGURE, Kind.REBUILD):
        dropped = session.ask(kind, {"values": {"typing": 1, "add": 2.0}, "tolerate_unknown": True})[-1]
        assert (dropped.verdict, any("typing" in note for note in dropped.notes)) == (Verdict.YES, True)
        assert session.ask(kind, {"values": {"add": 3.0}})[-1].verdict is Verdict.YES
    assert session.played.close() == 0


def test_se33_ranks_that_are_started_out_of_an_error_take_what_the_request_brings(tmp_path: Path) -> None:
    session = Session(
        tmp_path,
        first_config={"add": 2.0, "typing": 1},
        tolerate_unknown=True,
        inputs_digest="of-before",
        inputs_reference={"text": "second"},
    )
    facts = session.played.built().facts
    assert session.resident.text == "second"
    assert facts["inputs"]["generation"] == 1
    assert [one["value"] for one in facts["config"]["settings"] if one["name"] == "add"] == [2.0]
    assert session.played.close() == 0


def test_se8_a_load_brings_back_state_step_and_configuration(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(3, at=0)
    saved = session.save("three")
    assert (saved["path"], saved["num_files"]) == ("checkpoints/three", 1)
    session.ask(Kind.CONFIGURE, {"values": {"add": 7.0, "every": 99}})
    session.played.run(2, at=3)
    answers = session.ask(Kind.LOAD, {"checkpoint": "three"})
    assert answers[0].facts["retained_bytes"] == len("3.0 1")
    assert answers[0].facts["digest"] == saved["digest"]
    loaded = answers[-1]
    assert (loaded.verdict, loaded.step, loaded.config_revision) == (Verdict.YES, 3, 2)
    assert loaded.facts["state_digest"] == "3.0 1 first"
    assert session.state() == (3.0, 1.0, 1, "first")
    values = loaded.facts["config"]["settings"]
    assert {one["name"]: one["value"] for one in values} == {"add": 1.0, "size": 1, "every": 99}
    told = {"path": "checkpoints/three", "step": 3, "digest": saved["digest"]}
    assert session.played.line.first(Beat, lambda beat: beat.checkpoint == told).step == 3
    heard = session.played.line.num_heard
    session.played.run(1, at=3)
    assert session.resident.total == 4
    assert session.played.line.first(Beat, lambda beat: beat.step == 4, after=heard).checkpoint != told
    assert session.played.close() == 0


def test_se8_a_checkpoint_that_fails_gives_every_failing_invariant_and_changes_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(3, at=0)
    session.save("three")
    state = tmp_path / "checkpoints" / "three" / "state.txt"
    state.write_text("-3 2")
    before = session.state()
    words = _refused(session.ask(Kind.LOAD, {"checkpoint": "three"}))
    assert words == [
        "state.txt: 4 bytes where 5 were saved",
        "the total is below 0",
        "size 2 where 1 is resident",
    ]
    assert session.state() == before
    state.write_text("3.0 7")
    assert _refused(session.ask(Kind.LOAD, {"checkpoint": "three"})) == [
        "state.txt: its content is not what was saved",
        "size 7 where 1 is resident",
    ]
    state.unlink()
    assert len(_refused(session.ask(Kind.LOAD, {"checkpoint": "three"}))) == 2
    assert _refused(session.ask(Kind.LOAD, {"checkpoint": "../three"}))
    assert _refused(session.ask(Kind.LOAD, {"checkpoint": "never"}))
    assert session.played.run(1, at=3).step == 4
    assert session.played.close() == 0


def test_se8_another_class_takes_a_checkpoint_where_it_says_so_and_it_is_told(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(3, at=0)
    session.save("three")
    assert session.played.close() == 0

    other = Session(tmp_path, OTHER, generation=2)
    loaded = other.ask(Kind.LOAD, {"checkpoint": "three"})[-1]
    assert (loaded.verdict, loaded.step, other.resident.total) == (Verdict.YES, 3, 3.0)
    assert loaded.facts["accepted"] == {"workload": RESIDENT}
    assert f"it was saved by another workload: {RESIDENT}" in loaded.notes
    other.save("of-other")
    assert other.played.close() == 0

    again = Session(tmp_path, start_from="three", generation=3)
    assert "accepted" not in again.built.facts["start_from"]
    assert _refused(again.ask(Kind.LOAD, {"checkpoint": "of-other"})) == [
        f"saved by {OTHER}, this is {RESIDENT}, which does not say that it accepts that"
    ]
    assert again.played.close() == 0


def test_se8_a_save_that_fails_is_refused_and_leaves_no_checkpoint(tmp_path: Path) -> None:
    session = Session(tmp_path, arguments={"raising": "save"})
    assert "save fails" in _refused(session.ask(Kind.SAVE, {"name": "one"}))[0]
    session.resident.raising = ""
    session.save("one")
    assert _refused(session.ask(Kind.SAVE, {"name": "one"})) == ["there is a checkpoint one already"]
    assert _refused(session.ask(Kind.SAVE, {"name": "../one"}))
    assert [path.name for path in (tmp_path / "checkpoints").iterdir() if not path.name.startswith(".")] == ["one"]
    assert session.played.close() == 0


def test_se10_a_run_saves_on_pause_and_a_failed_autosave_keeps_the_one_before(tmp_path: Path) -> None:
    session = Session(tmp_path, autosave_every=2)
    ended = session.played.run(5, at=0)
    assert ended.facts["checkpoint"]["path"] == "autosave/step-00000005-g1-e1"
    names = sorted(path.name for path in (tmp_path / "autosave").iterdir() if not path.name.startswith("."))
    assert names == ["step-00000004-g1-e1", "step-00000005-g1-e1"]  # that of step 2 made room
    said = [one for one in session.played.line.heard() if isinstance(one, Autosaved)]
    assert [(one.step, one.facts["name"], one.words) for one in said] == [
        (step, f"autosave/step-0000000{step}-g1-e1", "") for step in (2, 4, 5)
    ]
    last = read_checkpoint(tmp_path / "autosave" / names[-1])
    assert said[-1].facts == {"name": f"autosave/{names[-1]}", **last.identity}
    assert said[-1].seconds > 0
    session.resident.raising = "save"
    session.played.run(1, at=5)
    beat = session.played.line.first(Beat, lambda beat: bool(beat.warnings))
    assert "the autosave at step 6 failed" in beat.warnings[0]
    failed = session.played.line.first(Autosaved, lambda one: one.step == 6)
    assert "save fails" in failed.words
    assert failed.facts == {}
    assert sorted(path.name for path in (tmp_path / "autosave").iterdir() if path.name[0] != ".") == names
    session.resident.raising = ""
    assert "checkpoint" not in session.played.run(1, at=6, autosave=False).facts
    assert session.played.close() == 0


def test_se10_what_came_to_no_checkpoint_on_another_rank_is_saved_on_the_next_pause(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(1, at=0, autosave=False)
    assert session.ask(Kind.SAVE, {"name": "one"})[-1].verdict is Verdict.YES
    assert session.played.round(Kind.SAVE, RoundName.ABORT).verdict is Verdict.YES  # another rank's disk was full
    session.ask(Kind.STOP)
    told = "autosave/step-00000001-g1-e1"
    assert session.played.line.first(Beat, lambda beat: beat.checkpoint.get("path") == told).step == 1
    assert (tmp_path / told / "manifest.json").exists()
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert session.played.close() == 0


def test_se37_a_session_starts_from_the_latest_and_tells_what_it_did_not_take(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(3, at=0)
    session.save("three")
    session.ask(Kind.CONFIGURE, {"values": {"add": 4.0}})
    session.played.run(1, at=3)
    assert session.played.close() == 0
    (tmp_path / "checkpoints" / "half").mkdir()

    again = Session(tmp_path, start_from="latest", generation=2)
    assert (again.built.state, again.built.step) == (RankState.IDLE, 4)
    beat = again.played.line.first(Beat, lambda beat: beat.state is RankState.IDLE)
    assert beat.step == 4  # never told as Idle at another step
    assert any("not started from checkpoints/half" in words for words in beat.warnings)
    assert again.built.facts["chosen"] == "autosave/step-00000004-g1-e4"
    assert "half is no checkpoint" in again.built.facts["rejected"][0]
    assert again.state() == (7.0, 4.0, 1, "first")
    assert again.played.close() == 0

    damaged = tmp_path / "autosave" / "step-00000004-g1-e4" / "state.txt"
    damaged.write_text("9.9 1")
    error = Session(tmp_path, start_from="latest", generation=3)
    assert error.built.state is RankState.ERROR  # and no silent fall-back to checkpoint three
    assert "its content is not what was saved" in error.built.reasons[0].words
    assert error.played.close() == 0


def test_se23_a_start_from_a_checkpoint_has_the_inputs_it_was_saved_under(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.ask(Kind.CONFIGURE, {"inputs": {"text": "second"}})
    session.played.run(3, at=0)
    session.save("three")
    assert session.played.close() == 0

    again = Session(tmp_path, start_from="three", generation=2)
    assert (again.built.state, again.built.step) == (RankState.IDLE, 3)
    assert again.built.facts["inputs"]["digest"] == "digest-of-second"
    assert again.state() == (3.0, 1.0, 1, "second")
    assert again.played.close() == 0

    other = Session(tmp_path, generation=3)
    assert _refused(other.ask(Kind.LOAD, {"checkpoint": "three"})) == [
        'saved with inputs digest-of-second, present are digest-of-first; inputs of {"text":"second"} come first'
    ]
    assert other.played.close() == 0


def test_se9_a_new_generation_has_the_inputs_of_the_one_before(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.ask(Kind.CONFIGURE, {"inputs": {"text": "second"}})
    assert session.played.close() == 0
    for generation, text in ((2, "second"), (3, "first")):
        again = Session(tmp_path, inputs_digest=f"digest-of-{text}", generation=generation)
        assert again.resident.text == text
        assert again.played.close() == 0

    manifest = tmp_path / "inputs" / "digest-of-second.json"
    manifest.write_text(manifest.read_text().replace('"text":"second"', '"text":"third"'))
    changed = Session(tmp_path, inputs_digest="digest-of-second", generation=4)
    assert changed.built.state is RankState.ERROR
    assert [reason.code for reason in changed.built.reasons] == ["inputs_changed"]
    assert changed.played.close() == 0


def test_se9_inputs_are_prepared_while_steps_go_on_then_installed_and_published(tmp_path: Path) -> None:
    session = Session(tmp_path)
    resident, played = session.resident, session.played
    resident.go_on.clear()
    played.begin_run(1 << 40, at=0)
    _ask_to_prepare(played, Kind.INPUTS, {"reference": {"text": "second"}})
    assert resident.preparing.wait(30)
    played.line.first(Beat, lambda beat: beat.step > 10)  # steps go on meanwhile
    resident.go_on.set()
    prepared = played.line.first(Answer, lambda answer: answer.name is RoundName.PREPARE)
    assert prepared.digest == "digest-of-second"
    assert prepared.facts["entries"] == [{"name": "second"}]
    reserved = played.round(Kind.INPUTS, RoundName.RESERVE).step
    assert played.round(Kind.INPUTS, RoundName.PARK, step=reserved).verdict is Verdict.YES
    for name in (RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH):
        answer = played.round(Kind.INPUTS, name)
        assert answer.verdict is Verdict.YES, answer
    assert answer.facts["inputs"] == {"digest": "digest-of-second", "generation": 1}
    assert resident.text == "second"
    assert played.round(Kind.INPUTS, RoundName.RESUME, step=1 << 40).verdict is Verdict.YES
    played.line.first(Beat, lambda beat: beat.step > reserved + 1)
    assert played.close() == 0


def test_se9_a_configure_prepares_its_inputs_while_steps_go_on(tmp_path: Path) -> None:
    session = Session(tmp_path)
    resident, played = session.resident, session.played
    body = {"values": {"add": 3.0}, "inputs": {"text": "second"}}
    resident.go_on.clear()
    played.begin_run(1 << 40, at=0)
    _ask_to_prepare(played, Kind.CONFIGURE, body)
    assert resident.preparing.wait(30)
    played.line.first(Beat, lambda beat: beat.step > 10)
    resident.go_on.set()
    prepared = played.line.first(Answer, lambda answer: answer.name is RoundName.PREPARE)
    assert (prepared.verdict, prepared.digest) == (Verdict.YES, "digest-of-second")
    reserved = played.round(Kind.CONFIGURE, RoundName.RESERVE).step
    assert played.round(Kind.CONFIGURE, RoundName.PARK, step=reserved).verdict is Verdict.YES
    assert resident.text == "first"
    for name in (RoundName.VOTE, RoundName.ACT):
        answer = played.round(Kind.CONFIGURE, name, body)
        assert answer.verdict is Verdict.YES, answer
    assert answer.facts["inputs"] == {"digest": "digest-of-second", "generation": 1}
    assert (resident.text, resident.add) == ("second", 3.0)
    assert played.close() == 0


def test_se9_what_is_prepared_after_its_command_was_given_up_is_let_go_of(tmp_path: Path) -> None:
    session = Session(tmp_path)
    resident, played = session.resident, session.played
    resident.go_on.clear()
    _ask_to_prepare(played, Kind.CONFIGURE, {"inputs": {"text": "second"}})
    assert resident.preparing.wait(30)
    assert played.round(Kind.CONFIGURE, RoundName.RELEASE).verdict is Verdict.YES
    assert session.ask(Kind.CONFIGURE, {"values": {"add": 2.0}})[-1].verdict is Verdict.YES  # after the abandoning
    assert _refused(session.ask(Kind.CONFIGURE, {"inputs": {"text": "third"}})) == [
        "inputs that were given up are still being prepared"
    ]
    resident.go_on.set()
    answers = session.ask(Kind.CONFIGURE, {"inputs": {"text": "third"}})
    while answers[0].verdict is not Verdict.YES:
        answers = session.ask(Kind.CONFIGURE, {"inputs": {"text": "third"}})
    assert answers[-1].facts["inputs"]["digest"] == "digest-of-third"
    assert resident.text == "third"
    assert played.close() == 0


def _ask_to_prepare(played: Played, kind: Kind, body: dict[str, Any]) -> None:
    """Write the round and wait for nothing."""
    played._number += 1
    name, command_id = RoundName.PREPARE, f"command-{played._number}"
    played.line.say(Round(generation=1, command_id=command_id, kind=kind, epoch=played.epoch + 1, name=name, body=body))


def test_se24_a_schedule_holds_for_its_run_alone(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(4, at=0, schedule={"add": [[1, 10.0], [3, 100.0]]})
    assert session.resident.total == 1 + 10 + 10 + 100
    session.played.run(2, at=4)
    assert session.resident.total == 121 + 2
    words = _refused(session.played.begin_run(2, at=6, schedule={"add": [[0, 500.0]], "size": [[0, 2]], "x": []}))
    assert len(words) >= 3
    assert session.played.run(1, at=6).step == 7
    session.played.begin_run(1_000_000, at=7, schedule={"add": [[0, 5.0]]}, autosave=False)
    session.played.line.first(Beat, lambda one: one.step > 7)  # its first step is done: one that parks before has none
    session.played.park(Kind.SAVE)
    assert session.played.line.first(Beat, lambda one: bool(one.scheduled)).scheduled == {"add": 5.0}
    assert session.played.close() == 0


def test_se32_a_preview_is_copied_at_its_step_and_may_be_written_while_steps_go_on(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(2, at=0)
    first = session.ask(Kind.PREVIEW)[-1]
    assert first.facts["path"] == "previews/1"
    assert (tmp_path / "previews" / "1" / "total.txt").read_text() == "2.0"
    record = json.loads((tmp_path / "previews" / "1" / "preview.json").read_bytes())
    assert record["files"] == ["total.txt"]
    assert record["stamp"]["command_epoch"] == 1
    assert record["stamp"]["checkpoint"]["path"].startswith("autosave/")
    session.resident.go_on.clear()
    assert session.ask(Kind.PREVIEW, {"options": {"later": True}})[-1].facts["rendering"] is True
    assert _refused(session.ask(Kind.PREVIEW)) == ["the preview before is still being rendered"]
    session.played.run(1, at=2)
    session.resident.go_on.set()
    session.played.line.first(
        Beat, lambda beat: beat.preview.get("path") == "previews/2" and "rendering" not in beat.preview
    )
    assert (tmp_path / "previews" / "2" / "total.txt").read_text() == "2.0"
    session.resident.raising = "preview"
    assert "preview fails" in _refused(session.ask(Kind.PREVIEW))[0]
    assert session.played.close() == 0


def test_se32_a_rank_makes_previews_where_its_workload_offers_them_in_a_folder_of_its_own(tmp_path: Path) -> None:
    showing = Session(tmp_path, "tests.session.rank.workloads:Showing", rank=1, world_size=2)
    showing.played.run(2, at=0, autosave=False, preview_every=1)
    made = showing.ask(Kind.PREVIEW, {"rank": 1})
    assert made[0].facts == {"offers": True}
    assert (made[-1].facts["rank"], made[-1].facts["path"]) == (1, "previews/rank-1/3")  # two came by cadence
    assert (tmp_path / "previews" / "rank-1" / "3" / "total.txt").read_text() == "2.0"
    assert [answer.facts for answer in showing.ask(Kind.PREVIEW, {"rank": 0})] == [{"offers": False}, {}]
    assert _refused(showing.ask(Kind.PREVIEW, {"rank": 2})) == ["2 is none of 2 ranks"]
    assert showing.played.close() == 0

    plain = Session(tmp_path, rank=1, world_size=2, generation=2)  # says nothing of it: rank 0 alone offers one
    assert [answer.facts for answer in plain.ask(Kind.PREVIEW)] == [{"offers": False}, {}]
    assert _refused(plain.ask(Kind.PREVIEW, {"rank": 1})) == ["rank 1 offers no preview"]
    assert plain.played.close() == 0


@pytest.mark.parametrize("later", [False, True])
def test_se7_of_a_preview_that_another_rank_could_not_make_nothing_stays(tmp_path: Path, later: bool) -> None:
    session = Session(tmp_path)
    assert session.ask(Kind.PREVIEW)[-1].facts["path"] == "previews/1"
    session.resident.go_on.clear() if later else None
    made = session.ask(Kind.PREVIEW, {"options": {"later": later}})[-1]
    assert made.facts["path"] == "previews/2"
    assert session.played.round(Kind.PREVIEW, RoundName.ABORT).verdict is Verdict.YES
    session.resident.go_on.set()
    answers = session.ask(Kind.PREVIEW)
    while answers[0].verdict is not Verdict.YES:  # the one that was given up is still being written
        answers = session.ask(Kind.PREVIEW)
    assert {path.name for path in (tmp_path / "previews").iterdir()} == {"1", str(answers[-1].facts["generation"])}
    assert session.played.close() == 0


def test_se10_previews_by_cadence_end_for_their_run_when_one_fails(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(5, at=0, preview_every=2)
    assert sorted(path.name for path in (tmp_path / "previews").iterdir()) == ["1", "2"]
    session.resident.raising = "preview"
    session.played.run(4, at=5, preview_every=2)
    beat = session.played.line.first(Beat, lambda beat: "disabled_reason" in beat.preview)
    assert "preview fails" in beat.preview["disabled_reason"]
    session.resident.raising = ""
    session.played.run(2, at=9, preview_every=2)
    beat = session.played.line.first(Beat, lambda beat: beat.metrics_step == 10)
    assert "disabled_reason" not in beat.preview
    assert sorted(path.name for path in (tmp_path / "previews").iterdir()) == ["1", "2", "3"]
    assert session.played.close() == 0


def test_se22_a_command_with_an_unknown_part_is_refused(tmp_path: Path) -> None:
    session = Session(tmp_path)
    for kind in (Kind.CONFIGURE, Kind.SAVE, Kind.LOAD, Kind.PREVIEW, Kind.CAPTURE, Kind.REBUILD):
        assert "path: no part of this command" in _refused(session.ask(kind, {"path": "/"}))[0], kind
    assert session.played.close() == 0


def test_metrics_that_are_no_numbers_are_told_as_texts(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.played.run(1, at=0)
    beat = session.played.line.first(Beat, lambda beat: beat.metrics_step == 0)
    assert beat.metrics == {"total": 1.0, "add": 1.0, "none": "nan"}
    assert session.played.close() == 0
