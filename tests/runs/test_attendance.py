"""Which ranks left evidence is said by number: none that never began, none without a receipt is forgotten (CA-16)."""

from pathlib import Path

from msgspec.structs import replace

from paritrace.cli.runs_text import summary_text, verification_text
from paritrace.compare.checks import check
from paritrace.compare.checks_result import Outcome
from paritrace.runs.attendance import CAPTURED_RANKS, MAX_RANKS_LISTED, Attendance, in_words
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import Run, open_run
from paritrace.runs.showing import summarise
from paritrace.runs.verify import Finding, Item, verify
from tests.runs.making import another_process, capture, request, torchrun


def began_and_died(run_dir: Path, rank: int, *, world_size: int = 2, restart: int = 0) -> None:
    """A rank that entered its session and was killed: its process is provably gone."""
    environ = torchrun(rank, world_size=world_size, restart=restart)
    begin_session(run_dir, request(environ, process=another_process()))


def whole(run_dir: Path, rank: int, *, world_size: int = 2, restart: int = 0) -> None:
    capture(run_dir, environ=torchrun(rank, world_size=world_size, restart=restart))


def attended(run_dir: Path) -> tuple[Attendance, ...]:
    with open_run(run_dir) as run:
        return run.attendance


def ranks_item(run: Run, name: str = "ranks") -> Item:
    (found,) = (item for item in verify(run).items if item.id == name)
    return found


def test_a_run_whose_ranks_all_wrote_receipts_is_complete(tmp_path: Path) -> None:
    for rank in (1, 0):
        whole(tmp_path / "A", rank)
    (one,) = attended(tmp_path / "A")
    assert one == Attendance(0, (2,), 2, 0, (), (), (), last=True)
    assert one.complete
    assert list(in_words(one)) == []
    with open_run(tmp_path / "A") as run:
        assert ranks_item(run).status is Finding.INTACT
        assert [i.status for i in check(run).invariants if i.id == "evidence.ranks_present"] == [Outcome.PASS]


def test_a_rank_that_never_began_and_one_without_a_receipt_are_told_apart(tmp_path: Path) -> None:
    whole(tmp_path / "A", 0, world_size=4)
    began_and_died(tmp_path / "A", 2, world_size=4)
    with open_run(tmp_path / "A") as run:
        (one,) = run.attendance
        assert (one.absent, one.num_absent, one.without_receipt, one.running) == ((1, 3), 2, (2,), ())
        words = ("rank 1, 3 of 4 wrote no session", "rank 2 left no receipt")
        assert tuple(in_words(one)) == words
        shown = summary_text(summarise(run))
        assert all(text in shown for text in words)
        assert summarise(run).ranks == (one,)
        assert ranks_item(run) == Item("ranks", Finding.MISSING, "; ".join(words))
        assert "rank 1, 3 of 4 wrote no session" in verification_text(verify(run))
        (found,) = (i for i in check(run).invariants if i.id == "evidence.ranks_present")
        assert (found.status, found.evidence.facts, found.evidence.total) == (Outcome.FAIL, words, 3)


def test_a_run_that_still_runs_is_not_called_short(tmp_path: Path) -> None:
    begin_session(tmp_path / "A", request(torchrun(0)))
    with open_run(tmp_path / "A") as run:
        (one,) = run.attendance
        assert (one.absent, one.running) == ((1,), (0,))
        assert next(in_words(one)) == "rank 1 of 2 has written no session yet"
        assert ranks_item(run).status is Finding.NOT_CHECKED
        assert [i.status for i in check(run).invariants if i.id == "evidence.ranks_present"] == [Outcome.NOT_CHECKABLE]


def test_a_restart_that_ran_through_explains_an_earlier_one_that_did_not(tmp_path: Path) -> None:
    began_and_died(tmp_path / "A", 1)
    for rank in (0, 1):
        whole(tmp_path / "A", rank, restart=1)
    with open_run(tmp_path / "A") as run:
        first, second = run.attendance
        assert (first.absent, first.without_receipt, first.last) == ((0,), (1,), False)
        assert second.complete
        assert ranks_item(run).status is Finding.NOT_CHECKED
        assert ranks_item(run, "ranks:restart-1").status is Finding.INTACT
        (found,) = (i for i in check(run).invariants if i.id == "evidence.ranks_present")
        assert found.status is Outcome.PASS
        assert "rank 0 of 2 wrote no session" in found.evidence.facts, "what the first start lost is still told"


def test_the_world_may_change_with_a_restart(tmp_path: Path) -> None:
    whole(tmp_path / "A", 0, world_size=1)
    for rank in range(3):
        whole(tmp_path / "A", rank, world_size=3, restart=1)
    assert [(one.num_expected, one.complete) for one in attended(tmp_path / "A")] == [(1, True), (3, True)]


def test_ranks_that_disagree_on_the_world_are_said_to(tmp_path: Path) -> None:
    whole(tmp_path / "A", 0, world_size=1)
    whole(tmp_path / "A", 1, world_size=2)
    (one,) = attended(tmp_path / "A")
    assert not one.complete
    assert list(in_words(one)) == ["the ranks do not agree on the world size: 1, 2"]


def test_ranks_that_were_not_asked_for_are_not_missing(tmp_path: Path) -> None:
    asked = replace(request(torchrun(3, world_size=4)), metadata={CAPTURED_RANKS: "1,3,9"})
    begin_session(tmp_path / "A", asked)
    (one,) = attended(tmp_path / "A")
    assert (one.num_expected, one.absent, one.running) == (2, (1,), (3,))


def test_an_absurd_world_is_counted_and_not_listed(tmp_path: Path) -> None:
    whole(tmp_path / "A", 5, world_size=10**9)
    (one,) = attended(tmp_path / "A")
    assert one.num_absent == 10**9 - 1
    assert len(one.absent) == MAX_RANKS_LISTED
    assert "and 999,998,999 more of 1,000,000,000 wrote no session" in next(in_words(one))
