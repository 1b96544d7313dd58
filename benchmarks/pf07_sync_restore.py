"""PF-7: an uncapped sync and restores, against bare loops with one digest and against loops that do all that is due."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Cost, Row, in_turn, print_table
from benchmarks.stores import SMALL_BYTES, published, staged
from paritrace.store.layout import StagedRank
from paritrace.store.restoring import restore
from paritrace.store.targets import Target
from paritrace.store.throttle import MIB

LARGE_BYTES = 128 * MIB
PIECE_BYTES = MIB // 4  # of the bare loops, as ours: larger ones leave a core's cache between two digests
NUM_SMALL = 2560
UPLOADER = """
import sys
from paritrace.cli.entry import main
try:
    main(sys.argv[1:])
finally:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def copied(source: Path, to: Path, *, keep: bool = False) -> None:
    """Read, hash, write and force to disk."""
    digest = hashlib.sha256()
    with source.open("rb", buffering=0) as file, to.open("wb", buffering=0) as out:
        while chunk := file.read(PIECE_BYTES):
            digest.update(chunk)
            out.write(chunk)
        os.fsync(out.fileno())
    if not keep:
        to.unlink()


def bundled(source: Path, to: Path) -> None:
    """All that a sync is asked to do, bare (ST-6, ST-8): the segment's digest, for the manifest; the bundle that begins
    with the manifest, with its own digest, forced to disk; a copy of it, forced to disk."""
    pending = to.with_suffix(".pending")
    with source.open("rb", buffering=0) as file:
        hashlib.file_digest(file, "sha256")
    copied(source, pending, keep=True)
    with pending.open("rb", buffering=0) as file, to.open("wb", buffering=0) as out:
        while chunk := file.read(PIECE_BYTES):
            out.write(chunk)
        os.fsync(out.fileno())
    pending.unlink()
    to.unlink()


def unbundled(bundle: Path, to: Path) -> None:
    """All that a restore is asked to do, bare: both digests of every byte, written and forced to disk (ST-11)."""
    whole, segment = hashlib.sha256(), hashlib.sha256()
    with bundle.open("rb", buffering=0) as file, to.open("wb", buffering=0) as out:
        while chunk := file.read(PIECE_BYTES):
            whole.update(chunk)
            segment.update(chunk)
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


def _rows(what: str, loop: Cost, ours: Cost, against: str, goal: float | None = None) -> tuple[Row, Row]:
    """The goal is held against CPU time: on a shared machine that of the wall is its load's."""
    bound = None if goal is None else (">=", goal)
    return Row(f"{what}, CPU", loop.cpu / ours.cpu, against, bound), Row(
        f"{what}, wall", loop.wall / ours.wall, against
    )


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
                "bundle": lambda: bundled(source, folder / "copy"),
                "sync": lambda: published(large, folder / "big-again"),
                "unbundle": lambda: unbundled(bundles[0], folder / "copy"),
                "extract": lambda: extracted(bundles[0], folder / "plain-big"),
                "restore": lambda: restored(big, folder / "restored-big"),
                "create": lambda: created(small.originals, folder / "plain-many"),
                "restore many": lambda: restored(many, folder / "restored-many"),
            },
            runs=5,
            clock=time.process_time,
        )
    rows = [
        *_rows("sync of a large file", cost["copy"], cost["sync"], "read, SHA-256, write, fsync", 0.85),
        *_rows("the protocol of a sync, bare", cost["copy"], cost["bundle"], "the same"),
        *_rows("sync of a large file", cost["bundle"], cost["sync"], "the protocol, bare (ADR 0059)", 0.85),
        *_rows("restore of a large file", cost["extract"], cost["restore"], "SHA-256 and bare tar", 0.80),
        *_rows("all that a restore is asked to do, bare", cost["extract"], cost["unbundle"], "the same"),
        *_rows("restore of a large file", cost["unbundle"], cost["restore"], "all that it is asked to do, bare", 0.80),
        *_rows("restore of 2,560 files", cost["create"], cost["restore many"], "creation loop", 0.80),
        Row("memory of the uploading process at its peak", memory / 64, "64 MiB", ("<=", 1.0)),
    ]
    notes = (
        f"{LARGE_BYTES // MIB} MiB in one file; {NUM_SMALL:,} files of {SMALL_BYTES // 1024} KiB.",
        "The protocol (ST-6, ST-8): two digests of every byte, and two writes that are forced to disk (ADR 0059).",
    )
    print_table("PF-7", rows, notes)


if __name__ == "__main__":
    main()
