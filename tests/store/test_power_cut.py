"""Power cuts and failing system calls, where root allows: a copied image of a mounted disk, and strace (ST-15)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.files import LOCAL
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.verifying import StoreVerdict, verify_store
from tests.store.drilling import JOURNAL, check_visible, record
from tests.store.places import Place
from tests.store.reading import streams

ROOT = Path(__file__).parents[2]
IMAGE_BYTES = 24 << 20
SYNCING = """
import sys
from pathlib import Path
from paritrace.store.layout import StagedRank
from paritrace.store.syncing import Host, Syncer, SyncSettings
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from tests.store.places import process_of
place = StagedRank(Path(sys.argv[1]), "r", "n0", 0)
host, settings = Host(process=process_of()), SyncSettings(batch_bytes=600)
print("ready", flush=True)
Syncer(place, DirectoryTarget(Path(sys.argv[2])), host=host, throttle=Throttle(None), settings=settings).final()
"""


def called(*command: str) -> bool:
    """Whether a command of the system did its work."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 file system whose image lies beside it."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    if not called("mkfs.ext4", "-q", "-F", str(image)) or not called("mount", "-o", "loop", str(image), str(folder)):
        pytest.skip("a disk image cannot be mounted here: that takes root, loop devices and ext4")
    try:
        yield folder
    finally:
        called("umount", "-l", str(folder))


@pytest.mark.slow
def test_what_was_published_survives_a_power_cut(tmp_path: Path, disk: Path) -> None:
    """The image is copied while it is mounted: what the disk holds at that moment, as after a cut of the power."""
    place = Place(tmp_path, store=disk / "store")
    after = tmp_path / "after"
    after.mkdir()
    for number in range(4):
        place.append(JOURNAL, b"".join(map(record, range(10 * number, 10 * number + 10))))
        place.syncer(target=DirectoryTarget(place.store, files=LOCAL)).once()
        published = [str(name) for name in place.bundles()]
        shutil.copyfile(tmp_path / "image", tmp_path / "cut")
        assert called("mount", "-o", "loop", str(tmp_path / "cut"), str(after))
        try:
            survived = Place(tmp_path, store=after / "store")
            assert [str(name) for name in survived.bundles()] == published
            assert verify_store(survived.target()).verdict is not StoreVerdict.DAMAGED
        finally:
            assert called("umount", str(after))


def strace(place: Place, injection: str) -> int:
    """Run a final sync under an injected fault; return its status."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={injection}", sys.executable, "-S", "-c"]
    given = [SYNCING, str(place.staged.staging), str(place.store)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT), *sys.path))}
    return subprocess.run(
        [*command, *given], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=120
    ).returncode


def can_trace() -> bool:
    return called("strace", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=1", "true")


@pytest.mark.slow
@pytest.mark.parametrize(
    "injection",
    [
        *(f"rename:signal=SIGKILL:when={number}" for number in (2, 5, 8)),
        *(f"fsync:signal=SIGKILL:when={number}" for number in (3, 9)),
        "fsync:error=EIO:when=7",
        "rename:error=EIO:when=6",
        "unlink:signal=SIGKILL:when=2",
    ],
)
def test_system_calls_that_fail_or_kill(tmp_path: Path, injection: str) -> None:
    if not can_trace():
        pytest.skip("system calls cannot be traced here: strace is missing, or tracing is not allowed")
    place = Place(tmp_path)
    place.append(JOURNAL, b"".join(map(record, range(60))) + b'{"torn')
    strace(place, injection)
    check_visible(place)
    place.final(batch_bytes=600)
    assert streams(place)[JOURNAL, 1] == b"".join(map(record, range(60)))
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT
