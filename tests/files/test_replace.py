"""Replacing a file: old bytes or new ones, modes, links, other devices, and a kill at every operation (EV-10, P4)."""

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from paritrace.errors import HostError, Outcome
from paritrace.files import LOCAL
from paritrace.testing.faults import ErrnoFiles, Fault, FaultyFiles, Stopped, hidden_leftovers

OLD, NEW = b"the old content\n", b"the new content, which is longer\n"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def met(act: Callable[[], None]) -> BaseException | None:
    """Return what an operation was ended by: our error, a kill, or nothing."""
    try:
        act()
    except (HostError, Stopped) as ended:
        return ended
    return None


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_0666_under_the_umask(tmp_path: Path) -> None:
    LOCAL.replace(tmp_path / "new", NEW)
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.usefixtures("umask")
def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(OLD)
    path.chmod(0o604)
    LOCAL.replace(path, NEW)
    assert (path.read_bytes(), mode(path)) == (NEW, 0o604)


def test_missing_parent_folders_are_made(tmp_path: Path) -> None:
    LOCAL.replace(tmp_path / "a" / "b" / "c", NEW)
    assert (tmp_path / "a" / "b" / "c").read_bytes() == NEW


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(OLD)
    with pytest.raises(HostError) as caught:
        LOCAL.replace(tmp_path / "a" / "b", NEW)
    assert (caught.value.code, caught.value.outcome) == ("not_a_folder", Outcome.REFUSED)


def test_a_symbolic_link_is_followed_and_stays(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "target"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link = tmp_path / "link"
    link.symlink_to("elsewhere/target")
    LOCAL.replace(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]


def test_a_dangling_link_gets_its_destination(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    LOCAL.replace(tmp_path / "link", NEW)
    assert (tmp_path / "target").read_bytes() == NEW


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(HostError) as caught:
        LOCAL.replace(tmp_path / "a", NEW)
    assert caught.value.code == "symlink_loop"


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_not_a_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(HostError) as caught:
        LOCAL.replace(path, NEW)
    assert caught.value.code == "not_a_file"
    assert [entry.name for entry in tmp_path.iterdir()] == ["thing"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EXDEV, "cross_device"),
        (errno.EROFS, "read_only"),
        (errno.EBUSY, "busy"),
        (errno.EACCES, "not_permitted"),
    ],
)
def test_another_device_or_a_read_only_one_is_refused_by_name(tmp_path: Path, number: int, code: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with pytest.raises(HostError) as caught:
        ErrnoFiles(operation="rename", number=number).replace(path, NEW)
    assert (caught.value.code, caught.value.outcome) == (code, Outcome.REFUSED)
    assert (path.read_bytes(), hidden_leftovers(tmp_path)) == (OLD, [])


def test_a_link_to_another_file_system_is_replaced_there(tmp_path: Path) -> None:
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system at /dev/shm")
    target = shared_memory / f"paritrace-test-{os.getpid()}"
    (tmp_path / "link").symlink_to(target)
    try:
        LOCAL.replace(tmp_path / "link", NEW)
        assert target.read_bytes() == NEW
    finally:
        target.unlink(missing_ok=True)


def test_a_long_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        LOCAL.replace(tmp_path / ("x" * 300), NEW)
    assert caught.value.code == "name_too_long"
    assert hidden_leftovers(tmp_path) == []


def test_a_name_of_full_length_is_fine(tmp_path: Path) -> None:
    LOCAL.replace(tmp_path / ("x" * 255), NEW)
    assert (tmp_path / ("x" * 255)).read_bytes() == NEW


def test_the_order_that_makes_it_durable(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    files = FaultyFiles(at=1000, fault=Fault.FAIL)
    files.replace(path, NEW)
    assert files.faulty.log == ["open", "write", "chmod", "fsync", "close", "rename", "open_read", "fsync"]
    files.faulty.log.clear()
    files.create(tmp_path / "other", (NEW,))
    assert files.faulty.log == ["open", "write", "fsync", "close", "link", "unlink", "open_read", "fsync"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.TEAR])
def test_an_error_at_every_operation_leaves_the_old_file_or_says_failed(
    tmp_path: Path, fault: Fault, number: int
) -> None:
    at = 0
    while True:
        at += 1
        path = tmp_path / f"{at}" / "file"
        path.parent.mkdir()
        path.write_bytes(OLD)
        files = FaultyFiles(at=at, fault=fault, number=number)
        error = met(partial(files.replace, path, NEW))
        if error is None:
            assert not files.faulty.happened
            break
        assert isinstance(error, HostError)
        assert error.code == ("io_error" if number == errno.EIO else "disk_full")
        assert path.read_bytes() == (NEW if error.outcome is Outcome.FAILED else OLD)
        assert hidden_leftovers(path.parent) == []
    assert at > 6  # open, chmod, write, fsync, close, rename, and the folder's two


@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP])
@pytest.mark.parametrize("exists", [True, False])
def test_a_kill_at_every_operation_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, fault: Fault, exists: bool
) -> None:
    seen = set()
    at = 0
    while True:
        at += 1
        path = tmp_path / f"{at}" / "file"
        path.parent.mkdir()
        if exists:
            path.write_bytes(OLD)
        files = FaultyFiles(at=at, fault=fault)
        try:
            files.replace(path, NEW)
        except Stopped:
            found = path.read_bytes() if path.exists() else None
            assert found in ((OLD if exists else None), NEW)
            seen.add(found)
            assert LOCAL.list(path.parent) == ((path,) if found else ())  # readers see no temporary file
        else:
            break
    assert len(seen) == 2


