"""JSON Schemas of stored formats, generated from the record types (EV-1)."""

from collections.abc import Sequence
from typing import cast

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"


def schema_of(name: str, kinds: Sequence[object], *, summary: str) -> dict[str, object]:
    """Return the JSON Schema of a format.

    Args:
        name: the format's name, for example `paritrace-run`.
        kinds: the types that one document, or one line of it, may be.
        summary: one line for people.
    """
    members, definitions = msgspec.json.schema_components(kinds, schema_hook=_own, ref_template=_REFERENCE)
    flat = [choice for member in members for choice in _choices(member)]
    body: dict[str, object] = {"anyOf": flat} if len(flat) > 1 else dict(flat[0])
    return {"$schema": DIALECT, "title": name, "description": summary, **body, "$defs": definitions}


def _own(kind: type) -> dict[str, object]:
    """Return the schema of a type of ours that stands in a line by its id: a context."""
    return {
        "type": "string",
        "minLength": 1,
        "description": f"id of a {kind.__name__.lower()} defined on a line before",
    }


def _choices(member: dict[str, object]) -> list[dict[str, object]]:
    """Return the alternatives of a schema, so that a union of unions reads as one list."""
    alternatives = member.get("anyOf")
    return cast("list[dict[str, object]]", alternatives) if isinstance(alternatives, list) else [member]
