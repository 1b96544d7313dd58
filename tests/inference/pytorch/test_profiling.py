"""A profile of a thread becomes a trace that the importer reads: operators inside the range that was named (IN-16)."""

import gzip
import json
import time
from pathlib import Path

import pytest
import torch

from paritrace.errors import HostError, RequestError
from paritrace.evidence.clocks import monotonic_domain
from paritrace.files import LOCAL
from paritrace.inference.importers.kineto import open_trace
from paritrace.inference.importing import Asked, Scope
from paritrace.inference.pytorch.profiling import profiled
from paritrace.inference.records import Activity, ClockAlignment, Iteration
from paritrace.inference.vocabulary import Domain
from paritrace.process.identity import own_identity

RANGE = "paritrace.iteration/engine/7"


def profile(path: Path) -> None:
    with profiled(path), torch.profiler.record_function(RANGE):
        torch.mm(torch.ones(1, 3), torch.ones(3, 2))


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_in16_a_profile_is_imported_with_its_ranges_and_operators(tmp_path: Path, name: str) -> None:
    profile(tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    asked = Asked(tmp_path / name, Scope("run", "session"), {"operators": "yes"})
    events = list(open_trace(asked).events)
    (iteration,) = [one for one in events if isinstance(one, Iteration)]
    operators = [one for one in events if isinstance(one, Activity)]
    assert iteration.anchor == RANGE
    assert "aten::mm" in {one.name for one in operators}
    assert {one.domain for one in operators} == {Domain.CPU}
    assert {one.thread_id for one in operators} == {iteration.thread_id}
    counted = list(open_trace(Asked(tmp_path / name, Scope("run", "session"))).events)
    assert [one for one in counted if isinstance(one, Activity)] == []


def test_in16_a_profile_is_aligned_with_the_monotonic_clock_by_readings(tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    profile(tmp_path / "trace.json")
    after_ns = time.monotonic_ns()
    events = list(open_trace(Asked(tmp_path / "trace.json", Scope("run", "session"))).events)
    (iteration,) = [one for one in events if isinstance(one, Iteration)]
    monotonic = monotonic_domain(own_identity()).name
    (aligned,) = [one for one in events if isinstance(one, ClockAlignment) and one.to_clock_domain == monotonic]
    assert aligned.metadata == {"basis": "clock readings", "series": 2}
    assert iteration.start_ns is not None
    assert iteration.end_ns is not None
    assert aligned.valid_from_ns is not None
    assert aligned.valid_from_ns < iteration.start_ns
    assert aligned.valid_to_ns is not None
    assert aligned.valid_to_ns > iteration.end_ns
    assert before_ns - aligned.uncertainty_ns < iteration.start_ns + aligned.offset_ns
    assert iteration.end_ns + aligned.offset_ns < after_ns + aligned.uncertainty_ns


def fail(_: torch.Tensor) -> None:
    raise ZeroDivisionError


def test_in16_a_profile_is_written_also_where_the_work_fails_and_replaces_what_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), profiled(path):
        fail(torch.ones(2).sum())
    assert json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_in16_what_cannot_be_profiled_is_refused_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no name of a trace") as refused, profiled(tmp_path / "trace.txt"):
        pass
    assert refused.value.code == "bad_trace_path"
    with profiled(tmp_path / "outer.json"):
        with pytest.raises(HostError) as busy, profiled(tmp_path / "inner.json"):
            pass
        torch.ones(2).sum()
    assert busy.value.code == "profiler_busy"
    assert not LOCAL.exists(tmp_path / "inner.json")
    assert LOCAL.exists(tmp_path / "outer.json")
