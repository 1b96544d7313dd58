"""Declared masks: `--mask` says which elements of which slots are padding (CP-11)."""

from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_of
from paritrace.files import LOCAL, Files
from paritrace.runs.tensors import WholeTensor, open_key


class Mask(Struct, frozen=True):
    """One `--mask MODULE[:SLOT]=FILE:KEY`: in slots of modules like these, elements where the tensor is 0 are padding.

    `slot` is a pattern of slot names, `*` for all. `sha256` is that of the file, so that a result names its sources.
    """

    module: str
    slot: str
    path: str
    key: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.module}:{self.slot}={self.path}:{self.key} ({self.sha256[:12]})"

    @property
    def name(self) -> str:
        """What figures call it."""
        return f"{self.path}:{self.key}"

    def covers(self, module: str, slot: str) -> bool:
        """Whether a slot of a call in this module is masked."""
        return fnmatchcase(module, self.module) and fnmatchcase(slot, self.slot)

    def tensor(self, *, files: Files = LOCAL) -> WholeTensor:
        """The mask itself, mapped from its file."""
        return open_key(Path(self.path), self.key, files=files)


def parse_mask(text: str, *, files: Files = LOCAL) -> Mask:
    """Read `MODULE[:SLOT]=FILE:KEY`; the file is opened and hashed.

    Raises:
        RequestError: Refused, `bad_mask`.
        EvidenceError, HostError: Refused, as `open_key` says.
    """
    place, equals, source = text.partition("=")
    path, colon, key = source.rpartition(":")
    module, _, slot = place.partition(":")
    if not (equals and colon and path and key and module):
        raise RequestError(
            f"--mask {text!r} is not MODULE[:SLOT]=FILE:KEY",
            code="bad_mask",
            fix="give for example --mask 'model.layers.*:out=mask.safetensors:attention_mask'",
        )
    found = Mask(module, slot or "*", path, key, sha256_of(files.iter_chunks(Path(path))).sha256)
    found.tensor(files=files)
    return found
