"""Makes the reference of the protocol for programs from its actions: `reference/protocol.md`, the schemas (AU-16)."""

import json
from collections.abc import Iterator
from typing import Any

import click

from paritrace.automation.__main__ import PROGRAM, tools
from paritrace.automation.protocol.records import Action
from paritrace.automation.protocol.schemas import published, request_schema, result_schema, schema_file, schema_text
from paritrace.automation.protocol.table import all_actions

Schema = dict[str, Any]
WIDTH = 100

HEAD = """# Actions of the protocol for programs

<!-- made by docs/generate.py from the code: do not edit -->

What all of them have in common stands in [the protocol for programs](../formats/protocol.md). Where a field is the
result of an action, it takes the `result` object of a success as it is.
"""


def protocol_page() -> str:
    """The whole page `reference/protocol.md`."""
    context = click.Context(tools, info_name=PROGRAM, terminal_width=WIDTH, max_content_width=WIDTH)
    return (
        HEAD
        + f"\n```text\n{tools.get_help(context)}\n```\n"
        + "".join(text for action in all_actions() for text in _section(action))
    )


def protocol_schemas() -> dict[str, str]:
    """Every published schema by its file name below `schemas/`."""
    return {name: schema_text(schema) for name, schema in published(all_actions()).items()}


def _section(action: Action) -> Iterator[str]:
    yield f"\n## {action.name}\n\n{action.summary}\n"
    schema = request_schema(action)
    if schema is None:
        yield "\nTakes no request.\n"
    else:
        definition = _followed(schema, schema)
        yield f"\n{_description(definition)}\n" if "description" in definition else ""
        yield f"\nRequest: [schema](../../schemas/{schema_file(action, 'request')}).\n"
        yield "\n| field | type | required or default | bounds |\n|---|---|---|---|\n"
        yield from _rows(definition, schema, prefix="")
    result = result_schema(action)
    yield f"\nResult: [schema](../../schemas/{schema_file(action, 'result')}).\n"
    described = _followed(result, result)
    yield f"\n{_description(described)}\n" if "description" in described else ""
    if action.varying:
        yield f"\nVarying: {', '.join(f'`{name}`' for name in action.varying)}.\n"


def _description(schema: Schema) -> str:
    return "\n".join(line.strip() for line in str(schema["description"]).splitlines())


def _rows(definition: Schema, root: Schema, *, prefix: str) -> Iterator[str]:
    for name, schema in definition["properties"].items():
        required = "required" if name in definition.get("required", ()) else f"`{_default(schema)}`"
        kinds = [_followed(choice, root) for choice in schema.get("anyOf", [schema])]
        types = " or ".join(dict.fromkeys(_type(kind, root) for kind in kinds))
        bounds = "; ".join(dict.fromkeys(bound for kind in kinds for bound in _bounds(kind, root)))
        yield f"| `{prefix}{name}` | {types} | {required} | {bounds} |\n"
        for kind in kinds:
            if _is_record(kind) and not _is_result(kind):
                yield from _rows(kind, root, prefix=f"{prefix}{name}.")


def _default(schema: Schema) -> str:
    return json.dumps(schema.get("default"))


def _followed(schema: Schema, root: Schema) -> Schema:
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _is_record(schema: Schema) -> bool:
    return "properties" in schema


def _is_result(schema: Schema) -> bool:
    return _is_record(schema) and "action" in schema["properties"]


def _type(schema: Schema, root: Schema) -> str:
    if _is_result(schema):
        return f"result of `{schema['properties']['action']['enum'][0]}`"
    if "enum" in schema:
        return "word" if all(isinstance(word, str) for word in schema["enum"]) else "number"
    match schema["type"]:
        case "array" if "prefixItems" in schema:
            return f"list of {len(schema['prefixItems'])}"
        case "array":
            return f"list of {_type(_followed(schema['items'], root), root)}"
        case "object" if not _is_record(schema):
            if "additionalProperties" not in schema:
                return "JSON object"
            return f"map to {_type(_followed(schema['additionalProperties'], root), root)}"
        case kind:
            return str(kind)


def _bounds(schema: Schema, root: Schema) -> Iterator[str]:
    if _is_result(schema):
        yield "intact"
        return
    if "enum" in schema:
        yield ", ".join(f"`{word}`" for word in schema["enum"])
    for rule, words in WORDS.items():
        if rule in schema:
            yield words.format(schema[rule])
    if schema.get("uniqueItems"):
        yield "unique"
    if "pattern" in schema:
        pattern = schema["pattern"]
        yield "no NUL" if pattern == "^[^\\x00]*$" else f"matches `{pattern}`"
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict) and not _is_record(_followed(inner, root)):
        yield from (f"each {bound}" for bound in _bounds(_followed(inner, root), root))


WORDS = {
    "minLength": "characters ≥ {}",
    "maxLength": "characters ≤ {}",
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "minItems": "entries ≥ {}",
    "maxItems": "entries ≤ {}",
}
