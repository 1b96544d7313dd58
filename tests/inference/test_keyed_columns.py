"""Columns under correlation ids give what a dictionary gives (IN-7)."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.keyed_columns import KeyedColumns

SCOPES = st.sampled_from([("run", "a"), ("run", "b"), ("run", None)])
IDS = st.sampled_from(["1", "2", "01", "-1", "x", " 1", "١", str(2**61), str(2**70), ""])  # noqa: RUF001  another 1
ROWS = st.lists(st.tuples(SCOPES, IDS, st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)), max_size=30)


@given(ROWS, SCOPES, IDS)
def test_rows_are_found_by_place_and_id_in_their_order(
    rows: list[tuple[tuple[str, str | None], str, int, str]], scope: tuple[str, str | None], number: str
) -> None:
    columns = KeyedColumns(2)
    expected: dict[object, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
    for place, (of, one, value, event_id) in enumerate(rows):
        columns.add(of, one, (value, place), event_id)
        expected[of, one].append((event_id, (value, place)))
    assert list(columns.of(scope, number)) == expected[scope, number]
    assert len(columns) == len(rows)
    for of, one, _, _ in rows:
        assert list(columns.of(of, one)) == expected[of, one]


def test_rows_that_come_after_a_look_are_found_too() -> None:
    columns = KeyedColumns(1)
    columns.add("here", "2", (5,), "b")
    assert list(columns.of("here", "1")) == []
    columns.add("here", "1", (4,), "a")
    assert list(columns.of("here", "1")) == [("a", (4,))]
    assert list(columns.of("there", "1")) == []
