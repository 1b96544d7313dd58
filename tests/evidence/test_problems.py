"""What keeps a table from being a record is told as a person can mend it: every problem, and what a set holds."""

from enum import StrEnum
from typing import Literal

import pytest
from msgspec import Struct

from paritrace.evidence.problems import problems_of


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Choice(Struct):
    colour: Colour = Colour.RED
    side: Literal["left", "right"] = "left"
    call: int | Literal["--"] = 0
    maybe: Colour | None = None
    number: int = 0


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"colour": "blue"}, "colour: is 'blue'; there are red, green"),
        ({"side": "up"}, "side: is 'up'; there are left, right"),
        ({"call": "x"}, "call: is 'x'; there are whole numbers, --"),
        ({"maybe": "blue"}, "maybe: is 'blue'; there are red, green"),
        ({"colour": 3}, "colour: expected `str`, got `int`"),
        ({"number": "one"}, "number: expected `int`, got `str`"),
        ({"colur": "red"}, "colur: there is no such key; colour is meant?"),
    ],
)
def test_a_closed_set_is_listed(table: dict[str, object], told: str) -> None:
    assert list(problems_of(table, Choice)) == [told]


def test_all_of_them_are_told() -> None:
    found = list(problems_of({"colour": "blue", "side": 1, "number": None}, Choice, place="pairs[0]"))
    assert [problem.partition(":")[0] for problem in found] == [
        "pairs[0].colour",
        "pairs[0].side",
        "pairs[0].number",
    ]
