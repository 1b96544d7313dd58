"""Steps of a trace and iterations of a log, over one artifact's events (IN-12). Both are synthetic."""

from collections.abc import Sequence
from pathlib import Path

from paritrace.evidence.ids import Ref
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.execution_ranges import Scheduled
from paritrace.inference.iteration_joins import step_joins
from paritrace.inference.records import Iteration, Observation
from tests.inference.engine_steps import steps, write_trace
from tests.inference.importers.kineto_reading import imported


def logged(made: Sequence[Scheduled], *, scope: str = "EngineCore_0", without: int | None = None) -> list[Observation]:
    """Returns what the reader of an engine's log makes of its lines."""
    context = Context(
        ContextFacts(
            run_id="run",
            session_id="session",
            producer_id="log",
            source="vllm",
            clock_domain="log",
            clock_kind=ClockKind.WALL,
            collection_mode=CollectionMode.IMPORTED,
            provenance=Provenance.OBSERVED,
        )
    )
    return [
        Iteration(
            context=context,
            event_id=f"{scope}:{number}",
            iteration_ref=Ref("log", f"{scope}#0:{number}"),
            metadata={
                "context_requests": step.context_requests,
                "context_tokens": step.context_tokens,
                "generation_requests": step.generation_requests,
                "generation_tokens": step.generation_tokens,
                "scope": scope,
                "incarnation": 0,
                "line": number + 2,
            },
        )
        for number, step in enumerate(made)
        if number != without
    ]


def test_ranges_and_lines_join_whatever_the_order_of_events(tmp_path: Path) -> None:
    made = steps(40, seed=5)
    events = [*imported(write_trace(tmp_path / "t.json", made))[0], *logged(made)]
    (join,) = step_joins(events)
    assert (join.ranges, join.iterations) == (40, 40)
    assert join.trace[1] == 9
    unique = [number for number, step in enumerate(made) if made.count(step) == 1]
    assert [other.id for _, other in join.pairs] == [f"EngineCore_0#0:{number}" for number in unique]
    assert join.undetermined == {"not_unique": 40 - len(unique)}
    assert step_joins(reversed(events)) == (join,)


def test_one_line_removed_moves_no_other(tmp_path: Path) -> None:
    made = steps(40, seed=5)
    gone = next(number for number, step in enumerate(made) if made.count(step) == 1)
    trace = imported(write_trace(tmp_path / "t.json", made))[0]
    (whole,), (less,) = step_joins([*trace, *logged(made)]), step_joins([*trace, *logged(made, without=gone)])
    assert set(less.pairs) <= set(whole.pairs)
    assert len(less.pairs) == len(whole.pairs) - 1
    assert less.undetermined["not_there"] == 1


def test_two_engines_are_two_joins(tmp_path: Path) -> None:
    made = steps(10, seed=5)
    events = [*imported(write_trace(tmp_path / "t.json", made))[0], *logged(made), *logged(made, scope="EngineCore_1")]
    assert [one.engine for one in step_joins(events)] == [("log", "EngineCore_0#0"), ("log", "EngineCore_1#0")]


def test_other_iterations_join_nothing(tmp_path: Path) -> None:
    assert step_joins(logged(steps(3, seed=1))) == ()
    assert step_joins(imported(write_trace(tmp_path / "t.json", steps(3, seed=1)))[0]) == ()
