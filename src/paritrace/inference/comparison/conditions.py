"""Under what conditions a run was made, field by field with how it is known: `inference-conditions.json` (IN-17)."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from paritrace.inference.comparison.vocabulary import FieldClass, Stated

FORMAT = "paritrace-inference-conditions"
VERSION = "1.0"
FILE_NAME = "inference-conditions.json"
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Value = str | int | float | bool

BLOCK = "label.block"
LOOP = "load.loop"
SATURATED = "load.client_saturated"
INTERVAL = "load.interval_seconds"
WARM_UP = "load.warm_up_excluded"
ORDER = "load.order_of_arms"
SCHEDULED = "load.schedule_recorded"

CLASSES: Mapping[str, FieldClass] = {
    "model.weights_digest": FieldClass.IDENTITY,
    "model.name": FieldClass.IDENTITY,
    "engine.name": FieldClass.IDENTITY,
    "engine.version": FieldClass.IDENTITY,
    "gpu.name": FieldClass.IDENTITY,
    "gpu.count": FieldClass.IDENTITY,
    "gpu.driver_version": FieldClass.IDENTITY,
    "workload.spec_digest": FieldClass.IDENTITY,
    LOOP: FieldClass.IDENTITY,
    WARM_UP: FieldClass.IDENTITY,
    "engine.config": FieldClass.LAUNCH,
    "load.request_rate": FieldClass.LAUNCH,
    "load.max_concurrency": FieldClass.LAUNCH,
    "load.tool": FieldClass.LAUNCH,
    ORDER: FieldClass.LAUNCH,
    INTERVAL: FieldClass.OBSERVATION,
    SATURATED: FieldClass.OBSERVATION,
    SCHEDULED: FieldClass.OBSERVATION,
}
PREFIXES: Mapping[str, FieldClass] = {
    "launch.": FieldClass.LAUNCH,
    "engine.config.": FieldClass.LAUNCH,
    "observation.": FieldClass.OBSERVATION,
    "label.": FieldClass.LABEL,
}
REQUIRED = (
    "model.weights_digest",
    "engine.version",
    "gpu.name",
    "gpu.driver_version",
    "workload.spec_digest",
    "engine.config",
    LOOP,
    WARM_UP,
    ORDER,
)


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """One field: its value and how it is known."""

    value: Value
    stated: Stated = Stated.DECLARED


class Conditions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document beside an artifact. Fields are named like `engine.version`; others of one's own are allowed."""

    format: str = FORMAT
    version: str = VERSION
    fields: dict[Name, Condition]


def class_of(name: str) -> FieldClass:
    """Returns what a field is; one that nobody classified blocks a comparison where it differs."""
    known = CLASSES.get(name)
    if known is not None:
        return known
    return next((one for prefix, one in PREFIXES.items() if name.startswith(prefix)), FieldClass.UNCLASSIFIED)


def strongest(first: Condition | None, second: Condition) -> Condition:
    """Returns the better known one of two of the same field; the first of equals."""
    order = list(Stated)
    return second if first is None or order.index(second.stated) < order.index(first.stated) else first
