"""What is promised before several files change together, and how far an artifact is committed (EV-9, EV-11, EV-19)."""

from enum import StrEnum

from msgspec import Struct

INTENT_FORMAT = "paritrace-intent"
INDEX_FORMAT = "paritrace-index"
VERSION = "1.0"


class Replacing(Struct, frozen=True, tag_field="type", tag="replacing", forbid_unknown_fields=True):
    """A file that gets other bytes. `old_sha256` None: there is no file of that name. `staged`: the new bytes' file."""

    name: str
    old_sha256: str | None
    new_sha256: str
    staged: str


class Extending(Struct, frozen=True, tag_field="type", tag="extending", forbid_unknown_fields=True):
    """A file that is `old_length` bytes long gets the staged bytes at its end."""

    name: str
    old_length: int
    num_bytes: int
    sha256: str
    staged: str


class Intent(Struct, frozen=True, tag_field="type", tag="intent", forbid_unknown_fields=True):
    """The promise: it stands from the moment its file is there until every change is made."""

    format: str
    version: str
    changes: tuple[Replacing | Extending, ...]


class Lost(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """Bytes of an artifact that no append committed: they stay where they are and readers pass over them."""

    offset: int
    length: int


class Index(Struct, frozen=True, tag_field="type", tag="index", forbid_unknown_fields=True):
    """How far an artifact is committed: readers use its first `num_bytes` bytes, without `losses`.

    `cuts`: ends of the appends; `folded_sha256`: fold of their digests, so that an append costs what it adds and
    all of it can be checked.
    """

    format: str
    version: str
    name: str
    num_bytes: int
    cuts: tuple[int, ...]
    folded_sha256: str
    losses: tuple[Lost, ...] = ()


class Recovery(StrEnum):
    """What the opener of a folder found, and did."""

    NOTHING = "nothing"
    ROLLED_FORWARD = "rolled_forward"  # the promise was whole: its changes are made
    ROLLED_BACK = "rolled_back"  # nothing was promised, or nothing of it had begun and its bytes were not whole
