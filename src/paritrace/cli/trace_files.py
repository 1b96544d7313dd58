"""Whether a path that a command was given is a profiler's trace, and not a run (IN-18, IN-26)."""

from pathlib import Path


def is_trace(path: Path, /) -> bool:
    """Say whether this is a file that the trace reader takes; a run's folder or archive is none."""
    if not path.is_file():
        return False
    from paritrace.inference.importers.kineto import recognises

    return recognises(path)


def is_export(path: Path, /) -> bool:
    """Say whether this is a file that the reader of Nsight Systems takes."""
    if not path.is_file():
        return False
    from paritrace.inference.importers.nsys import recognises

    return recognises(path)
