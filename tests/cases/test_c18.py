"""C-18: a wall clock that steps back: durations come from the monotonic clock or are not known, never negative or 0."""

import json
from pathlib import Path

from paritrace.evidence.clocks import ClockGap, Instant, duration_ns, monotonic_domain, stepped_back, wall_domain
from paritrace.evidence.gaps import Gap
from paritrace.store.records import RemarkKind
from tests.store.places import Place, process_of
from tests.store.reading import streams

START = 1_700_000_000_000_000_000
HOUR = 3_600_000_000_000


def test_the_duration_is_monotonic_or_a_gap() -> None:
    monotonic, wall = monotonic_domain(process_of()), wall_domain(process_of())
    assert duration_ns(Instant(monotonic, 10**9), Instant(monotonic, 301 * 10**9)) == 300 * 10**9
    assert stepped_back(wall_start_ns=START, wall_end_ns=START - HOUR)
    by_wall = duration_ns(Instant(wall, START), Instant(wall, START - HOUR))
    assert isinstance(by_wall, Gap)
    assert by_wall.gap is ClockGap.NOT_MONOTONIC
    broken = duration_ns(Instant(monotonic, 10**9), Instant(monotonic, 10**8))
    assert isinstance(broken, Gap)
    assert broken.gap is ClockGap.STEPPED_BACK


def test_a_store_publishes_the_same_whatever_the_wall_clock_does(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number, step in enumerate((0, -HOUR, 10 * HOUR, -87_600 * HOUR)):
        place.clock.step_wall(step)
        place.append("a.jsonl", b"%d\n" % number * 30)
        report = place.once(batch_bytes=50)
        assert report.overdue_bytes >= 0
    place.final()
    assert streams(place) == {("a.jsonl", 1): b"".join(b"%d\n" % number * 30 for number in range(4))}
    outcome = json.loads(place.staged.outcome.read_text())
    assert outcome["overdue_bytes"] == 0
    assert [name.sequence for name in place.bundles()] == list(range(1, len(place.bundles()) + 1))
    assert RemarkKind.VANISHED not in {remark.kind for remark in report.remarks}
