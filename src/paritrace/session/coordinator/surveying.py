"""Looks whether a checkpoint can be loaded at all, on a thread of its own, before ranks are started for it (SE-7)."""

import threading
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from paritrace.errors import ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoint_choice import Wanted, choice
from paritrace.session.checkpoint_records import Manifest
from paritrace.session.checkpoint_survey import LATEST, candidates
from paritrace.session.checkpoints import damages, path_of, read_checkpoint
from paritrace.session.commands import Reason
from paritrace.session.coordinator_events import Survey, Surveyed
from paritrace.session.coordinator_record import COORDINATOR
from paritrace.session.workload import Accepts


class Surveying:
    """The shell of `Survey`. `tell` is called from the thread, once.

    What the workload's own class decides (whether it takes another's checkpoint, whether the content fits) is left to
    the ranks.
    """

    def __init__(
        self, directory: Path, wanted: Wanted, *, tell: Callable[[Surveyed], None], files: Files = LOCAL
    ) -> None:
        self._directory = directory
        self._wanted = wanted
        self._tell = tell
        self._files = files

    def __call__(self, action: Survey) -> None:
        threading.Thread(target=self._look, args=(action,), name="paritrace-survey", daemon=True).start()

    def _look(self, action: Survey) -> None:
        self._tell(Surveyed(action.command_id, self.reasons_against(action.checkpoint)))

    def reasons_against(self, name: str, /) -> tuple[Reason, ...]:
        """Return what on disk speaks against a checkpoint; of `latest`, against the one that would be chosen."""
        try:
            return self._against_latest() if name == LATEST else self._against(name)
        except ParitraceError as error:
            return (Reason(COORDINATOR, error.code, error.message),)

    def _against(self, name: str) -> tuple[Reason, ...]:
        found = read_checkpoint(path_of(self._directory, name), files=self._files)
        lines = damages(found, rank=0, world_size=1, files=self._files)
        return tuple(Reason(COORDINATOR, "damaged_file", line) for line in lines)

    def _against_latest(self) -> tuple[Reason, ...]:
        """One of this class is read through; where there are others' alone, its own `accepts` decides, on the ranks."""
        there = candidates(self._directory, files=self._files)
        own = choice(there, self._wanted)
        if own.chosen is not None:
            return self._against(own.chosen)
        named = tuple(one.manifest.origin.workload for one in there if isinstance(one.manifest, Manifest))
        anyones = choice(there, replace(self._wanted, accepts=Accepts(named, world_sizes=True)))
        if anyones.chosen is not None:
            return ()
        lines = (f"{one.name}: {'; '.join(one.reasons)}" for one in own.rejected)
        none = Reason(COORDINATOR, "no_checkpoint", "there is no checkpoint that could be taken")
        return (none, *(Reason(COORDINATOR, "rejected", line) for line in lines))
