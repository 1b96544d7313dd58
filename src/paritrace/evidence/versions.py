"""Which versions of a format this build reads: its own major version, higher minors with what it knows (EV-1)."""

import re
from enum import StrEnum

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\Z")


class Reading(StrEnum):
    SAME = "same"  # this minor version or a lower one
    NEWER_MINOR = "newer_minor"  # read on, unknown fields counted
    OTHER_MAJOR = "other_major"  # refused
    FOREIGN = "foreign"  # not a version at all, or not our format


def reading_of(version: str, *, ours: str) -> Reading:
    """Return how a document of `version` is to be read by a build that writes `ours`."""
    theirs, mine = _VERSION.match(version), _VERSION.match(ours)
    if mine is None:
        raise ValueError(f"{ours!r} is not MAJOR.MINOR")
    if theirs is None:
        return Reading.FOREIGN
    if theirs.group(1) != mine.group(1):
        return Reading.OTHER_MAJOR
    return Reading.NEWER_MINOR if int(theirs.group(2)) > int(mine.group(2)) else Reading.SAME
