"""What this mount namespace says of its mounts: mountinfo, parsed, and whether a /proc hides processes (RS-4)."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_HIDDEN = ("invisible", "ptraceable", "2", "4")
"""Values of `hidepid` under which numbers are missing; under `noaccess` they are listed and cannot be read."""


MOUNTS = Path("/proc/self/mountinfo")


class Mount(Struct, frozen=True):
    """One line of mountinfo. `root`: which part of the file system lies at `point`."""

    root: str
    point: str
    kind: str
    options: tuple[str, ...]


def parse_mounts(text: str) -> Iterator[Mount]:
    """The mounts of a mountinfo, in the order in which they were made; a later one covers an earlier one.

    Raises:
        ValueError: a line is not one of mountinfo.
    """
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if not separator or len(fields) < 6 or len(rest) < 2:
            raise ValueError(f"not a line of mountinfo: {line!r}")
        yield Mount(
            root=_unescaped(fields[3]),
            point=_unescaped(fields[4]),
            kind=rest[0],
            options=tuple(fields[5].split(",") + rest[-1].split(",")),
        )


def kind_at(path: Path) -> str:
    """Return the type of the file system at a path, which need not be there, by the longest mount point above it.

    Empty where this machine does not say.
    """
    try:
        found = list(parse_mounts(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")))
    except (OSError, ValueError):
        return ""
    resolved = path.resolve()
    above = [mount for mount in found if resolved.is_relative_to(mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point)).kind if above else ""


def _unescaped(text: str) -> str:
    """Blanks and the like stand in mountinfo as a backslash and three octal digits."""
    if "\\" not in text:
        return text
    parts = text.split("\\")
    return parts[0] + "".join(chr(int(part[:3], 8)) + part[3:] for part in parts[1:])


def hidden_processes(proc: str) -> str:
    """Why the /proc at `proc` may hide processes; empty when it lists all. What cannot be found out may hide some."""
    try:
        mounts = list(parse_mounts(Path(proc, "self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")))
    except (OSError, ValueError) as error:
        return f"whether {proc} hides processes cannot be read: {error}"
    here = [mount for mount in mounts if mount.kind == "proc" and mount.point == os.path.realpath(proc)]
    if not here:
        return f"{proc} is no mount point of its own, so that what it hides is not known"
    hiding = [option for option in here[-1].options if option.startswith("hidepid=")]
    found = [option for option in hiding if option.removeprefix("hidepid=") in _HIDDEN]
    return f"{proc} is mounted with {found[-1]}" if found else ""
