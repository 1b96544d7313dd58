"""Device work of two traces through the one engine (IN-18, CP-2 to CP-4)."""

from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.inference.importers.kineto_events import EventArgs, TraceEvent
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.kernel_sequences import ONLY, KernelComparison, compare_kernels
from paritrace.inference.trace_reading import read_trace
from tests.inference.importers.kineto_reading import DATA, kernel, written


def facts(*names: str, stream: int = 7, dur: int = 10, device: int = 0) -> TraceFacts:
    found = TraceFacts()
    for place, name in enumerate(names):
        found.see(work(name, 100 + 20 * place, stream=stream, dur=dur, device=device))
    return found


def work(name: str, ts: int, *, stream: int = 7, dur: int = 10, device: int = 0) -> TraceEvent:
    args = EventArgs(device=device, stream=stream)
    return TraceEvent(ph="X", cat="kernel", name=name, ts=Decimal(ts), dur=Decimal(dur), args=args)


def unpaired(found: KernelComparison) -> tuple[int, int]:
    return sum(found.unpaired_baseline.values()), sum(found.unpaired_candidate.values())


def test_a_real_trace_is_like_itself() -> None:
    trace = read_trace(DATA / "hta_nccl_parser_config_nccl_data.json.gz").facts
    found = compare_kernels(trace, trace)
    assert (found.pairs, found.alike, found.partings, found.times) == (3774, True, (), ())
    assert found.baseline.streams == 2


def test_one_kernel_more_is_the_only_parting() -> None:
    found = compare_kernels(facts("a", "b", "c", "d"), facts("a", "b", "x", "c", "d"))
    assert (found.pairs, unpaired(found), found.num_partings) == (4, (0, 1), 1)
    (parting,) = found.partings
    assert (parting.after, parting.last_alike, parting.candidate, parting.baseline) == (2, "b", ("x",), ())
    assert not found.alike


def test_another_kernel_is_a_parting_of_both_sides() -> None:
    (parting,) = compare_kernels(facts("a", "fused", "d"), facts("a", "b", "c", "d")).partings
    assert (parting.baseline, parting.candidate, parting.num_candidate) == (("fused",), ("b", "c"), 2)


def test_repeated_kernels_of_unequal_number_stay_undetermined() -> None:
    found = compare_kernels(facts("a", "k", "k", "b"), facts("a", "k", "k", "k", "b"))
    assert (found.pairs, unpaired(found)) == (2, (2, 3))
    assert found.unpaired_baseline == {"unequal_between_anchors": 2}


def test_the_number_of_an_only_stream_means_nothing_and_of_several_it_does() -> None:
    assert compare_kernels(facts("a", "b", stream=7), facts("a", "b", stream=23)).alike
    two = facts("a", "b", stream=7)
    two.see(work("c", 500, stream=8))
    found = compare_kernels(two, facts("a", "b", stream=23))
    assert found.unpaired_candidate == {"stream_missing": 2}
    assert compare_kernels(facts("a"), facts("b")).partings[0].stream == ONLY


def test_order_is_that_of_time_and_what_has_none_is_left_out(tmp_path: Path) -> None:
    late, early = kernel("late", ts=200), kernel("early", ts=100)
    (tmp_path / "b").mkdir()
    first = read_trace(written(tmp_path, [late, early, kernel("none", ts=0)])).facts
    second = read_trace(written(tmp_path / "b", [early, late])).facts
    found = compare_kernels(first, second)
    assert found.alike
    assert (found.baseline.work, found.baseline.untimed) == (2, 1)


def test_durations_have_no_say_and_are_summed_by_name() -> None:
    found = compare_kernels(facts("a", "b", "a"), facts("a", "b", "a", dur=15))
    assert found.alike
    assert [(one.name, one.pairs, one.baseline_ns, one.candidate_ns) for one in found.times] == [
        ("a", 2, 20_000, 30_000),
        ("b", 1, 10_000, 15_000),
    ]


_NAMES = st.lists(st.sampled_from("abcde"), max_size=20)


@settings(deadline=None)
@given(_NAMES, _NAMES)
def test_nothing_is_lost_and_sides_mirror(a: list[str], b: list[str]) -> None:
    found, mirrored = compare_kernels(facts(*a), facts(*b)), compare_kernels(facts(*b), facts(*a))
    ours, theirs = unpaired(found)
    assert (found.pairs + ours, found.pairs + theirs) == (len(a), len(b))
    assert (mirrored.unpaired_baseline, mirrored.unpaired_candidate) == (
        found.unpaired_candidate,
        found.unpaired_baseline,
    )
    assert sum(one.num_baseline for one in found.partings) == ours or found.num_partings > len(found.partings)
    assert sum(one.num_candidate for one in found.partings) == theirs or found.num_partings > len(found.partings)
    assert found.alike == (a == b)
