"""The directory of one operation: fresh, marked with its owner, ended by its result or its error (AU-4, AU-6)."""

from pathlib import Path

import msgspec
from msgspec import Struct

from paritrace.automation.protocol.records import PROTOCOL_VERSION, Operation
from paritrace.clock import Clock
from paritrace.errors import RequestError
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import Files
from paritrace.process.identity import liveness, own_identity

MARK = "operation.json"  # written first
RESULT = "result.json"  # written last, the document that went to stdout
ERROR = "error.json"  # instead of it
WORKLOAD_LOG = "workload.log"  # what workload code printed


class Mark(Struct, frozen=True):
    """Whose directory this is. With neither result nor error beside it, its owner runs still or was killed."""

    protocol_version: int
    action: str
    request_sha256: str
    owner: ProcessIdentity
    started_unix_ns: int


class Outputs:
    """Makes the directories of operations and closes them."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self._files = files
        self._clock = clock

    def claim(self, operation: Operation, path: Path) -> None:
        """Make the directory `path` and mark it.

        Raises:
            RequestError: Refused, `output_not_fresh`.
            HostError: Refused: it cannot be made.
        """
        self._files.mkdir(path.parent)
        if not self._files.claim(path):
            raise self._not_fresh(path)
        mark = Mark(
            protocol_version=PROTOCOL_VERSION,
            action=operation.action,
            request_sha256=operation.request_sha256,
            owner=own_identity(),
            started_unix_ns=self._clock.wall_ns(),
        )
        self._files.replace(path / MARK, _encoded(mark))

    def require_fresh(self, path: Path) -> None:
        """Refuse what `claim` would refuse, and make nothing.

        Raises:
            RequestError: Refused, `output_not_fresh`.
        """
        if self._files.exists(path) or path.is_symlink():
            raise self._not_fresh(path)

    def close(self, path: Path, name: str, document: dict[str, object]) -> None:
        """Write the document that an operation ended with."""
        self._files.replace(path / name, _encoded(document))

    def _not_fresh(self, path: Path) -> RequestError:
        return RequestError(
            f"the output {path} exists already{self._owner_of(path)}",
            code="output_not_fresh",
            fix="name an output that does not exist; what is there is never continued or removed",
        )

    def _owner_of(self, path: Path) -> str:
        found = self._files.read_if_present(path / MARK) if self._files.is_folder(path) else None
        if found is None:
            return ""
        try:
            mark = msgspec.json.decode(found, type=Mark)
        except msgspec.DecodeError:
            return ""
        ended = [name for name in (RESULT, ERROR) if self._files.exists(path / name)]
        state = f"ended, see {ended[0]}" if ended else f"unfinished: {liveness(mark.owner).why}"
        return f" ({mark.action} of request {mark.request_sha256[:12]}, {state})"


def _encoded(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
