"""SHA-256 of bytes and streams (EV-15)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.digests import is_sha256, sha256_hex, sha256_of, sha256_with_prefix


@given(st.lists(st.binary(max_size=20)))
def test_a_stream_has_the_digest_of_its_bytes(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    found = sha256_of(chunks)
    assert (found.num_bytes, found.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert sha256_hex(whole) == found.sha256
    assert is_sha256(found.sha256)


@given(st.lists(st.binary(max_size=20)), st.integers(0, 100))
def test_a_prefix_has_the_digest_of_its_bytes(chunks: list[bytes], prefix_bytes: int) -> None:
    whole = b"".join(chunks)
    found = sha256_with_prefix(chunks, prefix_bytes=prefix_bytes)
    assert (found.num_bytes, found.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert found.prefix_sha256 == hashlib.sha256(whole[:prefix_bytes]).hexdigest()


@pytest.mark.parametrize("text", ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "../" + "a" * 61])
def test_what_is_not_a_digest(text: str) -> None:
    assert is_sha256(text) is False
