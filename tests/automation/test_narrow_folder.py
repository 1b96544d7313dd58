"""The folder of a narrowing: whole rounds, what was cut off, and who may work in it (CP-15, P4)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.automation.narrow_folder import ROUND, Folder, size_of
from paritrace.automation.narrow_records import Asked, Question, Seen
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.files import LOCAL
from paritrace.reports.documents import encoded
from tests.automation.narrowings import ASKED, seen
from tests.reports.comparisons import agreeing


def keep(folder: Folder, number: int) -> Seen:
    """Keep one round as a narrowing does: its comparison, then its record."""
    place = folder.new_round(number)
    one = seen(Question.REPEAT, agreeing(), number=number)
    ended = replace(one.round, comparison=f"{place.name}/comparison")
    LOCAL.replace(place / "comparison" / "comparison.json", encoded(one.comparison))
    folder.keep_round(place, ended)
    return Seen(ended, one.comparison)


def test_rounds_that_ended_are_found_again_and_others_are_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "n")
    with folder.open_for(ASKED):
        first = keep(folder, 1)
        cut = folder.new_round(2)
        (cut / "baseline.log").write_text("killed here")
    again = Folder(tmp_path / "n")
    with again.open_for(ASKED):
        assert again.rounds() == [first]
        assert again.cut_off() == ("round-2",)
        second = keep(again, 2)
        assert second.round.comparison == "round-2.2/comparison"  # what may still be written to the first is no matter
        assert again.rounds() == [first, second]
    assert (cut / "baseline.log").read_text() == "killed here"


def test_another_question_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "n")
    with folder.open_for(ASKED):
        keep(folder, 1)
    before = sorted(path for path in (tmp_path / "n").rglob("*"))
    other = Asked(baseline="c" * 64, candidate="b" * 64, recorded=True)
    with pytest.raises(RequestError) as refused, folder.open_for(other):
        pytest.fail("it was taken")
    assert refused.value.code == "another_narrowing"
    assert sorted(path for path in (tmp_path / "n").rglob("*")) == before


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_something_else_in_the_way_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "n"
    if kind == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "thesis.tex").write_text("mine")
    with pytest.raises(RequestError) as refused, Folder(place).open_for(ASKED):
        pytest.fail("it was taken")
    assert refused.value.code == "another_narrowing"
    assert not (place / "asked.json").exists()


def test_two_at_once_are_refused_at_once(tmp_path: Path) -> None:
    with Folder(tmp_path / "n").open_for(ASKED):
        with pytest.raises(HostError) as refused, Folder(tmp_path / "n").open_for(ASKED):
            pytest.fail("both work in it")
        assert refused.value.code == "narrowing_runs"


def test_a_damaged_round_is_named_and_not_taken(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "n")
    with folder.open_for(ASKED):
        keep(folder, 1)
        (tmp_path / "n" / "round-1" / ROUND).write_bytes(b'{"number": ')
        with pytest.raises(EvidenceError, match="round-1") as refused:
            folder.rounds()
    assert refused.value.code == "damaged_result"


def test_the_size_of_a_folder_counts_no_link(tmp_path: Path) -> None:
    (tmp_path / "n" / "deep").mkdir(parents=True)
    (tmp_path / "n" / "deep" / "file").write_bytes(b"12345")
    (tmp_path / "n" / "link").symlink_to(tmp_path / "n" / "deep" / "file")
    (tmp_path / "n" / "loop").symlink_to(tmp_path / "n")
    assert size_of(tmp_path / "n") == 5
