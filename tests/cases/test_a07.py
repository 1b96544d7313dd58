"""A-07: a large difference says nothing about which side is right; swapping the runs changes no statement but names."""

from pathlib import Path

from msgspec.structs import asdict

from tests.compare.runs import compared, training

WORDS_OF_BLAME = ("regress", "wrong", "worse", "incorrect", "better", "broken", "bug")


def test_no_side_is_called_right(tmp_path: Path) -> None:
    there = compared(tmp_path / "there", training(), training(scale=5.0)).result
    back = compared(tmp_path / "back", training(scale=5.0), training()).result
    for result in (there, back):
        assert result.verdict == "not_evaluated"
        told = " ".join(finding.sentence + finding.strength for finding in result.findings).lower()
        assert not [word for word in WORDS_OF_BLAME if word in told]
    assert there.first_difference is not None
    assert back.first_difference is not None
    for name in ("group", "step", "function", "module", "line"):
        assert asdict(there.first_difference)[name] == asdict(back.first_difference)[name]
