"""What ranks are started with: what the opening says, and what the generation begins with (SE-20, SE-21)."""

from pathlib import Path

from paritrace.session.coordinator.generations import Generations, Started
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.engines.local import LocalEngine
from paritrace.session.engines.seam import RankSpec


class Startless(LocalEngine):
    """An engine whose ranks are never started."""

    spec: RankSpec | None = None

    def start(self, spec: RankSpec) -> None:
        self.spec = spec


def test_se21_a_bound_that_ranks_keep_is_told_to_them(tmp_path: Path) -> None:
    engine = Startless()
    opening = Opening(str(tmp_path), "m:C", bounds={"process_group": 7.0}, autosave_every=3)
    generations = Generations(opening, session_id="s", token="t", make=lambda: engine)
    generations.start(Started(2, {"lr": 0.1}, 4, None, "d", {"text": "new"}, tolerate_unknown=True))
    spec = engine.spec
    assert spec is not None
    assert (spec.group_timeout_seconds, spec.autosave_every, spec.tolerate_unknown) == (7.0, 3, True)
    assert (spec.inputs_digest, spec.inputs_reference, spec.config_revision) == ("d", {"text": "new"}, 4)
    generations.end()
