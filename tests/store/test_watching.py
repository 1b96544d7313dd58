"""A target that answers nothing ends a sync with `sync_stuck`, and one that is slow does not (ST-16, P5)."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from paritrace.cli.store import sync
from paritrace.errors import HostError, Outcome
from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files, Primitives
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from paritrace.store.verifying import StoreVerdict, verify_store
from paritrace.store.watching import LOOK_SECONDS, STUCK_SECONDS, Step, Watch, WatchedTarget, watched
from tests.store.places import Place

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 120.0
QUICKLY = LOOK_SECONDS * 2


class Hanging(Primitives):
    """One kind of operation never returns: it reads from a pipe that nobody writes to, until the test lets it go."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._reader, self._writer = os.pipe()
        self.reached = threading.Event()

    def before(self, operation: str, path: str) -> None:
        if operation == self._operation:
            self.reached.set()
            os.read(self._reader, 1)

    def names(self, path: Path) -> list[str]:
        self.before("names", str(path))
        return super().names(path)

    def release(self) -> None:
        os.close(self._writer)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.append("a.jsonl", b"1\n")
    return place


@pytest.mark.parametrize(
    ("operation", "what"),
    [("names", "list "), ("write", "publish "), ("fsync", "publish "), ("rename", "publish "), ("open_read", "read ")],
)
def test_st16_an_operation_of_the_target_that_never_returns_is_given_up(
    place: Place, operation: str, what: str
) -> None:
    place.once()
    place.append("a.jsonl", b"2\n")
    primitives, watch = Hanging(operation), Watch()
    target = WatchedTarget(DirectoryTarget(place.store, files=Files(primitives), clock=place.clock), watch)
    syncer = place.syncer(target=target)
    try:
        with pytest.raises(HostError) as caught:
            watched(syncer.once, watch, seconds=QUICKLY)
        assert primitives.reached.is_set()
        assert (caught.value.code, caught.value.outcome) == ("sync_stuck", Outcome.FAILED)
        assert caught.value.message.startswith(what)
    finally:
        primitives.release()
        for thread in threading.enumerate():
            if thread.name == "paritrace-watched":
                thread.join(LIMIT_SECONDS)
    place.final()
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT


def test_st16_what_goes_on_is_not_given_up_however_long_it_takes() -> None:
    watch, seen, steps = Watch(), threading.Event(), 6

    def slow() -> str:
        for number in range(steps):  # each takes less than the deadline, all of them more
            with watch.waiting(f"step {number}"):
                seen.wait(LOOK_SECONDS)
        with watch.waiting("the rate"), watch.resting():
            seen.wait(LOOK_SECONDS * 4)
        seen.wait(LOOK_SECONDS * 4)  # nothing is asked of the target
        return "done"

    assert watched(slow, watch, seconds=LOOK_SECONDS * 3) == "done"


def test_st7_waiting_for_the_rate_is_not_waiting_for_the_target(place: Place) -> None:
    watch, during = Watch(), list[Step | None]()

    class Slow(Throttle):
        def take(self, num_bytes: int) -> None:
            during.append(watch.step)

    target = WatchedTarget(place.target(), watch)
    source = place.write("x", b"x")
    target.put_if_absent("a/x", source, sha256=sha256_hex(b"x"), throttle=Slow(None))
    assert during == [None]
    assert watch.step is None
    assert [entry.name for entry in target.list("a")] == ["a/x"]
    assert b"".join(target.read("a/x")) == b"x"


def test_what_it_raises_and_returns_passes_through() -> None:
    def fails() -> None:
        raise HostError("full", code="disk_full", fix="free space")

    with pytest.raises(HostError, match="full"):
        watched(fails, Watch())
    assert watched(lambda: 3, Watch()) == 3


@contextmanager
def hung(folder: Path) -> Generator[None, None, None]:
    """A file system whose server never answers: the kernel keeps whoever asks, as on a mount whose server is away."""
    mount = shutil.which("mount")
    if mount is None or not Path("/dev/fuse").exists() or os.geteuid() != 0:
        pytest.skip("a file system that hangs cannot be mounted here: that takes root and /dev/fuse")
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
    command = [mount, "-i", "-t", "fuse", "-o", options, "hung", str(folder)]
    done = subprocess.run(command, pass_fds=[fd], capture_output=True, check=False, timeout=LIMIT_SECONDS)
    if done.returncode:
        os.close(fd)
        pytest.skip(f"a file system that hangs cannot be mounted here: {done.stderr!r}")
    try:
        yield
    finally:
        os.close(fd)  # every waiting call ends in an error now
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False, timeout=LIMIT_SECONDS)


def command(place: Place, store: Path, *more: str) -> tuple[list[str], dict[str, str]]:
    where = ("--staging", str(place.staged.staging), "--store", str(store), "--run-id", "r", "--rank", "0")
    words = (*where, "--node-id", "n0", "--local-rank", "0", "--deadline", "1", *more)
    return [sys.executable, "-m", "paritrace", "store", "sync", *words], os.environ | {"PYTHONPATH": str(ROOT / "src")}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["--once", "--final", "--json-lines"])
def test_st16_store_sync_ends_although_the_kernel_keeps_its_thread(place: Place, tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "hung"
    folder.mkdir()
    words, environment = command(place, folder / "store", mode)
    with hung(folder):
        ran = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS, check=False)
    assert ran.returncode == 2
    assert "sync_stuck" in ran.stdout + ran.stderr
    assert f"open {folder / 'store'}: no answer for 1 s" in ran.stdout + ran.stderr
    assert (place.originals / "a.jsonl").read_bytes() == b"1\n"


@pytest.mark.slow
def test_st13_a_target_that_hangs_between_two_syncs_ends_them_and_status_shows_it(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.store.mkdir()
    words, environment = command(place, place.store, "--json-lines", "--sync-interval", "0.5")
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as syncing:
        try:
            assert syncing.stdout is not None
            assert b'"bundles": 1' in syncing.stdout.readline()
            with hung(place.store):
                assert syncing.wait(LIMIT_SECONDS) == 2
        finally:
            syncing.kill()
    assert status_of(["store", "status", "--staging", str(place.staged.staging)]) == 3
    assert "[sync_stuck]" in capsys.readouterr().out
    place.append("a.jsonl", b"2\n")
    words, environment = command(place, place.store, "--final")
    assert (
        subprocess.run(words, capture_output=True, env=environment, timeout=LIMIT_SECONDS, check=False).returncode == 0
    )
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT


def test_the_deadline_of_the_command_is_the_one_that_is_documented() -> None:
    (option,) = [parameter for parameter in sync.params if parameter.name == "deadline"]
    assert option.default == STUCK_SECONDS
