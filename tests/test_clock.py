"""Times for people have one spelling (EV-20)."""

import pytest

from paritrace.clock import SYSTEM, rfc3339


@pytest.mark.parametrize(
    ("unix_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (999_999, "1970-01-01T00:00:00.000Z"),
        (1_999_999_999, "1970-01-01T00:00:01.999Z"),
        (1_709_164_800_123_456_789, "2024-02-29T00:00:00.123Z"),
        (253_402_300_799_000_000_000, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_rfc3339_is_utc_with_milliseconds_cut_off(unix_ns: int, text: str) -> None:
    assert rfc3339(unix_ns) == text


@pytest.mark.parametrize("unix_ns", [-1, 253_402_300_800_000_000_000])
def test_a_time_that_has_no_spelling_is_refused(unix_ns: int) -> None:
    with pytest.raises(ValueError, match="outside the years"):
        rfc3339(unix_ns)


def test_system_clocks_are_nanoseconds() -> None:
    assert SYSTEM.wall_ns() > 1_700_000_000_000_000_000
    before = SYSTEM.monotonic_ns()
    SYSTEM.sleep(0)
    assert SYSTEM.monotonic_ns() >= before
