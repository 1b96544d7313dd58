"""What a staging directory and a target can do, before a run relies on them (ST-14, ST-18)."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paritrace.automation.probes.directory import (
    GIB,
    SCRATCH_PREFIX,
    BrokenPromiseError,
    probe_file_system,
    probe_space,
    try_lock,
    try_sync,
)
from paritrace.automation.probes.probe import Probe, available, unavailable
from paritrace.errors import ParitraceError, RequestError

BUNDLE_BYTES = 256 << 20  # the default of --sync-batch-mib


def probe_staging(staging: Path) -> Iterator[Probe]:
    """Every probe of a staging directory; it is not made, and nothing stays behind.

    Raises RequestError (Refused) when it is not a directory.
    """
    if not staging.is_dir():
        raise RequestError(f"{staging} is not a directory", code="no_directory", fix="make it, or name another")
    yield available("staging", str(staging.resolve()))
    space = probe_space(staging)
    need = f"needs all traces and {BUNDLE_BYTES / GIB:.2f} GiB for a bundle"
    yield available("staging space", f"{space.value}; {need}")
    yield _local(staging)
    for name, trial in (("staging fsync", try_sync), ("staging flock", try_lock)):
        yield _tried(name, staging, trial)


def probe_target(target: str) -> Iterator[Probe]:
    """Whether a target can be opened, lists, and refuses a second put; the trial's object is removed again."""
    from paritrace.store.targets import open_target

    try:
        opened = open_target(target)
        num_objects = sum(1 for _ in opened.list(".paritrace-bundles/run.json"))
        yield available("target", f"{opened.label}{', holds a run already' if num_objects else ''}")
        opened.probe()
        yield available("put if absent", "the second put of one name is refused")
    except ParitraceError as error:
        yield unavailable("target", f"{error.message} [{error.code}]", fix=error.fix)


def _local(staging: Path) -> Probe:
    from paritrace.capture.publishing import SHARED

    kind = probe_file_system(staging).value
    if kind in SHARED:
        return unavailable("staging disk", f"{kind} is shared storage", fix="name a directory on a disk of this node")
    return available("staging disk", kind)


def _tried(name: str, staging: Path, trial: Callable[[Path], str]) -> Probe:
    try:
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=staging) as scratch:
            return available(name, trial(Path(scratch)))
    except (OSError, BrokenPromiseError) as error:
        return unavailable(name, str(error), fix="name a directory on a disk of this node")
