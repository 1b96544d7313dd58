"""An autosave whose rank died before its word stands in the journal, and so in the segment it was made in (SE-15)."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paritrace.files import LOCAL
from paritrace.session.checkpoint_records import Origin, Receipt
from paritrace.session.checkpoints import publish, seal
from paritrace.session.coordinator.untold import untold_autosaves
from paritrace.session.journal import Line
from paritrace.session.segments import segments_of

ORIGIN = Origin("s", "m:C", 1, 2, 5, 0, 10)  # generation 2, epoch 5, step 10


def saved(directory: Path, origin: Origin, *, made: int = 1) -> str:
    name = f"step-{origin.step:08d}-g{origin.generation}-e{origin.command_epoch}"
    staging = directory / "autosave" / f".{name}"
    LOCAL.mkdir(staging)
    (staging / "state.bin").write_bytes(b"state" * origin.step)
    seal(staging, ("state.bin",), Receipt(0, origin, made, "digest"))
    return publish(staging, directory / "autosave" / name).digest


def lines_of(*told: tuple[str, dict[str, Any]]) -> tuple[Line, ...]:
    return tuple(Line(number, 0, 2, what, facts) for number, (what, facts) in enumerate(told, 1))


def run(event: str, step: int, epoch: int) -> tuple[str, dict[str, Any]]:
    return "run", {"event": event, "step": step, "epoch": epoch, "config_revision": 0}


def test_se15_only_what_the_last_stretch_of_steps_made_and_nobody_told_is_found(tmp_path: Path) -> None:
    assert untold_autosaves(tmp_path, (), generation=2) == ()
    lines = lines_of(
        ("generation", {"event": "started"}),
        run("admitted", 0, 4),
        run("parked", 4, 5),
        run("resumed", 4, 5),
        ("checkpoint", {"event": "autosaved", "name": "autosave/step-00000008-g2-e5", "step": 8, "digest": "told"}),
        ("failure", {"code": "rank_ended"}),
    )
    saved(tmp_path, replace(ORIGIN, step=8))  # told
    saved(tmp_path, replace(ORIGIN, command_epoch=4))  # of an earlier stretch: it is not the last segment's
    saved(tmp_path, replace(ORIGIN, generation=1))
    (tmp_path / "autosave" / "step-00000009-g2-e5").mkdir()  # its save did not end
    digest = saved(tmp_path, ORIGIN)
    (facts,) = untold_autosaves(tmp_path, lines, generation=2)
    assert (facts["name"], facts["step"], facts["digest"]) == ("autosave/step-00000010-g2-e5", 10, digest)
    found = segments_of((*lines, Line(9, 0, 2, "checkpoint", facts)))
    assert [mark.step for mark in found[-1].marks] == [8, 10]
    assert found[-1].marks[-1].states == {"0": "digest"}
