"""Single lines of an artifact, read again from where they lie: records need not be held until they are wanted."""

from collections.abc import Mapping

from paritrace.errors import EvidenceError
from paritrace.files.opened import OpenedFile
from paritrace.inference.artifact import Place
from paritrace.inference.context import Context
from paritrace.inference.lines import LineDecoder
from paritrace.inference.records import AnyEvent, Event


class Rereading:
    """Reads lines of a file that was read before; `contexts` are those that it defines."""

    def __init__(self, place: Place, opened: OpenedFile, contexts: Mapping[str, Context]) -> None:
        self._place = place
        self._opened = opened
        self._decoder = LineDecoder()
        self._decoder.contexts.update(contexts)

    def read(self, offset: int, size: int) -> AnyEvent:
        """Return the event of the line that begins at `offset`.

        Raises:
            EvidenceError: Refused, `invalid_line`: the file is no longer what it was; HostError of the disk.
        """
        try:
            event = self._decoder.decode(b"".join(self._opened.chunks(offset, size)))
        except ValueError as error:
            raise self.changed(offset) from error
        if not isinstance(event, Event):
            raise self.changed(offset)
        return event

    def changed(self, offset: int) -> EvidenceError:
        """Return the error of a file that was rewritten between two readings."""
        return EvidenceError(
            f"{self._place.path} was changed at byte {offset} while it was read",
            code="invalid_line",
            fix="give the command again once nothing rewrites the file",
        )
