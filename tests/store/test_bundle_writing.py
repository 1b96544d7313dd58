"""Headers of a bundle are those that `tarfile` makes, byte for byte (ST-8)."""

import tarfile

from hypothesis import example, given
from hypothesis import strategies as st

from paritrace.store.bundle_writing import header


@given(
    name=st.text(st.characters(exclude_categories=()), min_size=1, max_size=120).filter(lambda name: "\0" not in name),
    num_bytes=st.one_of(st.integers(0, 8**12), st.sampled_from([8**11 - 1, 8**11])),
    mode=st.sampled_from([0o644, 0o755]),
)
@example(name="x" * 100, num_bytes=0, mode=0o644)
@example(name="x" * 101, num_bytes=0, mode=0o644)
@example(name="é" * 50, num_bytes=511, mode=0o755)
def test_st8_a_header_is_that_of_tarfile(name: str, num_bytes: int, mode: int) -> None:
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return
    info = tarfile.TarInfo(name)
    info.size, info.mode = num_bytes, mode
    assert header(name, num_bytes, mode=mode) == info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
