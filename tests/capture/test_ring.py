"""The ring of the black box: the last steps, bounded in bytes, with what fell out of it counted (CA-36)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.ring import CHUNK_ROWS, Ring, Taken
from paritrace.evidence import calls

PLENTY = 1 << 30


def row(number: int) -> calls.Call:
    return calls.Call(number, number + 1, -1, 0, 0, 0, 0, 0, 0, 0, -1, -1, 0, 0, 0, (), ())


def filled(ring: Ring, steps: range, *, rows: int) -> Ring:
    for step in steps:
        ring.begin(step)
        for number in range(rows):
            ring.keep(row(step * 10_000 + number))
    return ring


def lines(taken: Taken) -> list[bytes]:
    return b"".join(one.data for one in taken.lines).splitlines()


def test_the_last_steps_come_out_in_order_and_once() -> None:
    ring = filled(Ring(steps=20, num_bytes=PLENTY), range(38), rows=3)
    taken = ring.take()
    assert taken.steps == tuple(range(18, 38))
    assert (taken.rows, len(lines(taken))) == (60, 60)
    assert lines(taken)[0].startswith(b'["c",180000,')
    assert lines(taken)[-1].startswith(b'["c",370002,')
    assert (taken.dropped_steps, taken.dropped_rows, taken.cut_rows) == (0, 0, 0)
    assert ring.take().steps == ()
    assert not ring.has_rows


def test_steps_whose_rows_were_written_at_once_are_counted_and_not_named() -> None:
    ring = Ring(steps=4, num_bytes=PLENTY)
    for step in range(10):
        ring.begin(step)
        if step != 8:
            ring.keep(row(step))
    assert ring.take().steps == (6, 7, 9)


def test_another_rank_gets_the_same_steps_a_little_later() -> None:
    ring = filled(Ring(steps=20, num_bytes=PLENTY), range(40), rows=1)
    assert ring.take(since=37 - 19).steps == tuple(range(18, 40))


def test_more_bytes_than_the_limit_push_out_the_oldest_steps_and_are_counted() -> None:
    one = len(lines(filled(Ring(steps=20, num_bytes=PLENTY), range(1), rows=10).take())[0]) + 1
    ring = filled(Ring(steps=20, num_bytes=10 * 5 * (one + 8)), range(10), rows=10)
    assert ring.num_bytes <= 10 * 5 * (one + 8)
    taken = ring.take()
    assert taken.steps == tuple(range(10 - len(taken.steps), 10))
    assert 0 < len(taken.steps) < 10
    assert taken.dropped_steps == 10 - len(taken.steps)
    assert taken.dropped_rows == 10 * taken.dropped_steps
    assert taken.cut_rows == 0


def test_one_step_above_the_limit_is_kept_from_its_begin_without_a_hole() -> None:
    rows = 10 * CHUNK_ROWS
    ring = filled(Ring(steps=20, num_bytes=3 * CHUNK_ROWS * 60), range(1), rows=rows)
    taken = ring.take()
    assert taken.steps == (0,)
    assert 0 < taken.rows < rows
    assert taken.cut_rows == taken.dropped_rows == rows - taken.rows
    assert [line.split(b",")[1] for line in lines(taken)] == [b"%d" % number for number in range(taken.rows)]


def test_a_row_that_cannot_be_encoded_is_counted() -> None:
    ring = Ring(steps=2, num_bytes=PLENTY)
    ring.begin(0)
    ring.keep(row(1))
    ring.keep(object())
    taken = ring.take()
    assert (taken.rows, taken.faults) == (1, 1)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40), st.integers(1, 8), st.integers(2_000, 60_000))
def test_memory_is_bounded_and_every_row_is_kept_or_counted(sizes: list[int], keep: int, limit: int) -> None:
    ring = Ring(steps=keep, num_bytes=limit)
    for step, rows in enumerate(sizes):
        filled(ring, range(step, step + 1), rows=rows)
        assert ring.num_bytes <= limit
    taken = ring.take()
    wanted = sum(sizes[-keep:])
    assert taken.rows + taken.dropped_rows >= wanted
    assert taken.rows <= wanted
