"""Series of samples: what they cover, what was dropped, and a peak that is only called sampled (RS-6)."""

import threading

import pytest

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.samples import Sample, summary_of
from paritrace.process.sampling import Sampler

GONE = Gap(ResourceGap.HOST_EXITED)
WAIT_SECONDS = 60.0


def sample(after_seconds: float, resident: int | Gap[ResourceGap]) -> Sample:
    known = not isinstance(resident, Gap)
    return Sample(
        after_seconds=after_seconds,
        resident_memory_bytes=resident,
        process_count=1 if known else GONE,
        cpu_time_seconds=0.5 if known else GONE,
    )


def snapshot(resident: int) -> ResourceSnapshot:
    return ResourceSnapshot(
        subject="x",
        host=ProcessIdentity(host="h", boot_id="b", pid_namespace="p", pid=1, start_ticks=1),
        started_at="2026-01-01T00:00:00.000Z",
        observed_at="2026-01-01T00:00:00.000Z",
        resident_memory_bytes=resident,
        pss_bytes=Gap(ResourceGap.NOT_COLLECTED),
        process_count=1,
        cpu_time_seconds=0.5,
    )


def test_rs6_a_series_without_gaps() -> None:
    found = summary_of([sample(0, 10), sample(1, 30), sample(3, 20)], interval_seconds=1, dropped=0)
    assert (found.taken, found.failed, found.dropped) == (3, 0, 0)
    assert (found.least_bytes, found.sampled_peak_bytes) == (10, 30)
    assert (found.largest_gap_seconds, found.covered_fraction) == (2, 1)
    assert found.mean_bytes == pytest.approx(70 / 3)


def test_rs6_what_was_not_looked_at_is_not_covered() -> None:
    """Neither a gap of more than two intervals nor the time after a sample that failed counts."""
    series = [sample(0, 10), sample(1, GONE), sample(2, 40), sample(6, 20), sample(7, 20)]
    found = summary_of(series, interval_seconds=1, dropped=3)
    assert (found.taken, found.failed, found.dropped) == (5, 1, 3)
    assert found.largest_gap_seconds == 4
    assert found.covered_fraction == pytest.approx(2 / 7)
    assert found.mean_bytes == 15
    assert found.sampled_peak_bytes == 40


def test_rs6_without_a_value_there_is_no_peak() -> None:
    found = summary_of([sample(0, GONE), sample(1, GONE)], interval_seconds=1, dropped=0)
    assert found.sampled_peak_bytes == found.least_bytes == found.mean_bytes == GONE
    assert found.covered_fraction == 0


@pytest.mark.parametrize("series", [[], [sample(0, 10)]])
def test_rs6_one_sample_covers_no_time(series: list[Sample]) -> None:
    found = summary_of(series, interval_seconds=1, dropped=0)
    assert isinstance(found.covered_fraction, Gap)
    assert isinstance(found.largest_gap_seconds, Gap)
    assert isinstance(found.mean_bytes, Gap)


def test_rs6_both_endpoints_are_taken_and_what_is_over_is_dropped() -> None:
    ending, looks = threading.Event(), iter([10, 20, 30])
    sampler = Sampler(
        lambda: snapshot(99) if ending.is_set() else snapshot(next(looks)), interval_seconds=0.001, most_samples=4
    )
    sampler.start()
    pause = threading.Event()
    for _ in range(int(WAIT_SECONDS / 0.01)):
        if sampler._dropped >= 2:
            break
        pause.wait(0.01)
    ending.set()
    samples, found = sampler.stop(within_seconds=WAIT_SECONDS)
    assert [one.resident_memory_bytes for one in samples] == [10, 20, 30, 99]
    assert found.taken == 4
    assert found.dropped >= 2
    assert found.sampled_peak_bytes == 99


def test_rs6_a_look_that_never_ends_does_not_hold_the_end_up() -> None:
    hanging = threading.Event()
    sampler = Sampler(lambda: snapshot(1) if hanging.wait(WAIT_SECONDS) else GONE)
    sampler.start()
    samples, found = sampler.stop(within_seconds=0.01)
    hanging.set()
    assert samples == ()
    assert found.taken == 0


@pytest.mark.parametrize(("interval_seconds", "most_samples"), [(0, 2), (1, 1)])
def test_rs6_a_series_needs_an_interval_and_two_places(interval_seconds: int, most_samples: int) -> None:
    with pytest.raises(ValueError, match="interval above 0 and 2 samples"):
        Sampler(lambda: GONE, interval_seconds=interval_seconds, most_samples=most_samples)
