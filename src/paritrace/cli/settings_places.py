"""Where settings may stand, by names and a look at the bytes: a look that costs no start."""

from collections.abc import Iterator
from pathlib import Path

OWN_FILE = "paritrace.toml"
SHARED_FILE = "pyproject.toml"
NO_SETTINGS_FILE = "PARITRACE_NO_SETTINGS_FILE"  # set for runs that paritrace itself starts
_SIGNS = (b"paritrace", b"\\u", b"\\U")  # the name, also where TOML spells letters of it as escapes


def here() -> Path | None:
    """Return the current directory, None where it was removed: there are no settings then."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def settings_files(start: Path) -> Iterator[Path]:
    """Yield files that may hold settings of ours, nearest first; a `pyproject.toml` that nowhere names us does not.

    Raises:
        OSError: such a file cannot be read.
    """
    for folder in (start, *start.parents):
        if (folder / OWN_FILE).is_file():
            yield folder / OWN_FILE
        if (folder / SHARED_FILE).is_file() and _may_name_us((folder / SHARED_FILE).read_bytes()):
            yield folder / SHARED_FILE


def _may_name_us(data: bytes) -> bool:
    return any(sign in data for sign in _SIGNS)
