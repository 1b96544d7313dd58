"""Whether a directory may become a run directory, by its names alone: a look that costs no start."""

from pathlib import Path

from paritrace.errors import EvidenceError
from paritrace.files import LOCAL, Files

_ENVELOPE_NAME = "run.json"  # as `runs.envelope` has it, whose records take time to load


def holds_a_run(root: Path, *, files: Files = LOCAL) -> bool:
    """Say whether a directory is a run already; False where it is new or empty.

    Raises:
        EvidenceError: Refused, code `foreign_folder`: it holds something else.
    """
    if not files.exists(root):
        return False
    if files.exists(root / _ENVELOPE_NAME):
        return True
    strange = [path.name for path in files.list(root)]
    if strange:
        raise EvidenceError(
            f"{root} is not a run directory and not empty (it holds {strange[0]})",
            code="foreign_folder",
            fix="choose a directory that does not exist yet",
        )
    return False
