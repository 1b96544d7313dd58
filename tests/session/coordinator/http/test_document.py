"""The OpenAPI document of a session's HTTP API: every answer of every route is produced, and is as it says (SE-17)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from paritrace.session.bodies import checked_body
from paritrace.session.commands import Kind
from paritrace.session.configuration import KeptConfig, Setting, Source
from paritrace.session.coordinator.http.guard import MOST_BODY_BYTES
from paritrace.session.directory import JOURNAL, config_path
from tests.session.coordinator.http.conftest import ORIGIN, Room

Document = dict[str, Any]

FULL: dict[Kind, dict[str, object]] = {
    Kind.RUN: {
        "steps": 5, "schedule": {"lr": [[0, 0.1]]}, "autosave": False, "preview_every": 2, "preview_options": {"a": 1}
    },
    Kind.STOP: {},
    Kind.CONFIGURE: {"values": {"lr": 0.1}, "inputs": {"text": "a"}, "tolerate_unknown": True},
    Kind.SAVE: {"name": "here"},
    Kind.LOAD: {"checkpoint": "autosave/here", "rebuild": True, "tolerate_unknown": False},
    Kind.INPUTS: {"reference": {"text": "a"}},
    Kind.PREVIEW: {"options": {"a": 1}, "rank": 0},
    Kind.CAPTURE: {
        "steps": 1, "level": ["op"], "name": "a", "select": ["linear"], "regions": 4, "statistics": True
    },
    Kind.REBUILD: {"values": {"lr": 0.1}, "inputs": {"text": "a"}, "tolerate_unknown": True},
    Kind.CLOSE: {"now": True},
}  # fmt: skip


@pytest.fixture
def document(client: TestClient) -> Document:
    found: Document = client.get("/v1/openapi.json").json()
    return found


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


class Asking:
    """Asks, holds every answer against the document, and keeps which ones have come."""

    def __init__(self, client: TestClient, document: Document) -> None:
        self.client = client
        self.document = document
        self.seen: set[tuple[str, str, int]] = set()

    def __call__(self, path: str, method: str, address: str = "", /, **given: Any) -> Any:
        answer = self.client.request(method, f"{address or path}", **given)
        responses = self.document["paths"][path][method.lower()]["responses"]
        assert str(answer.status_code) in responses, (path, method, answer.status_code, answer.text)
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        told = answer.json()
        Draft202012Validator({**schema, "components": self.document["components"]}).validate(told)
        self.seen.add((path, method, answer.status_code))
        return told


def everywhere(asking: Asking) -> None:
    """What every route answers alike."""
    for path, method, _ in operations(asking.document):
        address = path.replace("{revision}", "1").replace("{command_id}", "a")
        asking(path, method, f"{address}?unknown=1")
        asking(path, method, address, headers={"Authorization": "Bearer other"})
        asking(path, method, address, headers={"Origin": ORIGIN})
        asking(path, method, address, headers={"Content-Length": str(MOST_BODY_BYTES + 1)}, content=b"")


def reading(asking: Asking, room: Room) -> None:
    for path in ("/v1/health", "/v1/status", "/v1/bounds"):
        asking(path, "GET")
    room.ring.put("epoch", {"epoch": 1}, unix_ns=5)
    asking("/v1/events", "GET")
    asking("/v1/config", "GET")
    asking("/v1/config/{revision}", "GET", "/v1/config/0")
    asking("/v1/config/{revision}", "GET", "/v1/config/9")
    assert asking("/v1/journal", "GET")["lines"]
    config_path(room.desk.directory, 0).unlink()
    asking("/v1/config", "GET")
    (room.desk.directory / JOURNAL).write_bytes(b"no journal\n")
    asking("/v1/journal", "GET")


def commanding(asking: Asking) -> None:
    told = "/v1/commands/{command_id}"
    for kind, body in FULL.items():
        path = f"/v1/commands/{kind.value}"
        asking(path, "POST", f"{path}?wait_seconds=30", json={"id": kind.value, "body": body})
        asking(path, "POST", f"{path}?dry_run=true", json={"body": body})
        asking(path, "POST", json={"id": kind.value, "body": body, "fences": {"step": 5}})
        asking(told, "GET", f"/v1/commands/{kind.value}")
    asking(told, "GET", "/v1/commands/nobody")


def leasing(asking: Asking, silent: str) -> None:
    """`silent`: the id of a command that nobody answers."""
    withdrawals, lease, back = "/v1/withdrawals", "/v1/lease", "/v1/lease/return"
    stop = "/v1/commands/stop"
    asking(stop, "POST", json={"id": silent})
    asking("/v1/commands/{command_id}", "GET", f"/v1/commands/{silent}")
    asking(withdrawals, "POST", json={"id": silent})
    asking(withdrawals, "POST", json={"id": "stop"})
    asking(withdrawals, "POST", json={"id": "nobody"})
    held = asking(lease, "POST", json={"holder": "Ada"})["lease"]
    for path, _, _ in operations(asking.document):
        if path.startswith("/v1/commands/") and "{" not in path:
            asking(path, "POST", json={"body": FULL[Kind(path.rpartition("/")[2])]})
    asking(lease, "POST", json={"holder": "Eve"})
    asking(withdrawals, "POST", json={"id": silent})
    asking(back, "POST", json={"lease": "another"})
    asking(back, "POST", json={"lease": held})


def failing(asking: Asking, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything was published, of what only the journal had, after the end, and where our own code raises."""
    monkeypatch.setattr(room.desk, "_seen", None)
    asking("/v1/status", "GET")
    asking("/v1/config", "GET")
    monkeypatch.setattr(room.ledger, "_forgotten", {"lost"})
    for kind, body in FULL.items():
        asking(f"/v1/commands/{kind.value}", "POST", json={"body": body, "id": "lost"})
    room.desk.end()
    for kind, body in FULL.items():
        asking(f"/v1/commands/{kind.value}", "POST", json={"body": body})

    def broken(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr("paritrace.session.coordinator.http.routes._require_known", broken)
    for path, method, _ in operations(asking.document):
        asking(path, method, path.replace("{revision}", "1").replace("{command_id}", "a"))


def prepared(directory: Path) -> None:
    """A directory as a coordinator has it: a configuration, a journal."""
    setting = Setting("lr", 0.1, Source.REQUEST, 0.2, requested=0.1, limits={"minimum": 0})
    config_path(directory, 0).parent.mkdir()
    config_path(directory, 0).write_bytes(msgspec.json.encode(KeptConfig((setting,), 2, revision=0)))
    facts = '{"format":"paritrace-session-journal","version":"1.0"}'
    line = f'{{"sequence":1,"unix_ns":5,"generation":1,"what":"opened","facts":{facts}}}\n'
    (directory / JOURNAL).write_text(line)


def test_se17_every_answer_that_is_documented_comes_and_is_as_documented(
    client: TestClient, room: Room, document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(client, document)
    prepared(room.desk.directory)
    everywhere(asking)
    reading(asking, room)
    commanding(asking)
    leasing(asking, "silent")
    failing(asking, room, monkeypatch)
    said = {
        (path, method, int(status))
        for path, method, operation in operations(document)
        for status in operation["responses"]
    }
    unsettled = {
        (path, "POST", 202) for path in document["paths"] if path.startswith("/v1/commands/") and "{" not in path
    }
    assert said - asking.seen == unsettled - {("/v1/commands/stop", "POST", 202)}, "one route answers for all verbs"
    assert asking.seen <= said


def test_se17_every_verb_has_a_route_and_the_body_it_takes(document: Document) -> None:
    assert {f"/v1/commands/{kind.value}" for kind in Kind} <= document["paths"].keys()
    for kind, body in FULL.items():
        validator = body_validator(document, kind)
        validator.validate({"body": body, "id": "a", "fences": {"step": 1}, "timeout_seconds": 2.5})
        assert set(schema_of_body(document, kind)["properties"]) == set(body), "each key is tried"
        checked_body(kind, body)
        assert not validator.is_valid({"body": {**body, "unknown": 1}})
        needed = document["paths"][f"/v1/commands/{kind.value}"]["post"]["requestBody"]["required"]
        assert needed == (kind in {Kind.RUN, Kind.LOAD, Kind.INPUTS, Kind.CAPTURE})


def test_se17_every_route_says_how_often_it_may_be_asked_and_asks_for_the_token(document: Document) -> None:
    found = [operation for _, _, operation in operations(document)]
    assert len(found) > 20
    assert {one["x-idempotency"] for one in found} == {"read", "by id", "lease"}
    assert all(one["security"] == [{"token": []}] for one in found)


def test_se17_every_reference_of_the_document_leads_somewhere(document: Document) -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert names
    assert names <= document["components"]["schemas"].keys()
    assert "HTTPValidationError" not in document["components"]["schemas"]


def schema_of_body(document: Document, kind: Kind) -> Document:
    found: Document = document["components"]["schemas"][
        f"{kind.value.capitalize()}Body" if FULL[kind] else "NothingBody"
    ]
    return found


def body_validator(document: Document, kind: Kind) -> Draft202012Validator:
    asked = document["paths"][f"/v1/commands/{kind.value}"]["post"]["requestBody"]["content"]["application/json"]
    return Draft202012Validator({**asked["schema"], "components": document["components"]})
