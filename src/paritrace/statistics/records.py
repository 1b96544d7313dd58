"""An interval estimate, as attempts and inference write it (AT-13, IN-17)."""

from msgspec import Struct


class Interval(Struct, frozen=True, tag_field="kind", tag="interval"):
    """An interval of a population, of tasks or of runs: what it is made by, and its level."""

    low: float
    high: float
    level: float
    method: str
