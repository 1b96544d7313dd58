"""Whether a value can be written as JSON without becoming another one: pure (RR-6, P1)."""

from math import isfinite
from typing import cast

NOT_FINITE = "NaN or infinity, which would arrive as null"


def is_finite(value: object) -> bool:
    """Say whether no float of plain containers is NaN or infinite: JSON has neither."""
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(is_finite, cast("dict[object, object]", value).values()))
        case list() | tuple():
            return all(map(is_finite, cast("list[object]", value)))
        case _:
            return True
