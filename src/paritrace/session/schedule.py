"""The schedule of one run: values over its steps, checked whole before the first and gone after the last (SE-24).

A schedule is a JSON object: a field's name, and points `[offset, value]` in ascending order; `offset` counts from the
run's first step. A value holds from its point to the next one, or moves evenly between them where it stands as
`{"points": …, "between": "linear"}`. Before its first point a field has the configuration's value.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, cast

from msgspec import Struct, ValidationError, convert
from msgspec import json as msgspec_json

from paritrace.evidence.digests import sha256_hex
from paritrace.session.commands import Reason
from paritrace.session.configuration import problem_of
from paritrace.session.workload import RUN_BOUNDARY, ConfigField

HOLD, LINEAR = "hold", "linear"
_ENCODER = msgspec_json.Encoder(order="sorted")


class Course(Struct, frozen=True, forbid_unknown_fields=True):
    """What one field does over the steps of a run."""

    points: tuple[tuple[int, Any], ...]
    between: str = HOLD

    def at(self, offset: int, /) -> Any:
        """Return the value at the run's step `offset`. Raises KeyError before the first point."""
        after = bisect_right(self.points, offset, key=lambda point: point[0])
        if after == 0:
            raise KeyError(offset)
        start, value = self.points[after - 1]
        if self.between == HOLD or after == len(self.points):
            return value
        end, then = self.points[after]
        return value + (then - value) * ((offset - start) / (end - start))


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """A checked schedule. `digest` is part of the segment that a run makes; the configuration keeps no trace."""

    courses: dict[str, Course]

    @property
    def digest(self) -> str:
        """SHA-256 of what it does: the short and the long spelling of one course have the same."""
        return sha256_hex(_ENCODER.encode(self.courses))


NOTHING = Schedule({})


def schedule_of(
    given: Mapping[str, Any], /, *, steps: int, fields: Iterable[ConfigField] | None
) -> Schedule | tuple[Reason, ...]:
    """Return the schedule of a run of `steps` steps, or every reason why it cannot be installed (SE-24).

    `fields`: what the workload declares; None where it declares none, so that names and values go unchecked.
    """
    declared = None if fields is None else {one.name: one for one in fields}
    courses: dict[str, Course] = {}
    words: list[str] = []
    for name, course in given.items():
        found = _course(course)
        if isinstance(found, str):
            words.append(f"{name}: {found}")
            continue
        words += [f"{name}: {one}" for one in _course_problems(found, steps=steps)]
        words += [] if declared is None else _value_problems(name, found, declared)
        courses[name] = found
    return tuple(Reason(-1, "bad_schedule", one) for one in words) if words else Schedule(courses)


def values_at(schedule: Schedule, offset: int, /) -> dict[str, Any]:
    """Return the values that the schedule has for the run's step `offset`; a field is absent before its first point."""
    return {name: course.at(offset) for name, course in schedule.courses.items() if course.points[0][0] <= offset}


def _course(given: object) -> Course | str:
    long = cast("Any", given) if isinstance(given, dict) else {"points": given}
    try:
        return convert(long, Course)
    except ValidationError as error:
        return f"a list of [offset, value], or an object with such `points` and `between` ({error})"


def _course_problems(course: Course, *, steps: int) -> Iterable[str]:
    offsets = [offset for offset, _ in course.points]
    if not offsets:
        yield "no point"
    if course.between not in (HOLD, LINEAR):
        yield f"between: {course.between!r} is neither {HOLD} nor {LINEAR}"
    if any(later <= earlier for earlier, later in pairwise(offsets)):
        yield "offsets do not ascend"
    if outside := [offset for offset in offsets if not 0 <= offset < steps]:
        yield f"offset {outside[0]} is outside of the run's {steps} steps"
    if course.between == LINEAR and not all(_is_number(value) for _, value in course.points):
        yield f"{LINEAR} between values that are no numbers"


def _value_problems(name: str, course: Course, declared: Mapping[str, ConfigField]) -> list[str]:
    """Points are checked, and what lies between two of them is within the same limits."""
    one = declared.get(name)
    if one is None:
        return [f"{name}: no field of this workload"]
    if one.share_of is not None or one.impact != RUN_BOUNDARY:
        return [f"{name}: cannot change between two steps"]
    if course.between == LINEAR and (one.choices or not isinstance(one.default, float)):
        return [f"{name}: has no values between two points"]
    found = (problem_of(one, value=value) for _, value in course.points)
    return [words for words in found if words is not None]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
