"""Requests made from the schemas: one that is right, and for each rule of each field one that breaks it (AU-1)."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from paritrace.automation.protocol.digests import digest_of
from paritrace.automation.protocol.records import Action
from paritrace.automation.protocol.schemas import request_schema

Schema = dict[str, Any]
Way = tuple[str, ...]
NOTHING = object()  # a field that is taken out
RULES: dict[str, Callable[[Any], object]] = {  # what breaks each
    "minLength": lambda least: "x" * (least - 1),
    "maxLength": lambda most: "x" * (most + 1),
    "pattern": lambda _pattern: "a\0b",
    "minimum": lambda least: least - 1,
    "exclusiveMinimum": lambda bound: bound,
    "maximum": lambda most: most + 1,
    "enum": lambda _words: "no such word",
    "minItems": lambda _least: [],
}


class Broken(NamedTuple):
    """`at`: the JSON Pointer of what is wrong. `put`: the way to a field and what is put there."""

    name: str
    at: str
    put: tuple[Way, object]


class Schemas:
    """The schema of one action's request, with references followed."""

    def __init__(self, action: Action) -> None:
        schema = request_schema(action)
        assert schema is not None
        self.root: Schema = dict(schema)
        self.definitions: dict[str, Schema] = dict(self.root["$defs"])

    def followed(self, schema: Schema) -> Schema:
        return self.definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def valid(self, schema: Schema) -> Any:
        """The smallest value that a schema takes; of several kinds the first."""
        schema = self.followed(schema)
        if "enum" in schema:
            return schema["enum"][0]
        if "anyOf" in schema:
            return self.valid(schema["anyOf"][0])
        match schema["type"]:
            case "object":
                properties = schema.get("properties", {})
                made = {name: self.valid(properties[name]) for name in schema.get("required", ())}
                return made | {"digest": digest_of(made)} if "action" in made else made
            case "array" if "prefixItems" in schema:
                return [self.valid(item) for item in schema["prefixItems"]]
            case "array":
                return [self.valid(schema["items"])]
            case "string":
                return "0" * 64 if "64" in schema.get("pattern", "") else "x" * max(1, schema.get("minLength", 0))
            case "integer" | "number":
                return max(1, schema.get("minimum", 1))
            case "boolean":
                return True
            case other:
                raise AssertionError(f"no value is known of type {other}")

    def broken(self, schema: Schema, way: Way = ()) -> Iterator[Broken]:
        """Every rule of a schema broken once."""
        schema = self.followed(schema)
        at = "".join(f"/{part}" for part in way)
        yield Broken(f"{at} of another type", at, (way, self._of_no_type(schema)))
        for choice in schema.get("anyOf", [schema]):
            yield from self._bounds(self.followed(choice), way)

    def _bounds(self, schema: Schema, way: Way) -> Iterator[Broken]:
        at = "".join(f"/{part}" for part in way)
        if "action" in schema.get("properties", {}):
            return  # a result: it is broken as a whole, by its digest
        for rule, broken in RULES.items():
            if rule in schema:
                yield Broken(f"{at} against {rule}", at, (way, broken(schema[rule])))
        if schema.get("uniqueItems"):
            yield Broken(f"{at} twice the same", at, (way, [self.valid(schema["items"])] * 2))
        if schema.get("type") == "array":
            first, *others = schema.get("prefixItems", [schema["items"]])
            entries = [self._of_no_type(first), *map(self.valid, others)]
            yield Broken(f"{at}/0 of another type", f"{at}/0", (way, entries))
        if schema.get("type") == "object":
            yield from self._fields(schema, way)

    def _fields(self, schema: Schema, way: Way) -> Iterator[Broken]:
        at = "".join(f"/{part}" for part in way)
        if "additionalProperties" not in schema and "properties" not in schema:
            return  # any JSON object: what it holds is the session's to judge
        if schema.get("additionalProperties") is not False:  # a map
            yield Broken(f"{at}/K of another type", f"{at}/K", (way, {"K": ["secret"]}))
            return
        yield Broken(f"{at}/unknown", f"{at}/unknown", ((*way, "unknown"), 1))
        for name, inner in schema["properties"].items():
            if name in schema["required"]:
                yield Broken(f"{at}/{name} missing", f"{at}/{name}", ((*way, name), NOTHING))
            yield from self.broken(inner, (*way, name))

    def _of_no_type(self, schema: Schema) -> object:
        """A value of a type that none of the choices takes."""
        choices = [self.followed(choice) for choice in self.followed(schema).get("anyOf", [schema])]
        types = {self.followed(choice).get("type") for choice in choices}
        return next(value for kind, value in (("object", {}), ("array", []), ("boolean", True)) if kind not in types)


def with_put(request: Schema, schemas: Schemas, put: tuple[Way, object]) -> Any:
    """A copy of a request with one thing put in; what lies on the way is made where it is not there."""
    way, value = put
    if not way:
        return value
    changed = deepcopy(request)
    inside, schema = changed, schemas.followed(schemas.root)
    for part in way[:-1]:
        schema = schemas.followed(schema["properties"][part])
        objects = [schemas.followed(choice) for choice in schema.get("anyOf", [schema])]
        schema = next(choice for choice in objects if choice.get("type") == "object")
        if not isinstance(inside.get(part), dict):
            inside[part] = schemas.valid(schema)
        inside = inside[part]
    if value is NOTHING:
        del inside[way[-1]]
    else:
        inside[way[-1]] = value
    return changed
