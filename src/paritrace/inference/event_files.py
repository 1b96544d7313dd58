"""A file of events as a collector: lines as `inference.jsonl` has them, read strictly (IN-5)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from paritrace.files import LOCAL, Files
from paritrace.inference.collecting import Collected
from paritrace.inference.importing import attachment_id_of
from paritrace.inference.lines import LineDecoder, events, scan
from paritrace.inference.records import Observation
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind


class FileOfEvents:
    """Gives the events of a file. `traces`: raw traces that are registered with them, by the ids the events name."""

    def __init__(self, path: Path, *, traces: Sequence[Path] = (), files: Files = LOCAL) -> None:
        self._path = path
        self._traces = tuple(traces)
        self._files = files

    def collect(self, *, run_id: str, session_id: str) -> Collected:
        """Return the events as a stream; a line that cannot be read is an error of the append."""
        return Collected(
            events=self._events(),
            supported=("events",),
            enabled=("events",),
            collected=("events",),
            attachments=tuple(_reference(path) for path in self._traces),
        )

    def _events(self) -> Iterator[Observation]:
        lines = scan(self._files.iter_chunks(self._path), decoder=LineDecoder())
        return cast("Iterator[Observation]", events(lines, name=str(self._path)))  # the append refuses the others


def _reference(path: Path) -> Reference:
    return Reference(
        kind=AttachmentKind.PROFILER_TRACE,
        title=path.name,
        path=str(path.absolute()),
        attachment_id=attachment_id_of("trace", path),
    )
