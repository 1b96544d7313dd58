"""Perturbed runs beside the run that they are draws of: `RUN/perturbed/01` and so on (CP-10a)."""

from pathlib import Path

from paritrace.files import LOCAL, Files
from paritrace.runs.envelope import ENVELOPE_NAME

FOLDER = "perturbed"
PERTURB_SEED = "perturb_seed"  # key of a session's metadata: this run is a draw, made with this seed


def draw_path(run_dir: Path, seed: int) -> Path:
    """Where the draw with this seed lies."""
    return run_dir / FOLDER / f"{seed:02}"


def draws_of(folder: Path, *, files: Files = LOCAL) -> tuple[Path, ...]:
    """The run directories of the draws of a run (its folder, unpacked), in order of their seeds; empty without any."""
    below = folder / FOLDER
    if not files.exists(below):
        return ()
    return tuple(path for path in sorted(files.list(below)) if files.exists(path / ENVELOPE_NAME))
