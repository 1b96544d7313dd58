"""Commands of a session from its page: where they are permitted, and no more than the page may ask (SU-10, SU-11)."""

import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from paritrace.process.identity import own_identity
from paritrace.reports.shelf import key_of
from paritrace.session.commands import Result
from paritrace.session.directory import TOKEN as SESSION_TOKEN
from paritrace.web.application import application
from tests.session.coordinator.http.conftest import Room
from tests.web.conftest import ORIGIN, TOKEN, Served
from tests.web.sessions import write_session
from tests.web.test_session_pages import lived, publish

GENERATION = 3  # of the room's machine


def controlling(path: Path) -> TestClient:
    """A client of a view that takes commands; it sends what a page of ours sends."""
    app = application(path, token=TOKEN, origin=ORIGIN, allow_control=True)
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    return TestClient(app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Generator[Room]:
    with lived(tmp_path_factory.mktemp("lives") / "session") as made:
        yield made


@pytest.fixture(scope="module")
def client(room: Room) -> TestClient:
    return controlling(room.desk.directory)


@pytest.fixture(autouse=True)
def nothing_asked_yet(room: Room) -> None:
    room.asked.clear()
    room.result = Result.APPLIED
    publish(room, room.machine)


def home(directory: Path) -> str:
    return f"/api/sessions/{key_of(directory)}/commands"


def body(command_id: str = "", /, **given: object) -> dict[str, object]:
    return {"id": command_id or str(uuid.uuid4()), "generation": GENERATION, **given}


def code_of(answer: Any) -> str:
    return str(answer.json()["error"]["code"])


@pytest.mark.parametrize(
    ("kind", "given", "asked"),
    [
        ("run", {"steps": 5}, {"steps": 5}),
        ("stop", {}, {}),
        ("save", {"name": "new"}, {"name": "new"}),
        ("save", {}, {}),
        ("load", {"checkpoint": "checkpoints/here"}, {"checkpoint": "checkpoints/here"}),
        ("configure", {"name": "lr", "value": "0.5"}, {"values": {"lr": 0.5}}),
        ("configure", {"name": "kind", "value": "adam"}, {"values": {"kind": "adam"}}),
        ("configure", {"name": "lr", "value": "NaN"}, {"values": {"lr": "NaN"}}),
        ("preview", {}, {}),
        ("capture", {"steps": 2, "level": "op"}, {"steps": 2, "level": "op"}),
        ("close", {"confirm": "close"}, {}),
    ],
)
def test_su10_each_verb_is_forwarded_with_the_generation_that_the_page_showed(
    client: TestClient, room: Room, kind: str, given: dict[str, object], asked: dict[str, object]
) -> None:
    told = body(**given)
    answer = client.post(f"{home(room.desk.directory)}/{kind}", json=told)
    assert answer.status_code == 200
    assert answer.json()["reply"]["result"] == "applied"
    assert [(one.id, one.kind.value, one.body, one.fences.generation) for one in room.asked] == [
        (told["id"], kind, asked, GENERATION)
    ]
    assert "the-token" not in answer.text


@pytest.mark.parametrize(
    ("kind", "given", "code"),
    [
        ("run", {}, "bad_command"),
        ("run", {"steps": 0}, "bad_command"),
        ("run", {"steps": 5, "schedule": {}}, "bad_command"),
        ("stop", {"step": 3}, "bad_command"),
        ("save", {"name": "../there"}, "bad_command"),
        ("load", {"checkpoint": "checkpoints/none"}, "no_such_checkpoint"),
        ("load", {"checkpoint": "checkpoints/broken"}, "no_such_checkpoint"),
        ("load", {"checkpoint": "latest"}, "no_such_checkpoint"),
        ("load", {"checkpoint": "../../x"}, "bad_command"),
        ("configure", {"name": "lr", "value": "1", "inputs": {"path": "/x"}}, "bad_command"),
        ("capture", {"steps": 10_000}, "bad_command"),
        ("capture", {"steps": 1, "name": "x"}, "bad_command"),
        ("close", {}, "bad_command"),
        ("close", {"confirm": "yes"}, "bad_command"),
    ],
)
def test_su11_what_a_page_may_not_ask_is_refused_here(
    client: TestClient, room: Room, kind: str, given: dict[str, object], code: str
) -> None:
    answer = client.post(f"{home(room.desk.directory)}/{kind}", json=body(**given))
    assert (answer.status_code, code_of(answer)) == (400, code)
    assert room.asked == []


@pytest.mark.parametrize("kind", ["rebuild", "inputs", "chaos", "withdrawals"])
def test_su11_other_verbs_have_no_route(client: TestClient, room: Room, kind: str) -> None:
    answer = client.post(f"{home(room.desk.directory)}/{kind}", json=body())
    assert (answer.status_code, room.asked) == (404, [])


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"Origin": "http://evil.example"}, 403, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
        ({"Authorization": ""}, 403, "no_token"),
        ({"Authorization": "Bearer x"}, 403, "wrong_token"),
        ({"Content-Type": "text/plain"}, 415, "not_json"),
        ({"Host": "evil.example"}, 400, "foreign_host"),
    ],
)
def test_su11_a_command_from_elsewhere_changes_nothing(
    client: TestClient, room: Room, changed: dict[str, str], status: int, code: str
) -> None:
    answer = client.post(f"{home(room.desk.directory)}/run", json=body(steps=5), headers=changed)
    assert (answer.status_code, code_of(answer), room.asked) == (status, code, [])


