"""The rule of a run's schedule: points, what holds between them, and everything for which it is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.session.schedule import NOTHING, Schedule, schedule_of, values_at
from paritrace.session.workload import RUN_BOUNDARY, ConfigField

FIELDS = (
    ConfigField("lr", 0.1, minimum=0.0, maximum=1.0, impact=RUN_BOUNDARY),
    ConfigField("kind", "a", choices=("a", "b"), impact=RUN_BOUNDARY),
    ConfigField("width", 64),
    ConfigField("share", share_of="width", impact=RUN_BOUNDARY),
)


def made(asked: dict[str, Any], *, steps: int = 100) -> Schedule:
    found = schedule_of(asked, steps=steps, fields=FIELDS)
    assert isinstance(found, Schedule), found
    return found


def words(asked: dict[str, Any], *, steps: int = 100) -> list[str]:
    found = schedule_of(asked, steps=steps, fields=FIELDS)
    assert not isinstance(found, Schedule)
    assert {(one.rank, one.code) for one in found} == {(-1, "bad_schedule")}
    return [one.words for one in found]


def test_se24_a_value_holds_from_its_point_to_the_next_and_is_absent_before_the_first() -> None:
    schedule = made({"lr": [[10, 0.5], [20, 0.25]], "kind": [[0, "b"]]})
    assert values_at(schedule, 0) == {"kind": "b"}
    assert values_at(schedule, 9) == {"kind": "b"}
    assert values_at(schedule, 10)["lr"] == values_at(schedule, 19)["lr"] == 0.5
    assert values_at(schedule, 20)["lr"] == values_at(schedule, 99)["lr"] == 0.25


def test_se24_a_linear_course_moves_evenly_and_rests_after_its_last_point() -> None:
    schedule = made({"lr": {"points": [[0, 0.0], [50, 1.0]], "between": "linear"}})
    assert [values_at(schedule, offset)["lr"] for offset in (0, 25, 50, 99)] == [0.0, 0.5, 1.0, 1.0]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True), st.integers(0, 99))
def test_se24_the_value_is_that_of_the_last_point_at_or_before_a_step(offsets: list[int], at: int) -> None:
    points = [[offset, offset / 100] for offset in sorted(offsets)]
    earlier = [offset for offset in offsets if offset <= at]
    found = values_at(made({"lr": points}), at)
    assert found == ({"lr": max(earlier) / 100} if earlier else {})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"lr": []}, "no point"),
        ({"lr": 0.5}, "a list of [offset, value]"),
        ({"lr": {"points": [[0, 0.5]], "until": 3}}, "unknown field"),
        ({"lr": {"points": [[0, 0.5]], "between": "cosine"}}, "neither hold nor linear"),
        ({"lr": [[5, 0.5], [5, 0.6]]}, "offsets do not ascend"),
        ({"lr": [[-1, 0.5]]}, "outside of the run's 100 steps"),
        ({"lr": [[100, 0.5]]}, "outside of the run's 100 steps"),
        ({"lr": [[0, 1.5]]}, "above 1.0"),
        ({"kind": [[0, "c"]]}, "none of 'a', 'b'"),
        ({"kind": {"points": [[0, "a"], [9, "b"]], "between": "linear"}}, "no numbers"),
        ({"width": [[0, 32]]}, "cannot change between two steps"),
        ({"share": [[0, 32]]}, "cannot change between two steps"),
        ({"rate": [[0, 0.5]]}, "no field of this workload"),
    ],
)
def test_se24_what_cannot_be_installed_is_refused_in_words(asked: dict[str, Any], said: str) -> None:
    assert any(said in one for one in words(asked))


def test_se24_every_reason_is_said_at_once() -> None:
    assert len(words({"rate": [[0, 1]], "lr": [[200, 3.0]], "width": [[0, 1]]})) == 4


def test_se24_where_no_fields_are_declared_only_the_form_is_checked() -> None:
    found = schedule_of({"anything": [[0, [1, 2]]]}, steps=1, fields=None)
    assert isinstance(found, Schedule)
    assert values_at(found, 0) == {"anything": [1, 2]}
    assert not isinstance(schedule_of({"anything": []}, steps=1, fields=None), Schedule)


def test_se24_the_digest_is_of_what_it_does_not_of_its_spelling() -> None:
    short, long = made({"lr": [[0, 0.5]]}), made({"lr": {"points": [[0, 0.5]], "between": "hold"}})
    assert short.digest == long.digest != made({"lr": [[0, 0.25]]}).digest
    assert values_at(NOTHING, 0) == {}
