"""The HTTP API of a session: who is let in, what is refused, what is done once (SE-17)."""

import asyncio
import json

import msgspec
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Message, Scope

from paritrace.session.configuration import KeptConfig, Setting, Source
from paritrace.session.coordinator.http.application import application
from paritrace.session.coordinator.http.guard import MOST_BODY_BYTES
from paritrace.session.coordinator.snapshot import Seen
from paritrace.session.coordinator_events import Heard
from paritrace.session.coordinator_machine import step
from paritrace.session.directory import config_path
from paritrace.session.messages import Beat
from paritrace.session.states import RankState
from tests.session.coordinator.http.conftest import TOKEN, Room

FUZZING = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def code(answer: object) -> str:
    told = json.loads(getattr(answer, "content"))  # noqa: B009  an answer of httpx, whose type is not ours
    return str(told["error"]["code"])


@pytest.mark.parametrize(
    ("headers", "status", "expected"),
    [
        ({"Authorization": ""}, 401, "wrong_token"),
        ({"Authorization": "Bearer other"}, 401, "wrong_token"),
        ({"Authorization": TOKEN}, 401, "wrong_token"),
        ({"Origin": "http://127.0.0.1:8124"}, 403, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
    ],
)
def test_se17_only_programs_with_the_token_are_answered(
    client: TestClient, headers: dict[str, str], status: int, expected: str
) -> None:
    answer = client.get("/v1/status", headers=headers)
    assert (answer.status_code, code(answer)) == (status, expected)


def test_se17_another_host_name_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/status", headers={"Host": "evil.example"})
    assert (answer.status_code, code(answer)) == (400, "foreign_host")


def test_se17_a_verb_that_does_not_exist_has_no_route(client: TestClient) -> None:
    answer = client.post("/v1/commands/nothing/", json={})
    assert (answer.status_code, code(answer)) == (404, "no_such_route")
    answer = client.post("/v1/commands/nothing", json={})  # by whose id a result could be asked for
    assert (answer.status_code, code(answer)) == (405, "wrong_method")


def test_se17_a_command_is_asked_and_its_reply_comes_back(client: TestClient, room: Room) -> None:
    answer = client.post("/v1/commands/run?wait_seconds=30", json={"body": {"steps": 5}, "id": "a"})
    assert answer.status_code == 200
    assert (
        answer.json()["reply"] | {"command_id": "a", "kind": "run", "result": "applied", "step": 7}
        == (answer.json()["reply"])
    )
    assert [(one.id, one.body) for one in room.asked] == [("a", {"steps": 5})]


def test_se7_the_same_id_is_done_once_and_another_content_is_refused(client: TestClient, room: Room) -> None:
    first = client.post("/v1/commands/run?wait_seconds=30", json={"body": {"steps": 5}, "id": "a"})
    again = client.post("/v1/commands/run?wait_seconds=30", json={"body": {"steps": 5}, "id": "a"})
    other = client.post("/v1/commands/run", json={"body": {"steps": 6}, "id": "a"})
    assert first.json() == again.json()
    assert (other.status_code, code(other)) == (409, "command_id_taken")
    assert len(room.asked) == 1


def test_se29_what_is_not_settled_yet_is_asked_for_again_and_withdrawn(client: TestClient, room: Room) -> None:
    asked = client.post("/v1/commands/stop?wait_seconds=0.01", json={"id": "silent"})
    assert (asked.status_code, asked.json()) == (202, {"command_id": "silent"})
    assert client.get("/v1/commands/silent").status_code == 202
    assert client.post("/v1/withdrawals", json={"id": "silent"}).status_code == 202
    room.end()
    assert room.withdrawn == ["silent"]
    missing = client.get("/v1/commands/nobody")
    assert (missing.status_code, code(missing)) == (404, "no_such_command")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("run", {"body": {"steps": 0}}),
        ("run", {"body": {"steps": 1, "path": "/etc"}}),
        ("run", {"body": {}}),
        ("run", {"steps": 1}),
        ("stop", {"body": {"steps": 1}}),
        ("save", {"body": {"name": "../../outside"}}),
        ("save", {"body": {"name": ".hidden"}}),
        ("load", {"body": {"checkpoint": "/etc/passwd"}}),
        ("load", {"body": {"checkpoint": "autosave/../../x"}}),
        ("capture", {"body": {"steps": 1, "name": "a/b"}}),
        ("stop?unknown=1", {}),
        ("stop?wait_seconds=1&wait_seconds=1", {}),
        ("stop?wait_seconds=1e9", {}),
        ("stop", {"id": "a b"}),
    ],
)
def test_se17_unknown_keys_bad_values_and_paths_are_refused(
    client: TestClient, room: Room, path: str, body: dict[str, object]
) -> None:
    answer = client.post(f"/v1/commands/{path}", json=body)
    assert (answer.status_code, code(answer)) == (400, "bad_command")
    room.end()
    assert room.asked == []


