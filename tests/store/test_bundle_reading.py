"""A bundle is read by the one spelling that it has; its bytes are hashed beside that (ST-8, ST-11, PF-8)."""

import hashlib
import io
import tarfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from msgspec.structs import replace

from paritrace.store.aside import BATCH_BYTES, AsideDigest
from paritrace.store.bundle_reading import BundleReader
from paritrace.store.bundle_writing import BLOCK, compressed
from paritrace.store.layout import COMPRESSED, PLAIN, BundleName
from paritrace.store.problems import ProblemKind
from tests.store.places import Place
from tests.store.reading import Kept


@pytest.mark.parametrize("sizes", [(), (0,), (5, 1), (BATCH_BYTES,), (7, BATCH_BYTES, 7), (BATCH_BYTES // 3,) * 20])
def test_pf7_a_digest_beside_is_that_of_all_bytes_and_leaves_no_thread(sizes: tuple[int, ...]) -> None:
    before = threading.active_count()
    pieces = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    with AsideDigest() as digest:
        for piece in pieces:
            digest.update(piece)
        assert digest.hexdigest() == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert threading.active_count() == before


def test_pf7_an_error_meanwhile_ends_the_thread() -> None:
    before = threading.active_count()
    with suppress(KeyError), AsideDigest() as digest:
        digest.update(bytes(3 * BATCH_BYTES))
        raise KeyError
    assert threading.active_count() == before


def plain_bundle(folder: Path) -> tuple[BundleName, bytes]:
    """A bundle of one journal, its tar uncompressed, under the name that fits these bytes."""
    place = Place(folder)
    place.write("a.jsonl", b"1\n")
    place.once()
    (name,) = place.bundles()
    data = zstandard.ZstdDecompressor().decompress(b"".join(place.target().read(str(name))), 1 << 20)
    return renamed(name, data), data


def renamed(name: BundleName, data: bytes, suffix: str = PLAIN) -> BundleName:
    return replace(name, sha256=hashlib.sha256(data).hexdigest(), suffix=suffix)


def problems(name: BundleName, data: bytes, *, step: int = 1 << 20) -> set[ProblemKind]:
    reader = BundleReader(name, (data[start : start + step] for start in range(0, len(data), step)))
    reader.read(Kept())
    return {problem.kind for problem in reader.problems}


@pytest.mark.parametrize("step", [1, 511, 512, 513, 1 << 20])
def test_st8_pieces_of_any_size_are_one_bundle(tmp_path: Path, step: int) -> None:
    name, data = plain_bundle(tmp_path)
    assert problems(name, data, step=step) == set()
    packed = b"".join(compressed([data]))
    assert problems(renamed(name, packed, COMPRESSED), packed, step=step) == set()


def test_st11_no_byte_around_its_manifest_may_be_another_even_when_its_name_agrees(tmp_path: Path) -> None:
    """Whoever gives changed bytes their right name is found by the spelling or by the segment's digest."""
    name, data = plain_bundle(tmp_path)
    manifest = range(BLOCK, data.index(b"}\n") + 2)
    for at in [at for at in range(0, len(data), 7) if at not in manifest]:
        changed = bytearray(data)
        changed[at] ^= 1
        assert problems(renamed(name, bytes(changed)), bytes(changed)), at


def test_st11_a_changed_byte_is_told_by_the_name(tmp_path: Path) -> None:
    name, data = plain_bundle(tmp_path)
    for at in range(0, len(data), 61):
        changed = bytearray(data)
        changed[at] ^= 1
        assert ProblemKind.WRONG_DIGEST in problems(name, bytes(changed)), at


def test_a_bundle_of_the_version_before_is_read_and_a_later_one_is_refused(tmp_path: Path) -> None:
    name, data = plain_bundle(tmp_path)
    for version, found in {b"1.0": set[ProblemKind](), b"1.9": {ProblemKind.DAMAGED_BUNDLE}}.items():
        other = data.replace(b'"version":"1.1"', b'"version":"%s"' % version)
        assert other != data
        assert problems(renamed(name, other), other) == found


@pytest.mark.parametrize("end", [0, 1, 512, 513, -1024, -1])
def test_st11_a_bundle_that_is_cut_off_is_damaged(tmp_path: Path, end: int) -> None:
    name, data = plain_bundle(tmp_path)
    assert ProblemKind.DAMAGED_BUNDLE in problems(renamed(name, data[:end]), data[:end])


@pytest.mark.parametrize("more", [b"\0", bytes(512), b"x" * 512])
def test_st11_bytes_behind_its_end_are_damage(tmp_path: Path, more: bytes) -> None:
    name, data = plain_bundle(tmp_path)
    assert ProblemKind.DAMAGED_BUNDLE in problems(renamed(name, data + more), data + more)


def test_st8_a_tar_of_another_writer_is_no_bundle(tmp_path: Path) -> None:
    name, data = plain_bundle(tmp_path)
    other = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as ours, tarfile.open(fileobj=other, mode="w") as theirs:
        for member in ours:
            member.mtime = 1
            theirs.addfile(member, ours.extractfile(member))
    assert ProblemKind.DAMAGED_BUNDLE in problems(renamed(name, other.getvalue()), other.getvalue())
