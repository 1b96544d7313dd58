"""PF-8: verifying a store in place against `hashlib.file_digest` of the same files."""

import hashlib
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Row, in_turn, print_table
from benchmarks.stores import published, staged
from paritrace.store.throttle import MIB
from paritrace.store.verifying import verify_store

NUM_FILES = 8
NUM_BYTES = 16 * MIB
NUM_DIGESTS = 2  # of every byte: that of its bundle and that of its file, each in a thread of its own


def digests(paths: list[Path]) -> None:
    """The bare digest of each file."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            hashlib.file_digest(file, "sha256")


def main() -> None:
    """Print the table of PF-8."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target = published(staged(folder, files=NUM_FILES, num_bytes=NUM_BYTES), folder / "store")
        bundles = sorted((folder / "store").rglob("0000*"))
        cost = in_turn(
            {"digest": lambda: digests(bundles), "verify": lambda: verify_store(target)}, clock=time.process_time
        )
        size = sum(path.stat().st_size for path in bundles)
    rows = [
        Row(
            "bytes that a thread hashes per second of CPU",
            NUM_DIGESTS * cost["digest"].cpu / cost["verify"].cpu,
            "hashlib.file_digest",
            (">=", 0.92),
        ),
        Row("bytes of the store per second, wall", cost["digest"].wall / cost["verify"].wall, "the same"),
    ]
    print_table(
        "PF-8",
        rows,
        (f"{len(bundles)} bundles, {size // MIB} MiB; each byte is hashed for its bundle and for its file.",),
    )


if __name__ == "__main__":
    main()
