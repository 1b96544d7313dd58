"""The compatibility window: our major version, later minors with what we know (EV-1)."""

import pytest

from paritrace.evidence.versions import Reading, reading_of


@pytest.mark.parametrize(
    ("theirs", "reading"),
    [
        ("1.2", Reading.SAME),
        ("1.0", Reading.SAME),
        ("1.3", Reading.NEWER_MINOR),
        ("1.10", Reading.NEWER_MINOR),
        ("2.0", Reading.OTHER_MAJOR),
        ("0.9", Reading.OTHER_MAJOR),
        ("1", Reading.FOREIGN),
        ("1.2.3", Reading.FOREIGN),
        ("1.02", Reading.FOREIGN),
        ("v1.2", Reading.FOREIGN),
        ("1.2\n", Reading.FOREIGN),
        ("", Reading.FOREIGN),
        ("1." + "9" * 5000, Reading.FOREIGN),
    ],
)
def test_how_a_version_is_read(theirs: str, reading: Reading) -> None:
    assert reading_of(theirs, ours="1.2") is reading


def test_our_own_version_is_well_formed() -> None:
    with pytest.raises(ValueError, match="MAJOR"):
        reading_of("1.0", ours="one")
