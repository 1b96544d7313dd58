"""The list of faults, each by name: full disks, lost permission, targets that go away, clocks, ranks, nodes (ST-16)."""

import errno
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.files import LOCAL, Files, Primitives
from paritrace.store.targets import is_transient
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.verifying import StoreVerdict, verify_store
from paritrace.testing.faults import ErrnoFiles
from tests.store.drilling import JOURNAL, check_visible, record
from tests.store.places import Place
from tests.store.reading import streams

SMALL_BYTES = 2 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("a file system cannot be mounted here: that takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False, timeout=60)


def filled(folder: Path) -> Path:
    """Fill a file system to its last byte."""
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                file.write(b"\0" * size)
            except OSError:
                size //= 2
    return path


def error_of(place: Place, files: Files = LOCAL) -> HostError:
    with pytest.raises(HostError) as caught:
        place.syncer(files=files).once()
    assert caught.value.fix
    return caught.value


def require_whole(place: Place, *, num_records: int) -> None:
    place.final()
    assert streams(place)[JOURNAL, 1] == b"".join(map(record, range(num_records)))
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT


def test_a_full_target_is_permanent_and_goes_on_when_space_is_freed(tmp_path: Path, small_disk: Path) -> None:
    place = Place(tmp_path, store=small_disk / "store")
    place.append(JOURNAL, b"".join(map(record, range(50))))
    place.once()
    ballast = filled(small_disk)
    place.append(JOURNAL, b"".join(map(record, range(50, 100))))
    place.write("whole.bin", bytes(range(256)) * 100)
    error = error_of(place)
    assert (error.code, is_transient(error)) == ("disk_full", False)
    check_visible(place)
    ballast.unlink()
    require_whole(place, num_records=100)


def test_a_full_staging_disk_stops_the_sync_and_touches_no_original(tmp_path: Path, small_disk: Path) -> None:
    place = Place(small_disk, store=tmp_path / "store")
    place.append(JOURNAL, b"".join(map(record, range(50))))
    place.write("whole.bin", bytes(range(256)) * 100)
    ballast = filled(small_disk)
    before = {path: path.read_bytes() for path in place.originals.rglob("*") if path.is_file()}
    assert error_of(place).code == "disk_full"
    assert {path: path.read_bytes() for path in place.originals.rglob("*") if path.is_file()} == before
    ballast.unlink()
    require_whole(place, num_records=50)


@pytest.mark.parametrize(
    ("number", "code", "transient"),
    [
        (errno.EIO, "io_error", True),
        (errno.ENOSPC, "disk_full", False),
        (errno.EDQUOT, "disk_full", False),
        (errno.EACCES, "not_permitted", False),
        (errno.EROFS, "read_only", False),
        (errno.ESTALE, "stale_handle", True),
    ],
)
@pytest.mark.parametrize("operation", ["write", "fsync", "close", "rename"])
def test_errors_of_the_target(tmp_path: Path, operation: str, number: int, code: str, transient: bool) -> None:
    place = Place(tmp_path)
    place.append(JOURNAL, b"".join(map(record, range(20))))
    place.once()
    place.append(JOURNAL, b"".join(map(record, range(20, 40))))
    target = DirectoryTarget(place.store, files=ErrnoFiles(operation=operation, number=number), clock=place.clock)
    with pytest.raises(HostError) as caught:
        place.syncer(target=target).once()
    assert (caught.value.code, is_transient(caught.value)) == (code, transient)
    check_visible(place)
    require_whole(place, num_records=40)


class _FsyncFailsOnce(Primitives):
    """A disk that loses the pages of one fsync and says so once, as the kernel does."""

    def __init__(self) -> None:
        self.copies: set[Path] = set()
        self._copy = -1
        self.failed = 0

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        if path.name.endswith(".tmp"):
            self.copies.add(path)
            self._copy = fd
        return fd

    def fsync(self, fd: int) -> None:
        if not self.failed and fd == self._copy:
            self.failed += 1
            raise OSError(errno.EIO, "lost")


def test_after_a_failed_fsync_the_copy_is_made_again_from_the_source(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.append(JOURNAL, record(0))
    place.once()
    place.append(JOURNAL, record(1))
    primitives = _FsyncFailsOnce()
    place.syncer(target=DirectoryTarget(place.store, files=Files(primitives), clock=place.clock)).once()
    assert (primitives.failed, len(primitives.copies)) == (1, 2)
    require_whole(place, num_records=2)


def test_a_target_that_disappears_for_a_while(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.append(JOURNAL, b"".join(map(record, range(10))))
    place.once()
    place.store.rename(tmp_path / "away")
    place.store.write_bytes(b"a mount point that is gone")
    place.append(JOURNAL, b"".join(map(record, range(10, 20))))
    with pytest.raises((HostError, EvidenceError)) as caught:
        place.once()
    assert caught.value.outcome is Outcome.REFUSED
    place.store.unlink()
    (tmp_path / "away").rename(place.store)
    require_whole(place, num_records=20)


def test_clocks_that_jump_change_no_byte(tmp_path: Path) -> None:
    names = []
    for jump_ns in (0, 3600 * 10**9, -(10 * 365 * 86_400 * 10**9)):
        place = Place(tmp_path / str(jump_ns))
        place.append(JOURNAL, b"".join(map(record, range(10))))
        place.once()
        place.clock.step_wall(jump_ns)
        place.append(JOURNAL, b"".join(map(record, range(10, 20))))
        require_whole(place, num_records=20)
        names.append(len(place.bundles()))
    assert len(set(names)) == 1


def test_two_ranks_of_a_node_and_two_nodes_share_a_target(tmp_path: Path) -> None:
    store = tmp_path / "store"
    places = [Place(tmp_path, node=node, rank=rank, store=store) for node, rank in (("n0", 0), ("n0", 1), ("n1", 2))]
    for number, place in enumerate(places):
        place.append(JOURNAL, b"".join(map(record, range(5 + number))))
        place.once()
    for place in places:
        place.final()
    found = verify_store(places[0].target())
    assert found.verdict is StoreVerdict.INTACT
    assert sorted((rank.node_id, rank.rank) for rank in found.ranks) == [("n0", 0), ("n0", 1), ("n1", 2)]


def test_a_duplicate_node_id_publishes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = Place(tmp_path / "a", store=store)
    first.append(JOURNAL, record(0))
    first.once()
    second = Place(tmp_path / "b", store=store)
    second.host = "beta"
    second.append(JOURNAL, record(1))
    before = sorted(path.name for path in store.rglob("*"))
    with pytest.raises(EvidenceError) as caught:
        second.once()
    assert caught.value.code in ("duplicate_node", "checkpoint_lost")
    assert sorted(path.name for path in store.rglob("*")) == before
