"""`paritrace compare DIR DIR` on two sessions' directories (SE-15)."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import json as msgspec_json
from msgspec import to_builtins

from paritrace.cli.entry import paritrace
from paritrace.cli.output import ExitStatus
from paritrace.errors import RequestError
from paritrace.evidence.ids import ProcessIdentity
from paritrace.session.checkpoint_records import Manifest, Origin, Written, digest_of_manifest
from paritrace.session.configuration import Given, Resolved, resolved
from paritrace.session.directory import JOURNAL, SESSION, SessionRecord, config_path
from paritrace.session.journal import encoded
from paritrace.session.workload import ConfigField
from tests.session.journals import Told


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(paritrace, ["compare", *arguments], catch_exceptions=False, standalone_mode=False)


def session(directory: Path, told: Told, *configs: dict[str, Any]) -> str:
    directory.mkdir()
    owner = ProcessIdentity(pid=1, boot_id="b", start_ticks=1, pid_namespace="n", host="h")
    record = SessionRecord(directory.name, "local", "m:W", {}, 2, owner, "127.0.0.1", 1, 0)
    (directory / SESSION).write_bytes(msgspec_json.encode(record))
    (directory / JOURNAL).write_bytes(b"".join(encoded(line) for line in told.lines))
    (directory / "configs").mkdir()
    for revision, values in enumerate(configs):
        found = resolved((ConfigField("lr", 0.5),), Given(values), asked_world_size=2, joined_world_size=2)
        assert isinstance(found, Resolved)
        kept = {"revision": revision, **to_builtins(found)}
        config_path(directory, revision).write_bytes(msgspec_json.encode(kept))
    return str(directory)


def saved(directory: str, name: str, *, state: str) -> None:
    """Write the manifest of a checkpoint, and its digest into the journal as that of this name."""
    folder = Path(directory, "checkpoints", name)
    folder.mkdir(parents=True)
    origin = Origin(directory, "m:W", 1, 1, 1, 0, 10)
    manifest = Manifest(origin, False, {"s": Written(0, 1, state)}, {"0": state}, 0)
    data = msgspec_json.encode(manifest)
    (folder / "manifest.json").write_bytes(data)
    journal = Path(directory, JOURNAL)
    journal.write_bytes(journal.read_bytes().replace(f"sha of {name}".encode(), digest_of_manifest(data).encode()))


@pytest.fixture
def sessions(tmp_path: Path) -> tuple[str, str]:
    ours = Told().started().inputs("A").ran(0, 10).checkpoint("saved", "ten", 10).ran(10, 20)
    theirs = Told().started().inputs("A").ran(0, 10).checkpoint("saved", "ten", 10).revised(step=10).ran(10, 25)
    found = (
        session(tmp_path / "a", ours, {"lr": 0.1}),
        session(tmp_path / "b", theirs, {"lr": 0.1}, {"lr": 0.2}),
    )
    for directory in found:
        saved(directory, "ten", state="same")
    return found


def test_se15_the_screen_says_where_conditions_part_and_which_states_agree(sessions: tuple[str, str]) -> None:
    said = compare(*sessions).output
    assert "[first]     conditions part at step 10: config.lr" in said
    assert "[states]    equal before step 10 (ten, ten)" in said
    assert "config.lr: 0.1 | 0.2" in said
    assert "20-24  candidate alone" in said


def test_se15_the_document_and_the_exit_status(sessions: tuple[str, str], tmp_path: Path) -> None:
    document = json.loads(compare(*sessions, "--json").output)
    assert document["format"] == "paritrace-session-comparison"
    assert [one["agreement"] for one in document["stretches"]] == ["equal", "different"]
    assert compare(*sessions).return_value == ExitStatus.DONE
    assert compare(*sessions, "--exit-code").return_value == ExitStatus.DIFFERENCE
    assert compare(sessions[0], sessions[0], "--exit-code").return_value == ExitStatus.DONE
    compare(*sessions, "-o", str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text()) == document


def test_se15_states_at_autosaves_of_both_are_compared_also_when_their_files_are_gone(tmp_path: Path) -> None:
    ours, theirs = Told().started().inputs("A"), Told().started().inputs("A")
    for told, state in ((ours, "t"), (theirs, "other")):
        told.run("admitted", 0).autosaved("autosave/five", 5).autosaved("autosave/nine", 9, state=state).run(
            "ended", 10
        )
    found = [session(tmp_path / name, told, {"lr": 0.1}) for name, told in (("a", ours), ("b", theirs))]
    journal = Path(found[1], JOURNAL)
    journal.write_bytes(journal.read_bytes().replace(b"sha of", b"another sha of").replace(b"files of", b"others of"))
    states = json.loads(compare(*found, "--json").output)["states"]
    assert [(one["step"], one["agreement"]) for one in states] == [(5, "equal"), (9, "different")]
    assert "equal before step 5 (autosave/five, autosave/five)" in compare(*found).output


def test_se15_a_configuration_that_cannot_be_read_leaves_it_undetermined(sessions: tuple[str, str]) -> None:
    config_path(Path(sessions[0]), 0).unlink()
    found = compare(sessions[0], sessions[0], "--exit-code")
    assert found.return_value == ExitStatus.UNDETERMINED
    assert "revision 0, which cannot be read" in found.output


def test_se15_states_are_compared_by_content_though_manifests_name_their_sessions(tmp_path: Path) -> None:
    told = Told().started().inputs("A").ran(0, 10).checkpoint("saved", "ten", 10)
    found = [session(tmp_path / name, told, {}) for name in ("a", "b", "c")]
    for directory, state in zip(found, ("same", "same", "other"), strict=True):
        saved(directory, "ten", state=state)
    assert "equal before step 10" in compare(*found[:2]).output
    assert compare(*found[:2], "--exit-code").return_value == ExitStatus.DONE
    assert "different before step 10" in compare(*found[1:]).output
    Path(found[1], "checkpoints", "ten", "manifest.json").unlink()
    assert "cannot be compared" in compare(*found[:2]).output


def test_se15_captures_of_the_same_step_are_named_to_be_compared_next(tmp_path: Path) -> None:
    told = Told().started().inputs("A").run("admitted", 0).run("parked", 4)
    told.add("capture", id="k", name="look", steps=2, level="op", step=4, epoch=2, config_revision=0)
    told.run("resumed", 4).run("ended", 9)
    ours, theirs = session(tmp_path / "a", told, {}), session(tmp_path / "b", told, {})
    assert f"paritrace compare {ours}/captures/look {theirs}/captures/look" in compare(ours, theirs).output


def test_se15_options_that_speak_of_calls_are_refused(sessions: tuple[str, str]) -> None:
    with pytest.raises(RequestError) as refused:
        compare(*sessions, "--steps", "0:3")
    assert refused.value.code == "not_for_sessions"
    with pytest.raises(RequestError) as no_format:
        compare(*sessions, "--format", "html")
    assert no_format.value.code == "no_such_format"
