"""`--steps`, `--ranks` and the exit status of what was found (SU-3, CP-9)."""

import pytest
from msgspec.structs import replace

from paritrace.cli.allowances import Judgement, judgement, status_of_comparison
from paritrace.cli.selections import parse_ranks, parse_steps
from paritrace.compare.result import Comparison, Counts, Mark
from paritrace.errors import RequestError
from paritrace.reports.formats import UNLIMITED
from tests.reports import comparisons


@pytest.mark.parametrize(
    ("text", "steps"),
    [(None, None), ("0:3", (0, 3)), ("2:", (2, None)), (":4", (0, 4)), ("5", (5, 6)), ("0:1", (0, 1))],
)
def test_steps_are_half_open(text: str | None, steps: tuple[int, int | None] | None) -> None:
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", ":", "a:b", "3:3", "4:2", "-1:2", "1:2:3", "٣:٤", "1 : 2", "9" * 30])
def test_steps_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(RequestError) as raised:
        parse_steps(text)
    assert raised.value.code == "bad_steps"


def test_ranks_are_a_list() -> None:
    assert parse_ranks(None) is None
    assert parse_ranks("all") is None
    assert parse_ranks("3,0,3") == (0, 3)
    for text in ("", "0,", "a", "0;1", "-1"):
        with pytest.raises(RequestError):
            parse_ranks(text)


ASKED = Judgement(exit_code=True, exit_zero=False)
TOLERANT = Judgement(exit_code=True, exit_zero=False, allowed=UNLIMITED)


def undetermined(number: int) -> Comparison:
    return replace(comparisons.agreeing(), counts=Counts(10, 10, 10, 10, 0, 0, number, 0, 0))


@pytest.mark.parametrize(
    ("comparison", "asked", "status"),
    [
        (comparisons.agreeing(), ASKED, 0),
        (comparisons.parted(), ASKED, 1),
        (comparisons.parted(), Judgement(exit_code=False, exit_zero=False), 0),
        (comparisons.parted(), Judgement(exit_code=True, exit_zero=True), 0),
        (comparisons.outside_parameter(), ASKED, 1),
        (undetermined(3), ASKED, 3),
        (undetermined(3), replace(ASKED, allowed=3), 0),
        (undetermined(3), replace(ASKED, allowed=2), 3),
        (undetermined(3), TOLERANT, 0),
        (replace(comparisons.agreeing(), ranks_missing=(1,)), TOLERANT, 3),
        (replace(comparisons.agreeing(), ranks_compared=()), TOLERANT, 3),
        (
            replace(
                comparisons.agreeing(),
                coverage={"baseline": comparisons.COMPLETE, "candidate": replace(comparisons.COMPLETE, complete=False)},
            ),
            TOLERANT,
            3,
        ),
        (replace(comparisons.agreeing(), ladder=comparisons.ladder(code=Mark.BEYOND, config=Mark.BEYOND)), ASKED, 0),
        (replace(comparisons.agreeing(), ladder=comparisons.ladder(loss=Mark.BEYOND)), ASKED, 1),
        (replace(undetermined(3), ladder=comparisons.ladder(loss=Mark.BEYOND)), ASKED, 1),
    ],
)
def test_su3_exit_status_of_a_comparison(comparison: Comparison, asked: Judgement, status: int) -> None:
    assert status_of_comparison(comparison, asked) == status


def test_su3_allowances_are_read_or_refused() -> None:
    assert judgement(exit_code=True, allow=(), exit_zero=False).allowed == 0
    assert judgement(exit_code=True, allow=("undetermined",), exit_zero=False).allowed == UNLIMITED
    assert judgement(exit_code=True, allow=("undetermined=7",), exit_zero=False).allowed == 7
    for text in ("undetermined=", "undetermined=-1", "undetermined=x", "different", ""):
        with pytest.raises(RequestError) as raised:
            judgement(exit_code=True, allow=(text,), exit_zero=False)
        assert raised.value.code == "bad_allowance"
