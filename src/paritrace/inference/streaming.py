"""Writing events while they happen: one line a write, under a lease that keeps appends away (IN-5, EV-7)."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import Place, head_of, place_of, require_no_writer
from paritrace.inference.gathering import Gathering
from paritrace.inference.identities import event_bytes
from paritrace.inference.lines import NEWLINE, encode_definition
from paritrace.inference.records import Observation


class StreamingWriter:
    """Writes events of one session; made by `streaming`. What it wrote is committed by the next append."""

    def __init__(self, place: Place, *, run_id: str, session_id: str, files: Files) -> None:
        self._place = place
        self._run_id, self._session_id = run_id, session_id
        self._files = files
        self._defined: set[str] = set()
        self._before = b"" if _ends_a_line(place, files) else NEWLINE  # a torn tail stays what it is (EV-7)

    def write(self, event: Observation) -> None:
        """Write one event, its context before it where it is new here, in one write.

        Raises:
            EvidenceError: Refused, code `bad_event`.
            HostError: Failed where a part of the line may be there.
        """
        checked = Gathering(run_id=self._run_id, session_id=self._session_id)
        checked.take(event, of="a streaming writer")
        line = event_bytes(event) + NEWLINE
        if event.context.id not in self._defined:
            line = encode_definition(event.context) + line
        self._files.extend_scratch(self._place.path, (self._before + line,))
        self._before = b""
        self._defined.add(event.context.id)


@contextmanager
def streaming(
    path: Path, *, run_id: str, session_id: str, files: Files = LOCAL, clock: Clock = SYSTEM
) -> Generator[StreamingWriter, None, None]:
    """Hold an artifact's lease and yield its writer; appends are refused meanwhile.

    The kernel lets the lease go when this process ends in any way. An append that runs is not waited for.

    Raises:
        EvidenceError: Refused: `no_artifact`, `writer_lives`.
        HostError: what the disk says.
    """
    place = place_of(path)
    head_of(place, files=files)
    with ExitStack() as stack:
        try:
            stack.enter_context(files.locked(place.lease, clock=clock, wait_seconds=0.0))
        except HostError as error:
            raise require_no_writer(error, place) from error
        yield StreamingWriter(place, run_id=run_id, session_id=session_id, files=files)


def _ends_a_line(place: Place, files: Files) -> bool:
    with files.opened(place.path) as opened:
        size = opened.stat().st_size
        return b"".join(opened.chunks(size - 1, 1)) in (b"", NEWLINE)
