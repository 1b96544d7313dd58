"""The configuration of a plan: what a person may choose, and its one normalised text (CA-11, CA-25)."""

import json
import re
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

from paritrace.attempts.yaml_text import plain_of
from paritrace.capture.plans import parse_context_variable
from paritrace.capture.settings import DEFAULT_REGIONS, DEFAULT_STEPS
from paritrace.errors import RequestError

Pattern = Annotated[str, Meta(min_length=1)]


class Configuration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan's configuration, written as YAML.

    `files` and `exclude` are shell patterns of paths below the checkout's root, of which those of `exclude` count more.
    `steps` is half-open. `context_vars` are `FILE:FUNCTION:NAME`, FUNCTION a qualified name, `<module>` for the file
    itself.
    """

    version: Literal[1]
    files: tuple[Pattern, ...] = ("*",)
    exclude: tuple[Pattern, ...] = ()
    steps: tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=1)]] = DEFAULT_STEPS
    regions: Annotated[int, Meta(ge=1, le=64)] = DEFAULT_REGIONS
    context_vars: tuple[str, ...] = ()


DEFAULT = Configuration(version=1)


def read_configuration(data: bytes, *, name: str) -> Configuration:
    """Return the configuration in a YAML document.

    Raises:
        RequestError: Refused: `bad_configuration`; `unsupported_section`, each section that is not supported by name;
            `bad_context_variable`, `bad_steps`.
        HostError: Refused, `missing_extra`: PyYAML is not installed.
    """
    try:
        plain = plain_of(data, name=name)
    except RequestError as error:
        raise RequestError(error.message, code="bad_configuration", fix=_MEND) from error
    if not isinstance(plain, dict):
        raise RequestError(f"{name} holds no sections", code="bad_configuration", fix=_MEND)
    found = cast("dict[object, object]", plain)
    known = Configuration.__struct_fields__
    strange = sorted(str(key) for key in found if key not in known)
    if strange:
        raise RequestError(
            f"{name}: not supported: {', '.join(map(repr, strange))}",
            code="unsupported_section",
            fix=f"leave it out; supported are {', '.join(known)}",
        )
    try:
        made = msgspec.convert(plain, Configuration)
    except msgspec.ValidationError as error:
        raise RequestError(f"{name}: {error}", code="bad_configuration", fix=_MEND) from error
    return checked(made)


def checked(configuration: Configuration) -> Configuration:
    """The configuration, where its values go together. Raises `RequestError` as `read_configuration` does."""
    first, last = configuration.steps
    if first >= last:
        raise RequestError(
            f"steps [{first}, {last}] hold no step", code="bad_steps", fix="give [A, B] with A < B, for example [0, 3]"
        )
    for one in configuration.context_vars:
        parse_context_variable(one)
    return configuration


def normalised(configuration: Configuration) -> bytes:
    """Return the configuration as YAML: one line a section, in the order of the schema."""
    sections = cast("dict[str, object]", msgspec.to_builtins(configuration))
    return "".join(f"{name}: {_text(value)}\n" for name, value in sections.items()).encode("ascii")


def _text(value: object) -> str:
    """A value as JSON, but for characters beyond 16 bits: YAML spells those with one escape, not with two halves."""
    return _ESCAPE.sub(_whole, json.dumps(value))


def _whole(escape: "re.Match[str]") -> str:
    if escape[1] is None:
        return escape[0]
    return f"\\U{0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + int(escape[2], 16) - 0xDC00:08x}"


_ESCAPE = re.compile(r"\\(?:u(d[89ab]..)\\u(d[c-f]..)|.)")
_MEND = "mend it; `paritrace schema plan-configuration` prints the format"
