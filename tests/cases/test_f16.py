"""F-16: a step that was interrupted is not done: it is neither counted nor saved, and is taken again (SE-7)."""

from pathlib import Path

import pytest

from paritrace.session.commands import Kind
from paritrace.session.directory import CHECKPOINTS
from tests.cases.live_sessions import in_error, layers, until

pytestmark = pytest.mark.slow


def test_f16_a_step_broken_off_after_its_first_layer_is_taken_again_from_the_checkpoint(tmp_path: Path) -> None:
    with layers(tmp_path / "S", breaks_at=4, partial=str(tmp_path)) as session:
        session.run(3, autosave=False, wait=True)
        session.save("three")
        session.ask(Kind.RUN, {"steps": 5})  # applied, or failed: it breaks as soon as it has begun
        until(in_error(session))
        assert max(one.step for one in session.status().ranks) == 4
        saved = [path.name for path in (tmp_path / "S" / CHECKPOINTS).iterdir() if not path.name.startswith(".")]
        assert saved == ["three"]
        (tmp_path / "mended").touch()
        assert session.load("three", rebuild=True).step == 3
        session.run(2, autosave=False, wait=True)
        assert session.status().metrics == {"layer1": 5.0, "layer2": 5.0}
