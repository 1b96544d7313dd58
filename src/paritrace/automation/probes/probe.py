"""The record of one thing that `paritrace doctor` looked at."""

from enum import StrEnum

from msgspec import Struct


class Availability(StrEnum):
    """Whether something can be had here (P1: a reason comes with every other word than `available`)."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    NOT_COLLECTED = "not_collected"


class Probe(Struct, frozen=True, omit_defaults=True):
    """`value` is what was found, `reason` why something is not available, `fix` how to change that."""

    id: str
    status: Availability
    value: str = ""
    reason: str = ""
    fix: str = ""


def available(id: str, value: str) -> Probe:  # noqa: A002  the word of the document
    return Probe(id, Availability.AVAILABLE, value=value)


def unavailable(id: str, reason: str, *, fix: str = "") -> Probe:  # noqa: A002  the word of the document
    return Probe(id, Availability.UNAVAILABLE, reason=reason, fix=fix)
