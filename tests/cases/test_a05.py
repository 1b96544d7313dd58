"""A-05: a tensor that is all NaN keeps its counts and states that it has no moments; NaN never becomes a number."""

import math

import numpy as np
import pytest

from paritrace.errors import InternalError
from paritrace.evidence import codec
from paritrace.evidence.calls import Counts, Detail, Moments
from paritrace.evidence.journal import JournalReader, Loss
from paritrace.testing.strategies import HEADER

HEAD = codec.encode_mark(HEADER)
ALL_NAN = Counts(
    nan=15, positive_infinity=0, negative_infinity=0, zero=0, negative_zero=0, subnormal=0, low_bits_zero=0
)


def detail(moments: Moments, counts: Counts) -> Detail:
    return Detail(1, "o", 0, "0" * 16, "", "", "0" * 16, moments, counts, "", degenerate=False)


def test_the_underflow_of_the_report() -> None:
    values = np.full((3, 5), 1e-10, np.float16)
    with np.errstate(invalid="ignore", divide="ignore"):
        eager = values / (values.var(dtype=np.float16) + np.float16(1e-9))
    assert np.isnan(eager).all()


def test_counts_of_non_finite_values_survive_and_moments_are_absent() -> None:
    row = detail(Moments(None, None, None, None, None), ALL_NAN)
    line = codec.encode_row(row)
    (_, read) = JournalReader([HEAD + line], name="j")
    assert read == row
    assert isinstance(read, Detail)
    assert read.counts is not None
    assert (read.counts.nan, read.moments) == (15, Moments(None, None, None, None, None))


def test_a_nan_is_neither_written_nor_read_as_a_number() -> None:
    with pytest.raises(InternalError):
        codec.encode_row(detail(Moments(math.nan, 0.0, 0.0, 0.0, 0.0), ALL_NAN))
    line = codec.encode_row(detail(Moments(0.5, 0.0, 0.0, 0.0, 0.0), ALL_NAN)).replace(b"[0.5,", b"[NaN,")
    (_, lost) = JournalReader([HEAD + line], name="j")
    assert isinstance(lost, Loss)
    assert "not_finite: NaN is not JSON" in lost.detail