@pytest.mark.parametrize("fault", list(Fault))
def test_create_is_whole_or_absent_and_never_overwrites(tmp_path: Path, fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        path = tmp_path / f"{at}" / "file"
        path.parent.mkdir()
        files = FaultyFiles(at=at, fault=fault)
        error = met(partial(files.create, path, (NEW[:5], NEW[5:])))
        if error is None and not files.faulty.happened:
            break
        assert not path.exists() or path.read_bytes() == NEW
        if isinstance(error, HostError):
            assert path.exists() == (error.outcome is Outcome.FAILED)
        if error is None:  # only the removal of the temporary name failed
            assert path.read_bytes() == NEW
    with pytest.raises(HostError) as caught:
        LOCAL.create(path, (OLD,))
    assert (caught.value.code, path.read_bytes()) == ("already_there", NEW)
    assert hidden_leftovers(path.parent) == []


def test_write_once_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    assert LOCAL.write_once(path, NEW) is True
    before = path.stat().st_ino
    assert LOCAL.write_once(path, NEW) is False
    assert path.stat().st_ino == before


def test_write_once_mends_a_copy_that_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.write_bytes(NEW[:4])
    assert LOCAL.write_once(path, NEW) is True
    assert path.read_bytes() == NEW


def test_a_second_name_takes_no_space_and_is_a_copy_where_there_can_be_none(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(NEW)
    assert LOCAL.share(source, tmp_path / "deep" / "same") is True
    assert (tmp_path / "deep" / "same").samefile(source)
    (tmp_path / "other").mkdir()
    elsewhere = FaultyFiles(
        at=1, fault=Fault.FAIL, number=errno.EXDEV
    )  # the name itself; its copy has another device's
    copied = elsewhere.share(source, tmp_path / "other" / "copy")
    assert elsewhere.faulty.log[0] == "link"
    assert copied is False
    assert (tmp_path / "other" / "copy").read_bytes() == NEW
    assert not (tmp_path / "other" / "copy").samefile(source)
    with pytest.raises(HostError) as taken:
        LOCAL.share(source, tmp_path / "deep" / "same")
    assert taken.value.code == "already_there"
