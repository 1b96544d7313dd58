"""Lines of a file in memory of one line, wherever reads end."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.importers.text_source import MOST_LINE_BYTES, lines_of


@given(data=st.binary(max_size=60).map(lambda one: one.replace(b"\x00", b"\n")), cuts=st.lists(st.integers(0, 60)))
def test_lines_do_not_depend_on_where_reads_end(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = list(lines_of(data[a:b] for a, b in pairwise(places)))
    assert b"".join((one.data or b"") + b"\n" * one.whole for one in found) == data
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert all(data[one.offset : one.offset + len(one.data or b"")] == one.data for one in found)


def test_a_line_beyond_the_bound_is_passed_over_and_the_next_one_read() -> None:
    long = b"x" * (MOST_LINE_BYTES + 1)
    found = list(lines_of(iter([b"a\n", long, b"y\n", b"b"])))
    assert [(one.number, one.data, one.whole) for one in found] == [(1, b"a", True), (2, None, True), (3, b"b", False)]
    assert found[2].offset == 2 + len(long) + 2
