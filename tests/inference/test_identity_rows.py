"""Looking identities up by columns says what a dictionary says (EV-9)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.identity_rows import Rows, as_rows, marker, reaches, repeated, states

# few values, so that first words meet without the second ones, and contents differ
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1), st.just(0)), max_size=40)


def columns(rows: list[tuple[int, int, int, int]]) -> Rows:
    return np.array(rows, dtype=np.uint64).reshape(-1, 4)


def one_content(rows: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    return list({row[:2]: row for row in rows}.values())


@given(ROWS, ROWS)
def test_states_are_those_of_a_dictionary(
    rows: list[tuple[int, int, int, int]], old: list[tuple[int, int, int, int]]
) -> None:
    known = one_content(old)
    content = {row[:2]: row[2:] for row in known}
    expected = [0 if row[:2] not in content else 1 if content[row[:2]] == row[2:] else 2 for row in rows]
    assert list(states(columns(rows), known=columns(known))) == expected
    padded = [*rows, *((9, number, 0, 0) for number in range(20))]  # more than are looked for one by one
    assert list(states(columns(padded), known=columns(known)))[: len(rows)] == expected


@given(ROWS)
def test_repetitions_are_found(rows: list[tuple[int, int, int, int]]) -> None:
    found, conflict = repeated(columns(rows))
    firsts = {row[:2]: number for number, row in reversed(list(enumerate(rows)))}
    assert [state == 0 for state in found] == [firsts[row[:2]] == number for number, row in enumerate(rows)]
    differs = len({row[:3] for row in rows}) != len({row[:2] for row in rows})
    assert (conflict is not None) == differs


def test_a_marker_says_how_far_rows_reach() -> None:
    data = bytes(64) + marker(12_345)
    assert reaches(data) == 12_345
    assert reaches(data[:-1]) is None
    assert reaches(bytes(64)) is None
    assert reaches(b"") is None
    assert len(as_rows(data)) == 3
    assert len(as_rows(b"")) == 0
