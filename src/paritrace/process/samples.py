"""A time series of snapshots and its coverage: what was looked at, what was missed (RS-6); records, and the rule."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap

WIDEST_STEP = 2.0
"""Between samples further apart than so many intervals the value is not known: it is not held that long."""


class Sample(Struct, frozen=True, forbid_unknown_fields=True):
    """One look at a tree, `after_seconds` (monotonic) from the start of the sampler."""

    after_seconds: float
    resident_memory_bytes: int | Gap[ResourceGap]
    process_count: int | Gap[ResourceGap]
    cpu_time_seconds: float | Gap[ResourceGap]


class SampleSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """What a series of samples shows of resident memory, and how much of the time it covers.

    `sampled_peak_bytes`: the largest *sample*; the tree may have held more between two. `mean_bytes`: weighted by time,
    each sample held until the next one. `covered_fraction`: of the time between the endpoints, without gaps longer than
    twice the interval and without what follows a sample that could not be read. `dropped`: samples beyond the most that
    are kept. `failed`: samples that are gaps.
    """

    interval_seconds: float
    taken: int
    failed: int
    dropped: int
    largest_gap_seconds: float | Gap[ResourceGap]
    covered_fraction: float | Gap[ResourceGap]
    sampled_peak_bytes: int | Gap[ResourceGap]
    least_bytes: int | Gap[ResourceGap]
    mean_bytes: float | Gap[ResourceGap]


def summary_of(samples: Sequence[Sample], *, interval_seconds: float, dropped: int) -> SampleSummary:
    """Sum a series up; `samples` in the order in which they were taken."""
    values = [sample.resident_memory_bytes for sample in samples]
    known = [value for value in values if not isinstance(value, Gap)]
    none = next((value for value in values if isinstance(value, Gap)), Gap(ResourceGap.NOT_COLLECTED))
    steps = [late.after_seconds - early.after_seconds for early, late in pairwise(samples)]
    held = [
        (value, step)
        for value, step in zip(values, steps, strict=False)
        if not isinstance(value, Gap) and step <= WIDEST_STEP * interval_seconds
    ]
    covered, whole = sum(step for _, step in held), sum(steps)
    return SampleSummary(
        interval_seconds=interval_seconds,
        taken=len(samples),
        failed=len(values) - len(known),
        dropped=dropped,
        largest_gap_seconds=max(steps) if steps else Gap(ResourceGap.NOT_COLLECTED, "one sample at most"),
        covered_fraction=covered / whole if whole else Gap(ResourceGap.NOT_COLLECTED, "no time between samples"),
        sampled_peak_bytes=max(known) if known else none,
        least_bytes=min(known) if known else none,
        mean_bytes=sum(value * step for value, step in held) / covered if covered else none,
    )
