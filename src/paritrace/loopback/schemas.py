"""Our records as the schemas of an OpenAPI document: FastAPI is told, since it does not know them (SU-10, SE-17)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

REFERENCE = "#/components/schemas/{name}"


class Schemas:
    """The schemas of a closed list of records. Making them looks at every record: make them once."""

    def __init__(self, kinds: Sequence[type]) -> None:
        schemas, self._components = msgspec.json.schema_components(tuple(kinds), ref_template=REFERENCE)
        self._of = dict(zip(kinds, schemas, strict=True))

    def answer_with(self, *kinds: type, status: int = 200) -> dict[int | str, dict[str, Any]]:
        """Return what FastAPI documents as an answer of a route: one of these records."""
        return {status: {"description": " or ".join(kind.__name__ for kind in kinds), "content": self._content(*kinds)}}

    def asked_with(self, kind: type, /, *, required: bool) -> dict[str, Any]:
        """Return what FastAPI documents as the body of a route's request."""
        return {"requestBody": {"required": required, "content": self._content(kind)}}

    def with_components(self, document: dict[str, Any], /) -> dict[str, Any]:
        """Return an OpenAPI document with the records it refers to."""
        components: Mapping[str, Any] = document.get("components", {})
        return document | {
            "components": {**components, "schemas": {**components.get("schemas", {}), **self._components}}
        }

    def _content(self, *kinds: type) -> dict[str, Any]:
        schemas = [self._of[kind] for kind in kinds]
        return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas}}}
