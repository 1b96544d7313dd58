"""Where a figure of an attempt was read: a source file by its digest, and the place inside it (P9)."""

from typing import Annotated

from msgspec import Meta, Struct

Id = Annotated[str, Meta(min_length=1, max_length=1024)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # sums of many are still numbers


class Source(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An evidence file that the manifest names (AT-1).

    `path` is relative to the manifest's directory, and lies inside it or inside one of the manifest's `roots`.
    `sha256` is None only where the file was expected and was not there when the manifest was written.
    """

    id: Id
    path: Id
    sha256: Sha256 | None
    num_bytes: Whole | None = None


class Origin(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The place inside a source where something was read.

    `line` counts from 1; None where the format has no lines of its own. `pointer` is a JSON Pointer (RFC 6901) into the
    document, or into that line. `member` is the name inside an archive (an Inspect `.eval`).
    """

    source: Id  # a `Source.id`
    line: Annotated[int, Meta(ge=1)] | None = None
    pointer: str = ""
    member: str = ""
