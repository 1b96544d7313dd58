"""Rows of Stormlog artifacts, schema 1 to 4, as events of ours (IN-4).

1 is a client's own family and stays opaque; 2 are correlation events; 3 is an activity with busy intervals in its
metadata; 4 keeps contexts once. What they mean is theirs: half-open validities become closed ones, ids become text.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from paritrace.evidence.faults import breach_of
from paritrace.inference.context import Context, ContextFacts
from paritrace.inference.importing import Scope
from paritrace.inference.records import Observation

LEGACY, EMBEDDED, INTERVALS, BY_ID = 1, 2, 3, 4
TYPES = {
    "infer.request": "request",
    "infer.iteration": "iteration",
    "infer.stage": "stage",
    "infer.membership": "membership",
    "infer.activity_ref": "activity",
    "infer.capabilities": "capabilities",
    "infer.clock_alignment": "clock_alignment",
}
IDENTITY, DEFINITION = "infer.artifact", "infer.context"
NAMES = {"activity_kind": "kind", "activity_domain": "domain", "attribution_status": "attribution"}
IDS = ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id")
_plain = msgspec.json.Decoder(dict[str, Any])


class Legacy(msgspec.Struct, frozen=True):
    """A row that is kept as it is: of the client's family, or one that says whose the artifact is."""

    type: str


class StormlogRows:
    """Reads the rows of one artifact in order; `members` of their contexts are put under the run that imports them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._defined: dict[str, dict[str, Any]] = {}
        self._contexts: dict[str, Context] = {}

    def read(self, data: bytes) -> Observation | Legacy | None:
        """Return what a line says, None for the definition of a context.

        Raises:
            ValueError: it is no row of a schema from 1 to 4; the message says why.
        """
        breach = breach_of(data)
        if breach is not None:
            raise ValueError(breach.detail)
        row = _plain.decode(data)
        version, kind = row.pop("schema_version", LEGACY), row.pop("event_type", None)
        if type(version) is not int or not isinstance(kind, str) or not kind.startswith("infer."):
            raise ValueError("it names no inference event, or no schema version")
        if version == LEGACY:
            return Legacy(kind)
        if version not in (EMBEDDED, INTERVALS, BY_ID):
            raise ValueError(f"schema version {version} is not one of 1 to 4")
        if version == BY_ID and kind == DEFINITION:
            self._define(row)
            return None
        facts = self._facts(row, version)
        if kind == IDENTITY:
            return Legacy(kind)
        if kind not in TYPES:
            raise ValueError(f"{kind} is no event of schema {version}")
        return self._event(kind, row, facts, version)

    def _define(self, row: Mapping[str, Any]) -> None:
        identity, facts = row.get("context_id"), row.get("context")
        if set(row) != {"context_id", "context"} or not isinstance(identity, str) or not isinstance(facts, dict):
            raise ValueError("a context is defined by its id and its facts, and nothing else")
        if self._defined.setdefault(identity, cast("dict[str, Any]", facts)) != facts:
            raise ValueError(f"context {identity[:80]!r} is defined twice, in two ways")

    def _facts(self, row: dict[str, Any], version: int) -> dict[str, Any]:
        facts = row.pop("context", None)
        if version == BY_ID:
            identity = row.pop("context_id", None)
            if facts is not None or identity not in self._defined:
                raise ValueError(f"context {str(identity)[:80]!r} is not defined on a line before this one")
            return self._defined[identity]
        if not isinstance(facts, dict):
            raise ValueError("it has no context")
        return cast("dict[str, Any]", facts)

    def _event(self, kind: str, row: dict[str, Any], facts: dict[str, Any], version: int) -> Observation:
        metadata = dict(row.pop("metadata", None) or {})
        told = {NAMES.get(name, name): value for name, value in row.items() if value is not None}
        if kind == "infer.activity_ref":
            _convert_activity(told, metadata, version)
        elif kind == "infer.membership":
            _convert_membership(told, metadata)
        elif kind == "infer.clock_alignment" and isinstance(told.get("valid_to_ns"), int):
            told["valid_to_ns"] -= 1  # theirs is half-open
        session = facts.get("session_id")
        if (facts.get("run_id"), session) != (self._scope.run_id, self._scope.session_id):
            metadata["stormlog"] = {"run_id": facts.get("run_id"), "session_id": session}
            told["event_id"] = f"{facts.get('run_id')}:{session}:{told.get('event_id')}"
        told |= {"type": TYPES[kind], "context": self._context(facts), "metadata": metadata}
        event: Observation = msgspec.convert(told, Observation)
        return event

    def _context(self, facts: dict[str, Any]) -> Context:
        own = facts | {"run_id": self._scope.run_id, "session_id": self._scope.session_id}
        context = Context(msgspec.convert(own, ContextFacts))
        return self._contexts.setdefault(context.id, context)


def _convert_activity(told: dict[str, Any], metadata: dict[str, Any], version: int) -> None:
    for name in IDS:
        if isinstance(told.get(name), int):
            told[name] = str(told[name])
    told.setdefault("domain", "unknown")
    intervals = metadata.pop("intervals", None)
    if intervals is not None:
        told["intervals"] = intervals
    if (intervals is None and version == INTERVALS) or (intervals is not None and version == EMBEDDED):
        raise ValueError("busy intervals are what makes an activity one of schema 3")
    if "trace_attachment_id" in told:  # of their envelope, which is not ours
        metadata["stormlog_trace_attachment_id"] = told.pop("trace_attachment_id")


def _convert_membership(told: dict[str, Any], metadata: dict[str, Any]) -> None:
    given = {name: told.pop(name) for name in ("input_tokens", "output_tokens") if name in told}
    if given and all(type(value) is int for value in given.values()):
        told["tokens"] = sum(given.values())
        metadata["tokens"] = given
    elif given:
        raise ValueError("tokens are whole numbers")