def test_su11_a_body_is_bounded_and_has_to_be_a_document(client: TestClient, room: Room) -> None:
    address = f"{home(room.desk.directory)}/configure"
    large = client.post(address, json=body(name="lr", value="x" * 70_000))
    assert (large.status_code, code_of(large)) == (413, "body_too_large")
    for data in (b"{", b"[]", b"[" * 50_000, b""):
        answer = client.post(address, content=data, headers={"Content-Type": "application/json"})
        assert (answer.status_code, code_of(answer)) == (400, "bad_command")
    assert room.asked == []


def test_se7_one_press_is_one_command_and_its_result_is_asked_for_by_its_id(client: TestClient, room: Room) -> None:
    room.result = Result.REFUSED
    address = home(room.desk.directory)
    told, again = (client.post(f"{address}/stop", json=body("twice")).json() for _ in range(2))
    assert told["reply"]["result"] == "refused"
    assert told == again
    assert len(room.asked) == 1
    assert client.get(f"{address}/twice").json() == told
    assert client.get(f"{address}/another").status_code == 404
    taken = client.post(f"{address}/run", json=body("twice", steps=5))
    assert (taken.status_code, code_of(taken)) == (409, "command_id_taken")


def test_se7_a_command_that_takes_longer_is_answered_before_it_has_a_result(
    client: TestClient, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paritrace.web.session_commands.WAIT_SECONDS", 0.01)
    address = home(room.desk.directory)
    answer = client.post(f"{address}/stop", json=body("silent"))  # to which the room gives no result
    assert (answer.status_code, answer.json()) == (202, {"command_id": "silent"})
    assert client.get(f"{address}/silent").status_code == 202


def test_su11_without_the_permission_there_are_no_such_routes(room: Room, served: Served) -> None:
    plain = served(room.desk.directory)
    headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    for kind in ("run", "stop", "close"):
        answer = plain.post(f"{home(room.desk.directory)}/{kind}", json=body(steps=5), headers=headers)
        assert (answer.status_code, code_of(answer), answer.headers["allow"]) == (405, "wrong_method", "GET")
        assert plain.get(f"{home(room.desk.directory)}/{kind}").status_code == 404
    assert not any("commands" in path for path in plain.get("/api/openapi.json").json()["paths"])
    page = plain.get(f"/session/{key_of(room.desk.directory)}/").text
    assert "--allow-control" in page
    assert "<form" not in page
    assert "session_control.js" not in page
    assert room.asked == []


def test_su10_the_page_offers_the_verbs_and_the_documents_describe_them(client: TestClient, room: Room) -> None:
    page = client.get(f"/session/{key_of(room.desk.directory)}/").text
    for kind in ("run", "stop", "save", "load", "configure", "preview", "capture", "close"):
        assert f'data-kind="{kind}"' in page
    assert '<option value="checkpoints/here">' in page
    assert "checkpoints/broken, " not in page
    assert "the-token" not in page
    assert "disabled" not in page
    paths = client.get("/api/openapi.json").json()["paths"]
    assert "post" in paths["/api/sessions/{key}/commands/run"]


def test_su10_controls_of_a_session_that_is_over_are_shown_with_the_reason(tmp_path: Path) -> None:
    session = write_session(tmp_path / "session")
    over = controlling(tmp_path)
    page = over.get(f"/session/{key_of(session)}/").text
    assert "No commands are taken: process" in page
    assert " disabled " in page
    answer = over.post(f"{home(session)}/stop", json=body())
    assert (answer.status_code, code_of(answer)) == (409, "coordinator_gone")


def test_su11_the_token_of_a_session_is_shown_to_nobody_but_its_coordinator(tmp_path: Path) -> None:
    """Whoever has the port of a coordinator that has ended is not asked."""
    session = write_session(tmp_path / "session", port=9)
    (session / SESSION_TOKEN).write_text("the-token")
    assert code_of(controlling(tmp_path).post(f"{home(session)}/stop", json=body())) == "coordinator_gone"
    silent = write_session(tmp_path / "silent", owner=own_identity(), port=9)
    (silent / SESSION_TOKEN).write_text("the-token")
    assert code_of(controlling(tmp_path).post(f"{home(silent)}/stop", json=body())) == "coordinator_silent"
