"""A rank without a session: what a workload is told, for tests of a workload by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paritrace.session.configuration import Given, Resolved, resolved
from paritrace.session.workload import CanDeclareFields


class Inline:
    """The context of the only rank there is."""

    rank, world_size, local_rank, generation, config_revision = 0, 1, 0, 1, 0
    group_timeout_seconds = 60.0

    def __init__(self, workload: CanDeclareFields, scratch: Path, **requested: Any) -> None:
        found = resolved(workload.config_fields(), Given(requested), asked_world_size=1, joined_world_size=1)
        assert isinstance(found, Resolved), found
        self.config: Mapping[str, Any] = found.values
        self.scratch = scratch
        self.store = f"file://{scratch / 'store'}"

    def progress(self, stage: str, done: int, total: int | None = None, unit: str = "") -> None: ...
    def deadline(self, seconds: float) -> None: ...
    def warn(self, words: str) -> None: ...
