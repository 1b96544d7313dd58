"""Calls and summaries as columns: what is read is what was taken in, whatever it was (CP-17)."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.detail_store import PLAIN_BYTES, DetailStore
from paritrace.compare.lookups import IdIndex, distinct, looked_up, pairs_of
from paritrace.compare.sample_store import SampleStore
from paritrace.compare.verdicts import Verdict, Verdicts
from paritrace.correspondence.coded import CodedTexts
from paritrace.evidence.calls import Call, Detail, Slot, StateSamples
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.testing.strategies import A_CALL, call_rows, detail_rows

ODD = ("AB" * 8, "12", "0" * 15 + " ", "0" * 17, "")


def columns_of(*batches: list[Call]) -> CallColumns:
    found = CallColumns()
    for batch in batches:
        if batch:
            found.take(batch)
    found.settle()
    return found


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)  # also on a busy machine
@given(st.lists(call_rows, max_size=6), st.lists(call_rows, max_size=3))
def test_calls_come_back_in_the_order_of_their_ids(first: list[Call], second: list[Call]) -> None:
    wanted = sorted([*first, *second], key=lambda call: call.id)
    found = columns_of(first, second)
    assert list(found) == wanted
    assert [found[i] for i in range(len(found))] == wanted
    even = np.arange(len(found)) % 2 == 0
    assert list(found.where(even)) == wanted[::2]


@pytest.mark.parametrize("bits", ODD)
def test_bits_that_are_no_fingerprint_stay_as_they_are(bits: str) -> None:
    call = replace(A_CALL, inputs=(Slot(1, 2, bits), Slot(1, 2, "0f" * 8), Slot(1, 2, Gap(CaptureGap.IN_FLIGHT))))
    assert list(columns_of([call])) == [call]


def test_readers_of_a_call_are_found_among_those_behind_it() -> None:
    reads = (Slot(1, 2, "ab" * 8, (7, 0)),)
    other, origin = (Slot(1, 2, "ab" * 8, (8, 0)),), (Slot(1, 2, "ab" * 8, 7),)
    inputs = [reads, other, origin, (*other, *reads, *reads), (), reads]
    calls = [replace(A_CALL, id=7 + n, inputs=slots, outputs=reads) for n, slots in enumerate([(), *inputs])]
    found = columns_of(calls)
    assert [found.readers(0, until=until) for until in (1, 2, 4, 100)] == [[], [1], [1], [1, 4, 6]]
    assert found.readers(4, until=7) == []


def test_coded_texts_are_read_as_a_list_of_them() -> None:
    found = CodedTexts(["a", "", "b"], np.array([0, 1, 1, 2, 0]))
    assert list(found) == ["a", "", "", "b", "a"]
    found[1] = "c"
    assert (found[:3], (found.codes != 0).tolist()) == (["a", "c", ""], [True, True, False, True, True])


def test_outputs_of_a_collective_are_filled_in_when_it_is_done() -> None:
    waiting, unwritten = (Slot(5, 6, Gap(gap)) for gap in (CaptureGap.IN_FLIGHT, CaptureGap.UNINITIALISED))
    others = [replace(A_CALL, id=9, outputs=(Slot(5, 6, "ab" * 8),)), replace(A_CALL, id=10, outputs=(unwritten,))]
    found = columns_of([replace(A_CALL, inputs=(waiting,), outputs=(waiting,)), *others])
    assert found.with_gap(CaptureGap.IN_FLIGHT) == [0]
    found.replace_outputs(0, ["cd" * 8])
    assert (found[0].outputs[0].bits, found.with_gap(CaptureGap.IN_FLIGHT)) == ("cd" * 8, [])
    assert found.with_gap(CaptureGap.UNINITIALISED) == [2]


def test_numbers_beyond_64_bits_are_refused_and_nothing_is_taken() -> None:
    found = CallColumns()
    with pytest.raises(OverflowError):
        found.take([replace(A_CALL, left=1 << 63)])
    assert len(found) == 0


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)  # also on a busy machine
@given(st.lists(detail_rows, max_size=8))
def test_of_two_summaries_of_a_slot_the_later_one_counts(details: list[Detail]) -> None:
    wanted = {(one.call, one.side, one.slot): one for one in details}
    for plain_bytes in (0, 1000, PLAIN_BYTES):  # all are packed, those behind some, and none
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("paritrace.compare.detail_store.PLAIN_BYTES", plain_bytes)
            found = DetailStore()
            for detail in details:
                found.take(detail)
        assert {key: found.get(key) for key in found} == wanted
        assert found.get((1 << 50, "i", 0)) is None


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)  # also on a busy machine
@given(st.lists(st.integers(-3, 1 << 40), max_size=8))
def test_ids_are_found_as_in_a_dict(ids: list[int]) -> None:
    ids.sort()
    index, wanted = IdIndex(np.array(ids, dtype=np.int64)), {number: place for place, number in enumerate(ids)}
    assert {number: index.get(number) for number in [*ids, 77]} == {number: wanted.get(number) for number in [*ids, 77]}
    assert index.places(np.array([*ids, 77], dtype=np.int64)).tolist() == [wanted.get(n, -1) for n in [*ids, 77]]


def test_a_table_that_lacks_a_value_says_so() -> None:
    assert looked_up(np.array([3, 1 << 40, 3]), {3: 7, 1 << 40: 8}).tolist() == [7, 8, 7]
    with pytest.raises(KeyError):
        looked_up(np.array([3, 4]), {3: 7})


def test_pairs_are_numbered_in_the_order_of_appearance() -> None:
    pairs, where = pairs_of(np.array([5, 2, 5, 2]), np.array([1, 1, 1, 0]))
    assert (pairs, where.tolist()) == ([(5, 1), (2, 1), (2, 0)], [0, 1, 0, 2])


@pytest.mark.parametrize("far", [0, 1 << 40])
def test_values_far_apart_are_counted_as_near_ones_are(far: int) -> None:
    first, second = np.array([5, 2, 5 + far, 2]), np.array([1, 1, 1, 0])
    pairs, where = pairs_of(first, second)
    assert [pairs[n] for n in where.tolist()] == list(zip(first.tolist(), second.tolist(), strict=True))
    assert list(dict.fromkeys(where.tolist())) == list(range(len(pairs)))
    assert distinct(first).tolist() == sorted(set(first.tolist()))


@pytest.mark.parametrize("samples", ["", "0aff", "0AFF", "0af", "0a ff", "no"])
def test_samples_come_back_as_they_were(samples: str) -> None:
    record = StateSamples(3, 0, "begin", 1, (samples, "00"))
    store = SampleStore()
    store.append(record)
    assert list(store) == [record]
    assert len(store) == 1


def test_verdicts_read_as_a_dict() -> None:
    found, wanted = Verdicts(4), dict[int, Verdict]()
    for i, outputs in ((2, (0,)), (0, (0,)), (3, ())):
        found[i] = wanted[i] = Verdict((), outputs, False, 1, (), ())
    assert dict(found) == dict(sorted(wanted.items()))
    assert list(found) == [0, 2, 3]
    assert (found.get(1), found.get(9), len(found), len(found.kinds)) == (None, None, 3, 2)
    assert found.told([len(kind.outputs) for kind in found.kinds], np.int64).tolist() == [1, 0, 1, 0]
