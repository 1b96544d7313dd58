"""A time series of snapshots with its coverage, as records (RS-6): what was looked at, what was missed."""

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap


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
