"""Identity of runs, sessions, references and processes (EV-3)."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import Outcome, RequestError
from paritrace.evidence.ids import Ref, checked_id, new_run_id, session_id_of


@pytest.mark.parametrize("text", ["a", "A.b_c-9", "x" * 128, "...", "-"])
def test_an_id_is_returned_as_it_is(text: str) -> None:
    assert checked_id(text, what="run id") == text


@pytest.mark.parametrize("text", ["", "x" * 129, "a/b", "a b", "ä", "a\n", ".", "..", "a\0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        checked_id(text, what="run id")
    assert (caught.value.code, caught.value.outcome) == ("bad_id", Outcome.REFUSED)


times = st.integers(0, 4_000_000_000_000_000_000)


@given(times, times, st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_run_ids_are_ordered_by_time_and_are_version_7(first: int, second: int, one: bytes, other: bytes) -> None:
    earlier = new_run_id(unix_ns=min(first, second), random=one)
    later = new_run_id(unix_ns=max(first, second), random=other)
    if first // 1_000_000 != second // 1_000_000:
        assert earlier < later
    assert UUID(earlier).version == 7
    assert UUID(earlier).variant == "specified in RFC 4122"
    assert checked_id(earlier, what="run id") == earlier


def test_equal_times_with_other_noise_are_other_ids() -> None:
    made = {new_run_id(unix_ns=5, random=bytes([byte] * 10)) for byte in range(256)}
    assert len(made) == 256


def test_the_noise_has_ten_bytes() -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        new_run_id(unix_ns=0, random=b"short")


def test_equal_ids_of_different_producers_are_different() -> None:
    assert Ref("vllm", "7") != Ref("client", "7")
    assert len({Ref("vllm", "7"), Ref("client", "7"), Ref("vllm", "7")}) == 2


def test_session_ids_name_rank_and_restart() -> None:
    made = [session_id_of(rank=rank, incarnation=restart) for rank in (0, 11) for restart in (0, 1, 12)]
    assert made == [
        "rank-0",
        "rank-0.restart-1",
        "rank-0.restart-12",
        "rank-11",
        "rank-11.restart-1",
        "rank-11.restart-12",
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", one) for one in made)
