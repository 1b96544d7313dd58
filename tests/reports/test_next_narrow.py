"""The first screen offers narrow where both programs can run again and no operator was recorded (CP-29, CP-15)."""

import pytest
from msgspec.structs import replace

from paritrace.reports.next_commands import section
from tests.reports.comparisons import parted


@pytest.mark.parametrize(
    ("levels", "seconds", "expected"),
    [
        (("digest", "module"), 42, "paritrace narrow A B"),
        (("digest", "module"), None, "paritrace run --level op"),
        (("digest", "module", "op"), 42, ""),
    ],
)
def test_what_leads_to_the_operator(levels: tuple[str, ...], seconds: int | None, expected: str) -> None:
    lines = section(replace(parted(), levels_compared=levels), kept=False, narrow_seconds=seconds).lines
    towards = [line for line in lines if line.startswith(("paritrace narrow", "paritrace run"))]
    assert [line.startswith(expected) for line in towards] == ([True] if expected else [])
    assert all("(~42 s)" in line for line in towards if "narrow" in line)


def test_long_paths_are_not_spelt_out() -> None:
    comparison = replace(parted(), levels_compared=("digest",))
    far = replace(
        comparison, baseline=replace(comparison.baseline, path="/a/very/long/way/to/the/baseline/of/this/run")
    )
    assert section(far, kept=False, narrow_seconds=5).lines[0].startswith("paritrace narrow BASE CAND")
