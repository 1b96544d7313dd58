"""The published JSON Schemas of requests and results, and actions as function schemas (AU-1, AU-14)."""

import json
from collections.abc import Iterable
from typing import Any, cast

from paritrace.automation.protocol.records import Action, Result
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.schemas import schema_of

_SEAL = Result.__struct_fields__  # in the records with a default, since the wrapper fills them in


def request_schema(action: Action) -> dict[str, object] | None:
    """Return the schema of an action's request; None for an action that takes none."""
    if action.request is None:
        return None
    name = f"paritrace-tools-{action.name}-request"
    return _sealed(schema_of(name, [action.request], summary=f"request: {action.summary}"))


def result_schema(action: Action) -> dict[str, object]:
    """Return the schema of an action's result."""
    name = f"paritrace-tools-{action.name}-result"
    return _sealed(schema_of(name, [action.result], summary=f"result: {action.summary}"))


def schema_file(action: Action, part: str) -> str:
    """Return the name of a published schema below `schemas/`; `part` is `request` or `result`."""
    return f"tools/{action.name}-{part}.json"


def published(actions: Iterable[Action]) -> dict[str, dict[str, object]]:
    """Return the schemas of these actions by their file names."""
    found: dict[str, dict[str, object]] = {}
    for action in actions:
        request = request_schema(action)
        if request is not None:
            found[schema_file(action, "request")] = request
        found[schema_file(action, "result")] = result_schema(action)
    return found


def function_schema(action: Action) -> dict[str, object]:
    """Return an action as a function that a language model may call: its request, without the version (AU-14).

    `parameters` is of the same record as the request's schema; a caller adds `protocol_version`.
    """
    parameters = request_schema(action)
    if parameters is None:
        parameters = dict[str, object]()
        parameters |= {"type": "object", "properties": {}, "additionalProperties": False}
    else:
        definitions = cast("dict[str, dict[str, Any]]", parameters.pop("$defs"))
        own = definitions.pop(str(parameters["$ref"]).rpartition("/")[2])
        own["properties"].pop("protocol_version")
        own["required"].remove("protocol_version")
        parameters = {**own, "$defs": definitions}
    name = action.name.replace("-", "_")
    return {"name": f"paritrace_{name}", "description": action.summary, "parameters": parameters}


def schema_text(schema: dict[str, object]) -> str:
    """Return a schema as it is published in `schemas/tools/`: sorted, indented, with a last newline."""
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def schema_sha256(schema: dict[str, object]) -> str:
    """Return the SHA-256 of a schema as it is published."""
    return sha256_hex(schema_text(schema).encode())


def _sealed(schema: dict[str, object]) -> dict[str, object]:
    """The schema with version and digest required of every result in it."""
    definitions = cast("dict[str, dict[str, Any]]", schema["$defs"])
    for definition in definitions.values():
        properties = definition.get("properties", {})
        if "action" in properties and all(name in properties for name in _SEAL):
            for name in _SEAL:
                properties[name].pop("default", None)
            definition["required"] = [*dict.fromkeys([*_SEAL, *definition["required"]])]
    return cast("dict[str, object]", _flat(schema))


def _flat(schema: object) -> object:
    """A schema whose unions hold no unions, so that every choice is named where the value stands."""
    match schema:
        case dict():
            plain = {key: _flat(value) for key, value in cast("dict[str, object]", schema).items()}
            if isinstance(plain.get("anyOf"), list):
                choices = cast("list[dict[str, Any]]", plain["anyOf"])
                plain["anyOf"] = [inner for choice in choices for inner in choice.get("anyOf", [choice])]
            return plain
        case list():
            return [_flat(value) for value in cast("list[object]", schema)]
        case _:
            return schema
