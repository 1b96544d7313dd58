"""What a place for published bundles can do: list, put where nothing is, read (ST-6, ST-14)."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from paritrace.errors import ParitraceError
from paritrace.store.throttle import Throttle

READ_CHUNK_BYTES = 1 << 18

# What a later try may find mended by itself; everything else (no space, no permission, read-only) is for a person.
_TRANSIENT = frozenset(
    {
        "busy",
        "io_error",
        "not_visible_here",
        "short_copy",
        "short_read",
        "stale_handle",
        "target_gone",
        "target_unreachable",
        "too_many_open_files",
    }
)


class Entry(Struct, frozen=True):
    """A published object; `name` is relative to the target, `/`-separated."""

    name: str
    num_bytes: int


class Put(StrEnum):
    """How a put ended; both leave exactly the source's bytes under the name."""

    PUBLISHED = "published"
    ALREADY_THERE = "already_there"  # the same digest: this put, or an earlier one whose reply was lost


class Target(Protocol):
    """A place that bundles are published to. Used by one thread at a time.

    `label` is the place as the user named it, without credentials. Errors are `HostError`; `is_transient` says which of
    them a later try may find mended.
    """

    @property
    def label(self) -> str: ...

    def list(self, prefix: str, /) -> Iterator[Entry]:
        """Yield what is published under names that begin with `prefix`, by name; hidden temporaries are left out."""
        ...

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        """Publish a file under a name that never existed; readers see nothing of it or all of it.

        Args:
            checksum: XXH3-128 of the bytes where it was recorded; they are then checked by it on their way.

        Raises:
            EvidenceError: Refused: `target_conflict`: other bytes have that name; `staged_bytes_changed`.
            HostError: Refused, nothing is visible; Failed, it is visible and may be lost by a power cut. The same put
                may be tried again.
        """
        ...

    def read(self, name: str, /) -> Iterator[bytes]:
        """Yield the bytes in order, at most 256 KiB at a time.

        Raises:
            HostError: Refused: `not_visible_here` when it cannot be found after some tries (EV-12), and others.
        """
        ...

    def drop_leftovers(self, folder: str, /) -> None:
        """Remove the hidden copies that a killed upload left in a folder of names, where the caller alone uploads.

        A target that leaves none has nothing to do: an unfinished upload to S3 is for the bucket's lifecycle rule.

        Raises:
            HostError: Refused; leftovers harm no reader.
        """
        ...

    def probe(self) -> None:
        """Try out that a second put of one name is refused.

        Raises:
            HostError: Refused, code `overwriting_target` when it is accepted, and what a put raises.
        """
        ...


def is_transient(error: ParitraceError) -> bool:
    """Say whether trying again later may succeed without anybody acting (ST-8a)."""
    return error.code in _TRANSIENT
