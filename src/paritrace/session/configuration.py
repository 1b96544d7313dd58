"""The rule by which a configuration comes about: defaults, a checkpoint, what the request owns, what it gives (SE-25).

The same function serves start, load, configure, rebuild and the preparation of each. What was requested, what is
applied, what would be the default and which limits hold are four things, and every value names its source (SE-26).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import isnan
from typing import Any, cast

from msgspec import UNSET, Struct, UnsetType, field
from msgspec import json as msgspec_json

from paritrace.evidence.digests import sha256_hex
from paritrace.session.commands import Reason
from paritrace.session.workload import REBUILD, ConfigField

FORMAT = "paritrace-session-config"
VERSION = "1.0"
_ENCODER = msgspec_json.Encoder(order="sorted")


class Source(StrEnum):
    """Where a value came from."""

    DEFAULT = "default"
    CHECKPOINT = "checkpoint"
    REQUEST = "request"
    SCHEDULE = "schedule"  # for the steps of one run only; never stored (SE-24)
    DERIVED = "derived"  # a share of another field among the ranks that joined


class Setting(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One field of a configuration. `requested` and `stored` are absent where nobody gave the one or the other."""

    name: str
    value: Any  # the one applied
    source: Source
    default: Any
    requested: Any | UnsetType = UNSET
    stored: Any | UnsetType = UNSET  # by the checkpoint it was resolved with
    limits: dict[str, Any] = field(default_factory=dict[str, Any])  # minimum, maximum, choices
    impact: str = REBUILD