def test_se17_a_body_has_a_limit_whether_it_says_its_length_or_not(client: TestClient, room: Room) -> None:
    stated = client.post("/v1/commands/stop", content=b" " * (MOST_BODY_BYTES + 1))
    pieces = client.post("/v1/commands/stop", content=iter([b" " * MOST_BODY_BYTES, b" "]))
    assert [stated.status_code, pieces.status_code] == [413, 413]
    assert code(stated) == code(pieces) == "body_too_large"
    room.end()
    assert room.asked == []


def test_se17_a_client_that_goes_away_within_its_request_is_no_fault(room: Room) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/commands/stop",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8124"), (b"authorization", f"Bearer {TOKEN}".encode())],
    }
    asyncio.run(application(room.desk, token=TOKEN)(scope, receive, send))
    assert (sent, room.asked) == ([], [])


def test_se17_while_somebody_holds_the_lease_nobody_else_commands(client: TestClient, room: Room) -> None:
    given_to = client.post("/v1/lease", json={"holder": "Ada", "seconds": 600}).json()
    refused = client.post("/v1/commands/stop", json={"id": "b"})
    assert (refused.status_code, code(refused)) == (423, "lease_held")
    assert "Ada" in refused.json()["error"]["message"]
    shown = {"Paritrace-Lease": given_to["lease"]}
    assert client.post("/v1/commands/stop?wait_seconds=30", json={"id": "b"}, headers=shown).status_code == 200
    assert client.get("/v1/status").status_code == 200
    assert client.post("/v1/lease", json={"holder": "Eve"}).status_code == 423
    assert client.post("/v1/lease/return", json={"lease": given_to["lease"]}).status_code == 200
    assert client.post("/v1/commands/stop?wait_seconds=30", json={"id": "c"}).status_code == 200


def test_se17_a_dry_run_asks_nobody(client: TestClient, room: Room) -> None:
    waits = client.post("/v1/commands/run?dry_run=true", json={"body": {"steps": 5}})
    begins = client.post("/v1/commands/close?dry_run=true", json={})
    assert (waits.json(), begins.json()) == ({"would": "wait"}, {"would": "begin"})
    room.end()
    assert room.asked == []


def test_se14_status_and_events_are_given_with_a_cursor(client: TestClient, room: Room) -> None:
    status = client.get("/v1/status").json()
    assert (status["state"], status["generation"], status["world_size"]) == ("loading", 3, 2)
    room.ring.put("epoch", {"epoch": 1}, unix_ns=5)
    found = client.get("/v1/events?cursor=0&wait_seconds=30").json()
    assert [event["what"] for event in found["events"]] == ["epoch"]
    assert client.get(f"/v1/events?cursor={found['cursor']}").json()["events"] == []


def test_se21_every_bound_is_told_with_its_reason(client: TestClient) -> None:
    assert all(one["reason"] for one in client.get("/v1/bounds").json()["bounds"])


def test_se26_a_revision_that_is_not_kept_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/config/9")
    assert (answer.status_code, code(answer)) == (404, "no_such_revision")


def test_se26_the_present_configuration_has_the_values_of_the_schedule_and_the_revision_has_not(
    client: TestClient, room: Room
) -> None:
    kept = KeptConfig((Setting("lr", 0.1, Source.DEFAULT, 0.1),), 2, revision=0)
    path = config_path(room.desk.directory, 0)
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(kept))
    beat = Beat(
        generation=3,
        rank=0,
        epoch=0,
        state=RankState.RUNNING,
        step=1,
        pending=1,
        config_revision=0,
        scheduled={"lr": 3},
    )
    running, _ = step(room.machine, Heard(0, beat))
    room.desk.publish(Seen("s", "local", running, {0: 0}))
    shown = [client.get(f"/v1/config{which}").json()["settings"][0] for which in ("", "/0")]
    assert [(one["value"], one["source"]) for one in shown] == [(3, "schedule"), (0.1, "default")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["body", "id", "fences", "steps", "timeout_seconds", "holder", "seconds", "lease", "values"])
PATHS = st.sampled_from(
    [
        "status", "events", "bounds", "config", "config/0", "config/x", "journal", "commands/run", "commands/stop",
        "commands/close", "commands/load", "commands/../x", "withdrawals", "lease", "lease/return", "health", "",
    ]
)  # fmt: skip


@FUZZING
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD"]),
    path=PATHS,
    query=st.dictionaries(
        st.sampled_from(["cursor", "limit", "after", "dry_run", "x"]), st.text(max_size=6), max_size=2
    ),
    body=st.dictionaries(KEYS, VALUES, max_size=4).map(json.dumps) | VALUES.map(json.dumps) | st.text(max_size=30),
)
def test_se17_whatever_is_asked_is_answered_by_a_document_and_never_by_a_fault(
    client: TestClient, method: str, path: str, query: dict[str, str], body: str
) -> None:
    content = body.encode("utf-8", "surrogatepass") if method != "GET" else None
    answer = client.request(method, f"/v1/{path}", params=query, content=content)
    assert answer.status_code < 500, (method, path, query, body, answer.text)
    if method != "HEAD":
        told = answer.json()
        assert answer.status_code < 400 or set(told) == {"ok", "error"}
