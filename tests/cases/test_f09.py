"""F-09: a checkpoint that lacks a layer on one rank is refused on all, before anything resident is touched (SE-8)."""

from pathlib import Path

import pytest

from paritrace.session.client import NotAppliedError
from paritrace.session.commands import Result
from tests.cases.live_sessions import layers

pytestmark = pytest.mark.slow


def test_f09_what_is_missing_on_one_rank_is_named_and_the_state_stays(tmp_path: Path) -> None:
    with layers(tmp_path / "S", leave_out_on=1) as session:
        session.run(3, autosave=False, wait=True)
        session.save("whole")
        session.run(2, autosave=False, wait=True)
        with pytest.raises(NotAppliedError) as refused:
            session.load("whole")
        assert refused.value.reply is not None
        assert refused.value.reply.result is Result.REFUSED
        assert [(one.rank, one.words) for one in refused.value.reply.reasons] == [(1, "layer2: missing")]
        status = session.status()
        assert (status.step, status.config_revision) == (5, 0)
        session.run(1, autosave=False, wait=True)
        assert session.status().metrics == {"layer1": 6.0, "layer2": 6.0}
