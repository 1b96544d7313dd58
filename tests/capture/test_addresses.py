"""Which token each row of a batch is, from every form that a workload has at hand (CP-27)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.addresses import Addresses, Declaration, Numbers, UnclearError, addresses, sample_name


def array(*rows: object) -> Numbers:
    return np.array(rows, dtype=np.int64)


def tokens(found: Addresses) -> list[tuple[str, int] | None]:
    """The token of each row, None for padding."""
    flat = zip(found.index.reshape(-1).tolist(), found.positions.reshape(-1).tolist(), strict=True)
    return [None if position < 0 else (found.samples[index], position) for index, position in flat]


PADDED_RIGHT = [("a", 0), ("a", 1), None, ("b", 0), ("b", 1), ("b", 2)]
PACKED = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (Declaration(ids=["a", "b"], attention_mask=array([1, 1, 0], [1, 1, 1])), PADDED_RIGHT),
        (
            Declaration(ids=["a", "b"], attention_mask=array([0, 1, 1], [1, 1, 1])),
            [None, ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)],
        ),
        (Declaration(ids=["a", "b"], positions=array([0, 1, -1], [0, 1, 2])), PADDED_RIGHT),
        (Declaration(ids=["a", "a", "b", "b", "b"], positions=array(0, 1, 0, 1, 2)), PACKED),
        (
            Declaration(ids=[["a", "a"], ["b", "b"]], positions=array([4, 5], [0, 1])),
            [("a", 4), ("a", 5), ("b", 0), ("b", 1)],
        ),
        (Declaration(ids=["a", "b"], cu_seqlens=array(0, 2, 5)), PACKED),
        (Declaration(ids=["a", "b"], cu_seqlens=array(0, 2, 5), input_ids=array([9, 9, 9, 9, 9, 0])), [*PACKED, None]),
        (Declaration(ids=["a", "b"], position_ids=array([0, 1, 0, 1, 2])), PACKED),
        (Declaration(ids=["a", "b"], position_ids=array(0, 1, 0, 1, 2)), PACKED),
        (Declaration(ids=["a", "b"], position_ids=array([3], [7])), [("a", 3), ("b", 7)]),
        (Declaration(ids=["a", "b"], input_ids=array([5, 6], [7, 8])), [("a", 0), ("a", 1), ("b", 0), ("b", 1)]),
        (Declaration(ids="a", position_ids=array([2, 3])), [("a", 2), ("a", 3)]),
        (Declaration(ids=array(7, 7, 9), positions=array(0, 1, 0)), [("7", 0), ("7", 1), ("9", 0)]),
        (Declaration(ids=[], cu_seqlens=array(0)), []),
    ],
)
def test_every_form_says_which_token_each_row_is(given_: Declaration, expected: list[tuple[str, int] | None]) -> None:
    assert tokens(addresses(given_)) == expected


def test_a_mask_is_believed_before_the_positions_that_the_model_is_given() -> None:
    wrong = Declaration(ids=["a"], attention_mask=array([0, 1, 1]), position_ids=array([0, 1, 2]))
    assert tokens(addresses(wrong)) == [None, ("a", 0), ("a", 1)]


@pytest.mark.parametrize(
    "given_",
    [
        Declaration(ids=["a"]),
        Declaration(ids=["a"], positions=array([0, 1], [0, 1])),
        Declaration(ids=["a", "b"], cu_seqlens=array(0, 2)),
        Declaration(ids=["a"], cu_seqlens=array(1, 2)),
        Declaration(ids=["a", "b"], cu_seqlens=array(0, 3, 2)),
        Declaration(ids=["a", "b"], position_ids=array([0, 1, 2])),
        Declaration(ids=["a", "b"], cu_seqlens=array(0, 2, 5), input_ids=array([9, 9])),
        Declaration(ids=[["a"], ["b", "c"]], positions=array([0])),
        Declaration(ids=[["a"], "b"], positions=array([0])),
        Declaration(ids=[None], positions=array(0)),
        Declaration(ids=[True], positions=array(0)),
        Declaration(ids=[1.5], positions=array(0)),
        Declaration(ids=["a"], positions=array(1 << 31)),
        Declaration(ids=["a"], attention_mask=array([[[1]]])),
    ],
)
def test_what_does_not_say_it_is_unclear(given_: Declaration) -> None:
    with pytest.raises(UnclearError):
        addresses(given_)


def test_a_part_of_a_batch_keeps_its_addresses() -> None:
    whole = addresses(Declaration(ids=["a", "b"], attention_mask=array([1, 1, 0], [1, 1, 1])))
    assert tokens(whole[:, 1:]) == [("a", 1), None, ("b", 1), ("b", 2)]
    assert whole[1].shape == (3,)


def test_names_of_samples_are_bounded_and_never_mistaken() -> None:
    assert sample_name(17) == sample_name(np.int64(17)) == sample_name("17") == "17"
    long = "prompt " * 100
    assert sample_name(long).startswith("sha256:")
    assert len(sample_name(long)) == 39
    assert sample_name(long) != sample_name(long + "!")
    assert sample_name("\udcff" * 65).startswith("sha256:")
    assert sample_name("\x1b[31m") == "\x1b[31m"


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_padded_and_packed_batches_have_the_same_tokens(lengths: list[int]) -> None:
    """Whatever the lengths, a batch has each token once, padded or packed."""
    ids = [f"s{number}" for number in range(len(lengths))]
    mask = np.array([[int(place < length) for place in range(6)] for length in lengths], dtype=np.int64)
    padded = addresses(Declaration(ids=ids, attention_mask=mask))
    flipped = addresses(Declaration(ids=ids, attention_mask=mask[:, ::-1]))
    packed = addresses(Declaration(ids=ids, cu_seqlens=np.cumsum([0, *lengths])))
    expected = {(name, place) for name, length in zip(ids, lengths, strict=True) for place in range(length)}
    for found in (padded, flipped, packed, replace(padded)):
        held = [token for token in tokens(found) if token is not None]
        assert set(held) == expected
        assert len(held) == len(expected)