class Resolved(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole configuration, fields in the order they were declared in. `dropped`: unknown keys that were tolerated."""

    settings: tuple[Setting, ...]
    world_size: int
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    format: str = FORMAT
    version: str = VERSION

    @property
    def values(self) -> dict[str, Any]:
        """The values that are applied, by name."""
        return {one.name: one.value for one in self.settings}

    @property
    def digest(self) -> str:
        """SHA-256 of the values alone: two configurations of the same values have the same, whatever their sources."""
        return sha256_hex(_ENCODER.encode(self.values))


class KeptConfig(Resolved, frozen=True, kw_only=True):
    """`configs/REVISION.json`: the configuration of a revision."""

    revision: int


class Given(Struct, frozen=True):
    """What a configuration is made from beside its fields.

    `stored`: a checkpoint's values, None without one. `owned`: values of fields that belong to the request, as it
    holds them whatever a checkpoint says. `requested`: what the request gives outright; it has the last word.
    """

    requested: Mapping[str, Any] = field(default_factory=dict[str, Any])
    owned: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stored: Mapping[str, Any] | None = None
    tolerate_unknown: bool = False


def resolved(
    fields: Iterable[ConfigField], given: Given, *, asked_world_size: int, joined_world_size: int
) -> Resolved | tuple[Reason, ...]:
    """Return the configuration, or every reason why there is none; nothing is changed by asking (SE-25).

    Args:
        fields: What the workload declares, in its order.
        given: A checkpoint's values and the request's.
        asked_world_size: How many ranks the request wants.
        joined_world_size: How many have joined, which must be as many: shares are made among these.
    """
    declared = {one.name: one for one in fields}
    unknown = sorted({name for name in (*given.requested, *given.owned) if name not in declared})
    refused = () if given.tolerate_unknown else unknown
    reasons = [
        *_of_world_size(asked_world_size, joined_world_size),
        *(_reason("unknown_field", f"{name}: no field of this workload") for name in refused),
    ]
    settings: dict[str, Setting] = {}
    for one in sorted(declared.values(), key=lambda one: one.share_of is not None):  # shares after what they share
        setting = _setting(one, given, settings=settings, world_size=joined_world_size)
        reasons.extend(_problems(one, setting, given, world_size=joined_world_size))
        settings[one.name] = setting
    if reasons:
        return tuple(reasons)
    dropped = tuple(sorted({*unknown, *(name for name in given.stored or () if name not in declared)}))
    return Resolved(
        settings=tuple(settings[name] for name in declared),
        world_size=joined_world_size,
        notes=(*_notes(declared, given, settings), *(f"{name}: unknown, dropped as asked" for name in unknown)),
        dropped=dropped,
    )


def problem_of(one: ConfigField, *, value: object) -> str | None:
    """Return what is wrong with a value of a field in words, None where nothing is; limits hold for numbers alone."""
    expected = type(cast("object", one.default))
    if not _is_of_kind(value, expected):
        return f"{one.name}: {type(value).__name__} where {expected.__name__} belongs"
    if one.choices and value not in one.choices:
        return f"{one.name}: {value!r} is none of {', '.join(map(repr, one.choices))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isnan(value):  # which no limit would show
            return f"{one.name}: not a number"
        if one.minimum is not None and value < one.minimum:
            return f"{one.name}: {value!r} is below {one.minimum!r}"
        if one.maximum is not None and value > one.maximum:
            return f"{one.name}: {value!r} is above {one.maximum!r}"
    return None


def changed_fields(before: Resolved, after: Resolved, /) -> tuple[str, ...]:
    """Return the names of the fields whose value differs, in declared order."""
    old = before.values
    return tuple(one.name for one in after.settings if one.name not in old or old[one.name] != one.value)


def needs_rebuild(before: Resolved, after: Resolved, /) -> tuple[str, ...]:
    """Return the changed fields that take effect by a rebuild only; an unclassified one does (SE-9)."""
    impact = {one.name: one.impact for one in after.settings}
    return tuple(name for name in changed_fields(before, after) if impact[name] == REBUILD)


def _setting(one: ConfigField, given: Given, *, settings: Mapping[str, Setting], world_size: int) -> Setting:
    value, source = _chosen(one, given, settings=settings, world_size=world_size)
    return Setting(
        name=one.name,
        value=value,
        source=source,
        default=_default(one, world_size=world_size),
        requested=given.requested.get(one.name, given.owned.get(one.name, UNSET)),
        stored=(given.stored or {}).get(one.name, UNSET),
        limits=_limits(one),
        impact=one.impact,
    )


def _chosen(one: ConfigField, given: Given, *, settings: Mapping[str, Setting], world_size: int) -> tuple[Any, Source]:
    """The value by the one order of sources. Only a default is scaled; what is stored or given is final."""
    if one.share_of is not None:
        return _share(settings.get(one.share_of), world_size), Source.DERIVED
    if one.name in given.requested:
        return given.requested[one.name], Source.REQUEST
    if one.name in given.owned:
        return given.owned[one.name], Source.REQUEST
    if given.stored is not None and one.name in given.stored and not one.owned_by_request:
        return given.stored[one.name], Source.CHECKPOINT
    return _default(one, world_size=world_size), Source.DEFAULT


def _default(one: ConfigField, *, world_size: int) -> Any:
    return one.default * world_size if one.scaled_by_world_size else one.default


def _share(whole: Setting | None, world_size: int) -> Any:
    if whole is None or not isinstance(whole.value, int) or whole.value % world_size:
        return None  # said by `_problems`
    return whole.value // world_size


def _problems(one: ConfigField, setting: Setting, given: Given, *, world_size: int) -> list[Reason]:
    if one.share_of is not None:
        found: list[Reason] = []
        if one.name in given.requested or one.name in given.owned:
            found.append(_reason("derived_field", f"{one.name}: is {one.share_of} among the ranks; give that one"))
        if setting.value is None:
            found.append(
                _reason("uneven_share", f"{one.name}: {one.share_of} cannot be shared evenly among {world_size} ranks")
            )
        return found
    words = problem_of(one, value=setting.value)
    return [] if words is None else [_reason("invalid_value", f"{words} (from {_of(setting.source)})")]


def _notes(declared: Mapping[str, ConfigField], given: Given, settings: Mapping[str, Setting]) -> Iterable[str]:
    """What a checkpoint said and what became of it, where it is not simply so (SE-8)."""
    if given.stored is not None:
        for name in given.stored:
            if name not in declared:
                yield f"{name}: stored by the checkpoint, unknown to this workload: dropped"
        for name, one in declared.items():
            yield from _notes_of(one, given.stored, settings[name])


def _notes_of(one: ConfigField, stored: Mapping[str, Any], setting: Setting) -> Iterable[str]:
    if one.name not in stored:
        if setting.source is Source.DEFAULT:
            yield f"{one.name}: not stored by the checkpoint: the default {setting.value!r}"
    elif setting.source is Source.DERIVED:
        if stored[one.name] != setting.value:
            yield f"{one.name}: {stored[one.name]!r} in the checkpoint, {setting.value!r} among the ranks that joined"
    elif setting.source is not Source.CHECKPOINT and stored[one.name] != setting.value:
        yield f"{one.name}: {stored[one.name]!r} in the checkpoint, {setting.value!r} by {_of(setting.source)}"


def _of_world_size(asked: int, joined: int) -> list[Reason]:
    if asked == joined:
        return []
    return [_reason("another_world_size", f"{joined} ranks joined where {asked} were asked for")]


def _limits(one: ConfigField) -> dict[str, Any]:
    found = {"minimum": one.minimum, "maximum": one.maximum, "choices": list(one.choices) or None}
    return {name: value for name, value in found.items() if value is not None}


def _is_of_kind(value: object, expected: type[object]) -> bool:
    """A bool is no number; a whole number is a float where one belongs; a default of None takes anything."""
    if expected is type(None):
        return True
    if isinstance(value, bool) or expected is bool:
        return isinstance(value, bool) and expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def _of(source: Source) -> str:
    return {Source.DEFAULT: "the default", Source.CHECKPOINT: "the checkpoint"}.get(source, f"the {source.value}")


def _reason(code: str, words: str) -> Reason:
    return Reason(-1, code, words)
