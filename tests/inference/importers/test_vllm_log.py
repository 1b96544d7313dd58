"""Log lines of vLLM in both formats become iterations with host time and without requests (IN-12). Lines: synthetic."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.importers.vllm_lines import (
    FLAG,
    Failure,
    FlagSetting,
    IterationLine,
    LineForm,
    StartFailure,
    Unreadable,
    read_line,
)
from paritrace.inference.importers.vllm_log import open_log, recognises
from paritrace.inference.vocabulary import LossReason
from tests.inference.importers.drawn import drawn, written

COUNTS = "{} context requests, {} context tokens, {} generation requests, {} generation tokens"


def engine_line(
    index: int, *, prefix: str = "(EngineCore_DP0 pid=12) ", elapsed: str = "1.05", dummy: bool = False
) -> str:
    counts = COUNTS.format(1, 7 + index, 2, 2)
    mark = " (dummy)" if dummy else ""
    line = f"{prefix}INFO 10-08 13:00:00 [core.py:345] Iteration({index}): {counts}"
    return f"{line}, iteration elapsed time: {elapsed} ms{mark}"


def front_line(index: int, *, engine: str = "Engine 000: ", tail: str = "") -> str:
    counts = COUNTS.format(0, 0, 3, 3)
    return (
        f"(APIServer pid=7) INFO 10-08 13:00:01 [loggers.py:182] {engine}Iteration({index}): {counts}, "
        f"iteration elapsed time: 18.42 ms, GPU KV cache usage: 37.1%{tail}"
    )


def test_the_engine_sides_line_is_read_with_its_prefix_as_scope() -> None:
    said = read_line(engine_line(3))
    assert isinstance(said, IterationLine)
    assert (said.form, said.scope, said.pid, said.index) == (LineForm.ENGINE, "EngineCore_DP0", 12, 3)
    assert said.shape == (1, 10, 2, 2)
    assert said.elapsed_ns == 1_050_000
    assert said.kv_cache_percent is None


@pytest.mark.parametrize(
    ("tail", "dummy"),
    [("", False), (" (dummy)", True), (", encoder inputs: 3, encoder output embeddings: 4096", False)],
)
def test_the_front_ends_line_is_read_with_its_longer_tail(tail: str, dummy: bool) -> None:
    said = read_line(front_line(1234, tail=tail))
    assert isinstance(said, IterationLine)
    assert (said.form, said.scope, said.index) == (LineForm.FRONT_END, "APIServer/Engine 000", 1234)
    assert (said.elapsed_ns, said.kv_cache_percent, said.dummy) == (18_420_000, "37.1", dummy)


def test_a_line_in_colours_and_one_without_any_prefix_are_read() -> None:
    counts = COUNTS.format(0, 0, 1, 1)
    coloured = f"\x1b[0;36m(EngineCore pid=4)\x1b[0;0m Iteration(0): {counts}, iteration elapsed time: 2 ms"
    bare = f"Iteration(0): {counts}, iteration elapsed time: 2 ms"
    said = read_line(coloured)
    assert isinstance(said, IterationLine)
    assert said.scope == "EngineCore"
    alone = read_line(bare)
    assert isinstance(alone, IterationLine)
    assert (alone.scope, alone.pid, alone.logged) == ("", None, None)


@pytest.mark.parametrize(
    "line",
    [
        engine_line(3)[:-20],  # torn
        engine_line(3) + engine_line(4),  # two writers in one line
        engine_line(3) + " and something else",
        engine_line(3).replace("1 context", "-1 context"),
        engine_line(3, elapsed="nan"),
    ],
)
def test_a_line_that_names_an_iteration_and_is_none_is_told(line: str) -> None:
    assert isinstance(read_line(line), Unreadable)


def test_the_draft_models_lines_are_other_lines() -> None:
    assert read_line("INFO DraftIteration(3): 1 context requests, 5 context tokens, 1 generation requests") is None


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        (
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
            "initialization",
        ),
        ("(EngineCore pid=316) ERROR [core.py:600] EngineCore failed to start.", "failed_to_start"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out_of_memory"),
        (
            "Free memory on device (3.2/79.1 GiB) on startup is less than desired GPU memory utilization (0.9)",
            "memory_in_use",
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", "no_memory_for_cache_blocks"),
        (
            "The model's max seq len (4096) is larger than the maximum number of tokens stored in KV cache (3664).",
            "length_exceeds_cache",
        ),
        (
            "To serve at least one request with the model's max seq len (100000), (4.26 GiB KV cache is needed",
            "length_exceeds_cache",
        ),
        ("OSError: [Errno 98] Address already in use", "address_in_use"),
        ("ERROR EngineCore encountered a fatal error.", "fatal_error"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "engine_dead"),
    ],
)
def test_failures_of_an_engine_are_recognised(line: str, failure: str) -> None:
    said = read_line(line)
    assert isinstance(said, Failure)
    assert failure in said.kind.value


def test_every_kind_of_failure_is_reached() -> None:
    assert len(StartFailure) == 9


def test_a_log_becomes_iterations_with_host_time_and_unknown_membership(tmp_path: Path) -> None:
    log = written(tmp_path, "\n".join([engine_line(0), "INFO other", engine_line(1)]) + "\n")
    found = drawn(open_log, log)
    first = found.iterations[0]
    assert first.metadata["host_observed_ns"] == 1_050_000
    assert (first.start_ns, first.end_ns) == (None, None)  # never a duration of a device, nor a time without a zone
    assert first.metadata["membership"] == "unknown"
    assert first.context.facts.pid == 12
    assert found.account.complete
    assert any("no request ids" in limit for limit in found.account.limits)
    assert found.imported.attachments[0].attachment_id is not None


def test_the_same_log_gives_the_same_events(tmp_path: Path) -> None:
    log = written(tmp_path, engine_line(0) + "\n")
    assert drawn(open_log, log).events == drawn(open_log, log).events


def test_without_lines_the_flag_is_named(tmp_path: Path) -> None:
    config = "INFO vllm observability_config=ObservabilityConfig(enable_logging_iteration_details=False, x=1)"
    found = drawn(open_log, written(tmp_path, config + "\n"))
    assert read_line(config) == FlagSetting(on=False)
    assert found.account.limits == (
        f"no iteration line: vLLM prints them with {FLAG}; its configuration says that it is off",
    )
    assert not found.account.complete
    told = found.capabilities[0]
    assert (told.available, told.supported, told.enabled, told.collected) == (True, ("iteration_counts",), (), ())


def test_a_missing_a_torn_and_a_repeated_line_are_told_and_never_shifted(tmp_path: Path) -> None:
    lines = [engine_line(5), engine_line(5), engine_line(8), engine_line(9)[:-30]]
    found = drawn(open_log, written(tmp_path, "\n".join(lines)))
    assert [one.metadata["index"] for one in found.iterations] == [5, 8]
    losses = {one.what: (one.count, one.reason) for one in found.losses}
    assert losses == {
        "missing_iterations": (2, LossReason.UNKNOWN),
        "unreadable_iteration_lines": (1, LossReason.INVALID),
    }
    assert found.account.counts["before_first_line"] == 5
    assert not found.account.complete


def test_a_count_that_begins_anew_is_another_incarnation(tmp_path: Path) -> None:
    found = drawn(open_log, written(tmp_path, "\n".join(engine_line(index) for index in (0, 1, 0, 1)) + "\n"))
    assert len({one.iteration_ref for one in found.iterations}) == 4
    assert [one.metadata["incarnation"] for one in found.iterations] == [0, 0, 1, 1]
    assert found.account.counts["engine_restarts"] == 1


def test_two_engines_keep_their_own_counts(tmp_path: Path) -> None:
    other = "(EngineCore_DP1 pid=13) "
    lines = [engine_line(0), engine_line(0, prefix=other), engine_line(1, prefix=other), engine_line(1)]
    found = drawn(open_log, written(tmp_path, "\n".join(lines) + "\n"))
    assert len({one.iteration_ref for one in found.iterations}) == 4
    assert not found.losses


def test_two_engines_without_a_prefix_are_told_as_perhaps_two(tmp_path: Path) -> None:
    lines = [engine_line(0, prefix=""), engine_line(0, prefix="", elapsed="9.00")]
    found = drawn(open_log, written(tmp_path, "\n".join(lines) + "\n"))
    assert len({one.iteration_ref for one in found.iterations}) == 2
    assert any("two engines" in limit for limit in found.account.limits)


def test_failures_are_kept_with_their_lines(tmp_path: Path) -> None:
    found = drawn(open_log, written(tmp_path, "vllm\nEngineCore failed to start.\n"))
    assert found.capabilities[0].metadata["failures"] == [{"failure": "engine_core_failed_to_start", "line": 2}]


def test_a_log_is_told_from_json(tmp_path: Path) -> None:
    assert recognises(written(tmp_path, engine_line(0)))
    assert not recognises(written(tmp_path, '{"vllm": 1}', name="other"))


@given(
    index=st.integers(0, 10**15),
    counts=st.tuples(*[st.integers(0, 10**12)] * 4),
    hundredths=st.integers(0, 10**12),
    front=st.booleans(),
)
def test_what_is_printed_is_read_exactly(
    index: int, counts: tuple[int, int, int, int], hundredths: int, front: bool
) -> None:
    elapsed = f"{hundredths // 100}.{hundredths % 100:02}"
    line = f"Iteration({index}): {COUNTS.format(*counts)}, iteration elapsed time: {elapsed} ms"
    said = read_line("Engine 001: " + line + ", GPU KV cache usage: 0.0%" if front else line)
    assert isinstance(said, IterationLine)
    assert (said.index, said.shape, said.elapsed_ns) == (index, counts, hundredths * 10_000)
    assert (said.form is LineForm.FRONT_END) == front


@given(st.text())
def test_no_line_makes_reading_fail(text: str) -> None:
    read_line(text)
    read_line("Iteration(" + text)
