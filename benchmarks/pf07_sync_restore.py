"""PF-7: an uncapped sync and restores against a bare copy with digest and against bare tar and file creation loops."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Row, in_turn, print_table
from benchmarks.stores import SMALL_BYTES, published, staged
from paritrace.store.layout import StagedRank
from paritrace.store.restoring import restore
from paritrace.store.targets import Target
from paritrace.store.throttle import MIB

LARGE_BYTES = 128 * MIB
NUM_SMALL = 2560
UPLOADER = """
import sys
from paritrace.cli.entry import main
try:
    main(sys.argv[1:])
finally:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def copied(source: Path, to: Path) -> None:
    """Read, hash, write and force to disk: what every sync has to do at least."""
    digest = hashlib.sha256()
    with source.open("rb", buffering=0) as file, to.open("wb", buffering=0) as out:
        while chunk := file.read(MIB):
            digest.update(chunk)
            out.write(chunk)
        os.fsync(out.fileno())
    to.unlink()


def extracted(bundle: Path, to: Path) -> None:
    """Hash the archive and unpack it."""
    with bundle.open("rb") as file:
        hashlib.file_digest(file, "sha256")
    with tarfile.open(bundle) as archive:
        archive.extractall(to, filter="data")
    shutil.rmtree(to)


def created(folder: Path, to: Path) -> None:
    """Write every file of a folder, bytes in memory, in a plain loop; each is hashed."""
    to.mkdir()
    for path in folder.iterdir():
        data = path.read_bytes()
        hashlib.sha256(data)
        (to / path.name).write_bytes(data)
    shutil.rmtree(to)


def restored(target: Target, to: Path) -> None:
    restore(target, to)
    shutil.rmtree(to)


def plain(store: Path, to: Path) -> Path:
    """The store's bundle as an uncompressed tar, for the bare loop."""
    import zstandard

    (bundle,) = store.rglob("00000001-*")
    if bundle.name.endswith(".zst"):
        with bundle.open("rb") as source, to.open("wb") as out:
            zstandard.ZstdDecompressor().copy_stream(source, out)
        return to
    return bundle


def uploader_mib(place: StagedRank, store: Path) -> float:
    """The most memory that `paritrace store sync` holds, the interpreter included, in MiB."""
    words = ("store", "sync", f"--staging={place.staging}", f"--store={store}", "--run-id=run", "--rank=0", "--final")
    given = (*words, "--node-id=node", "--sync-mib-per-second=100000")
    done = subprocess.run([sys.executable, "-c", UPLOADER, *given], capture_output=True, text=True, check=True)
    shutil.rmtree(store)
    shutil.rmtree(place.node_state)
    return int(done.stdout.split()[-2]) / 1024


def main() -> None:
    """Print the table of PF-7."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = staged(folder / "large", files=1, num_bytes=LARGE_BYTES)
        small = staged(folder / "small", files=NUM_SMALL, num_bytes=SMALL_BYTES)
        memory = max(uploader_mib(place, folder / "child") for place in (large, small))
        big, many = published(large, folder / "big"), published(small, folder / "many")
        bundles = [plain(folder / one, folder / f"{one}.tar") for one in ("big", "many")]
        source = next(large.originals.iterdir())
        cost = in_turn(
            {
                "copy": lambda: copied(source, folder / "copy"),
                "sync": lambda: published(large, folder / "big-again"),
                "extract": lambda: extracted(bundles[0], folder / "plain-big"),
                "restore": lambda: restored(big, folder / "restored-big"),
                "create": lambda: created(small.originals, folder / "plain-many"),
                "restore many": lambda: restored(many, folder / "restored-many"),
            },
            runs=5,
            clock=time.process_time,
        )
    rows = [
        Row(
            "sync of a large file, CPU",
            cost["copy"].cpu / cost["sync"].cpu,
            "read, SHA-256, write, fsync",
            (">=", 0.85),
        ),
        Row("sync of a large file, wall", cost["copy"].wall / cost["sync"].wall, "the same"),
        Row(
            "restore of a large file, CPU",
            cost["extract"].cpu / cost["restore"].cpu,
            "SHA-256 and bare tar",
            (">=", 0.80),
        ),
        Row("restore of a large file, wall", cost["extract"].wall / cost["restore"].wall, "the same"),
        Row(
            "restore of 2,560 files, CPU", cost["create"].cpu / cost["restore many"].cpu, "creation loop", (">=", 0.80)
        ),
        Row("restore of 2,560 files, wall", cost["create"].wall / cost["restore many"].wall, "the same"),
        Row("memory of the uploading process at its peak", memory / 64, "64 MiB", ("<=", 1.0)),
    ]
    notes = (
        f"{LARGE_BYTES // MIB} MiB in one file; {NUM_SMALL:,} files of {SMALL_BYTES // 1024} KiB.",
        "Two digests of every byte (segment, bundle) and, in a sync, two writes (staging, target); loops do one each.",
    )
    print_table("PF-7", rows, notes)


if __name__ == "__main__":
    main()
