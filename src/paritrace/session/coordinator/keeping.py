"""Publishes what all ranks have saved: the manifest last, and nothing where a part of it is missing (SE-8)."""

from pathlib import Path

from paritrace.errors import ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoints import keep
from paritrace.session.coordinator_events import Keep, Written


class Keeping:
    """The shell of `Keep`. A disk that refuses makes it a refusal: no checkpoint has the name."""

    def __init__(self, directory: Path, *, files: Files = LOCAL) -> None:
        self._directory = directory
        self._files = files

    def __call__(self, action: Keep) -> Written:
        try:
            return Written(action.command_id, ok=True, facts=keep(self._directory, action.facts, files=self._files))
        except ParitraceError as error:
            return Written(action.command_id, ok=False, words=error.message)
