"""When a capture is a success: exactly the expected ranks, whole, and nothing else (AU-4, AU-15, AU-18, CA-16)."""

from typing import Any

import pytest
from msgspec.structs import replace

from paritrace.automation.protocol.completeness import Left, problems
from paritrace.automation.protocol.troubles import Trouble, failure
from paritrace.automation.protocol.workloads import Begun, Completion
from paritrace.errors import Outcome
from paritrace.evidence.ids import ProcessIdentity


def process(rank: int) -> ProcessIdentity:
    return ProcessIdentity(host=f"node-{rank}", boot_id="b", pid_namespace="n", pid=rank + 1, start_ticks=1)


def done(rank: int, **changed: Any) -> Completion:
    whole = Completion(
        rank=rank,
        world_size=2,
        node_id=f"node-{rank}",
        process=process(rank),
        session_id=f"rank-{rank}",
        exit_status=0,
        calls=3,
        bundles=1,
        troubles=(),
        loaded={},
        not_as_planned={},
        elsewhere={},
    )
    return replace(whole, **changed)


def left(*completions: Completion, begun: tuple[int, ...] = (0, 1), **changed: Any) -> Left:
    whole = Left(
        0,
        {rank: Begun(rank=rank, process=process(rank)) for rank in begun},
        frozenset(),
        frozenset(),
        {one.rank: one for one in completions},
        frozenset(),
    )
    return replace(whole, **changed)


def codes(of: Left) -> list[str]:
    return [one.code for one in problems((0, 1), of)]


def test_au4_exactly_the_expected_ranks_are_a_success() -> None:
    assert codes(left(done(0), done(1))) == []


CHANGED = Trouble("source_changed", "net.py", "…")


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        (left(done(0), done(1), launcher_status=3), ["launcher_failed"]),
        (left(done(0), done(1), launcher_status=-9), ["launcher_failed"]),
        (left(done(0), done(1), late=frozenset({1})), ["launcher_returned_early"]),
        (left(done(0), begun=(0,)), ["ranks_missing"]),
        (left(done(0)), ["ranks_missing"]),
        (left(done(0), launcher_status=None), ["workload_timeout", "ranks_missing"]),
        (left(done(0), launcher_status=None, running=frozenset({1})), ["workload_timeout", "not_confirmed_stopped"]),
        (left(done(0), done(1), again=frozenset({1})), ["restart_into_capture"]),
        (left(done(0), done(1), done(2), begun=(0, 1, 2)), ["unexpected_rank"]),
        (left(done(0), done(1, world_size=4)), ["unexpected_rank"]),
        (left(done(0), done(1, exit_status=1), launcher_status=1), ["rank_failed", "launcher_failed"]),
        (left(done(0), done(1, calls=0)), ["empty_trace"]),
        (left(done(0), done(1, troubles=(CHANGED,), calls=0, exit_status=9)), ["source_changed"]),
    ],
)
def test_au15_each_thing_that_is_wrong_is_named_the_cause_first(what: Left, wanted: list[str]) -> None:
    assert codes(what) == wanted


def test_au19_a_difference_names_rank_node_and_file() -> None:
    (found,) = problems((0, 1), left(done(0), done(1, troubles=(CHANGED,), not_as_planned={"net.py": "sha256 f"})))
    assert found.message == "rank 1 on node-1: net.py; net.py: sha256 f"
    error = failure([found])
    assert (error.code, error.outcome, error.details) == (
        "source_changed",
        Outcome.FAILED,
        ("source_changed: rank 1 on node-1: net.py; net.py: sha256 f",),
    )
