"""Prometheus text as series, by prometheus_client's parser (IN-13)."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from msgspec import Struct

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

Labels = tuple[tuple[str, str], ...]


class Identity(Struct, frozen=True, order=True):
    """One series: the name of its family, without `_total`, `_bucket`, `_sum` or `_count`, and its labels."""

    name: str
    labels: Labels


class Histogram(Struct, frozen=True):
    """A cumulative histogram: counts by upper bound as printed, in order; None: the exposition has no such line."""

    buckets: tuple[tuple[str, float], ...]
    count: float | None
    sum: float | None


class Scrape(Struct, frozen=True):
    """One exposition. `created`: when a counter or histogram was made, where the server says so (`*_created`)."""

    counters: dict[Identity, float]
    gauges: dict[Identity, float]
    histograms: dict[Identity, Histogram]
    created: dict[Identity, float]
    process_starts: dict[Labels, float]
    num_samples: int


class ScrapeFailed(Struct, frozen=True):
    """An exposition that could not be read as a whole: fewer series would be worse than none."""

    detail: str


_CREATED = "_created"
_OPENMETRICS_END = "# EOF"
_PROCESS_START = "process_start_time_seconds"
_BOUND = "le"


def read_exposition(text: str) -> Scrape | ScrapeFailed:
    """Returns the series of an exposition in Prometheus text format, or in OpenMetrics', which ends with `# EOF`.

    A `_created` sample belongs to the series of its name without that ending, whatever type it is declared as:
    prometheus_client itself declares it a gauge of its own.
    """
    from prometheus_client.openmetrics import parser as openmetrics
    from prometheus_client.parser import text_string_to_metric_families

    building = _Building()
    is_openmetrics = text.rstrip().endswith(_OPENMETRICS_END)
    try:
        read = cast(
            "Callable[[str], Iterable[Metric]]",
            openmetrics.text_string_to_metric_families  # pyright: ignore[reportUnknownMemberType] - has no types
            if is_openmetrics
            else text_string_to_metric_families,
        )
        for family in read(text):
            for sample in family.samples:
                building.take(family.type, family.name, sample)
    except (ValueError, IndexError, TypeError, KeyError, OverflowError) as error:
        return ScrapeFailed(f"not Prometheus text: {type(error).__name__} after {building.num_samples:,} samples")
    if not building.num_samples:
        return ScrapeFailed("no sample")
    if building.repeated is not None:
        return ScrapeFailed(f"{building.repeated} stands twice with the same labels")
    return building.finished()


class _Building:
    """One exposition as it is read."""

    def __init__(self) -> None:
        self.num_samples = 0
        self.repeated: str | None = None
        self._seen: set[tuple[str, Labels]] = set()
        self._counters: dict[Identity, float] = {}
        self._gauges: dict[Identity, float] = {}
        self._created: dict[Identity, float] = {}
        self._starts: dict[Labels, float] = {}
        self._buckets: dict[Identity, list[tuple[str, float]]] = {}
        self._counts: dict[Identity, float] = {}
        self._sums: dict[Identity, float] = {}

    def take(self, kind: str, family: str, sample: "Sample") -> None:
        name, labels, value = sample.name, sample.labels, float(sample.value)
        self.num_samples += 1
        sorted_labels = tuple(sorted(labels.items()))
        if (name, sorted_labels) in self._seen:
            self.repeated = name
        self._seen.add((name, sorted_labels))
        series = Identity(family, sorted_labels)
        if name == _PROCESS_START:
            self._starts[sorted_labels] = value
        elif name.endswith(_CREATED):
            self._created[Identity(name.removesuffix(_CREATED), sorted_labels)] = value
        elif kind == "histogram":
            self._histogram(family, name, labels, value)
        elif kind == "counter":
            self._counters[series] = value
        elif kind == "summary" and name != family:
            self._counters[Identity(name, sorted_labels)] = value
        else:
            self._gauges[series] = value

    def _histogram(self, family: str, name: str, labels: dict[str, str], value: float) -> None:
        rest = tuple(sorted((key, one) for key, one in labels.items() if key != _BOUND))
        series = Identity(family, rest)
        if name.endswith("_bucket"):
            self._buckets.setdefault(series, []).append((labels.get(_BOUND, ""), value))
        elif name.endswith("_count"):
            self._counts[series] = value
        else:
            self._sums[series] = value

    def finished(self) -> Scrape:
        found = {*self._buckets, *self._counts, *self._sums}
        return Scrape(
            counters=self._counters,
            gauges=self._gauges,
            histograms={
                one: Histogram(tuple(self._buckets.get(one, ())), self._counts.get(one), self._sums.get(one))
                for one in sorted(found)
            },
            created=self._created,
            process_starts=self._starts,
            num_samples=self.num_samples,
        )
