import os
import signal
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paritrace.session.engines.layout import log_path
from paritrace.session.engines.ray import RayEngine
from tests.session.engines.conformance import SOON_SECONDS, Conformance, EndsRanks, Ranks
from tests.session.engines.test_local import SERVE, spec_in

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Generator[None]:
    """One cluster for all tests: starting one takes seconds."""
    ray: Any = import_module("ray")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def ranks(cluster: None, tmp_path: Path) -> Generator[Ranks]:
    engine = RayEngine(serve=SERVE)
    try:
        started = Ranks(engine, spec_in(tmp_path))
        started.start()
        yield started
    finally:
        engine.close()


class TestRay(Conformance, EndsRanks):
    """The engine `ray` under the suite of all engines."""

    def test_se12_ray_says_how_an_actor_died(self, ranks: Ranks) -> None:
        os.kill(ranks.pids[1], signal.SIGKILL)
        assert ranks.next(1, seconds=SOON_SECONDS) is None
        words = ranks.words_of(1)
        assert "died" in words

    def test_se16_output_stands_in_a_log_per_rank(self, ranks: Ranks, tmp_path: Path) -> None:
        assert ranks.asked(1, "say hello") == "said"
        assert "err hello" in log_path(str(tmp_path), 1, 1).read_text().splitlines()
