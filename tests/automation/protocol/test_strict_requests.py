"""Every rule of every field of every request, broken one after the other and all at once (AU-1, AU-16, AU-22)."""

import json
from pathlib import Path
from typing import Any

import pytest

from paritrace.automation.protocol.records import Action
from paritrace.automation.protocol.requests import BadRequestError, read_request
from paritrace.automation.protocol.serving import serve, status_of
from paritrace.automation.protocol.table import ACTIONS, load_action
from tests.automation.protocol.broken_requests import NOTHING, Broken, Schemas, with_put

TAKING = [action for action in map(load_action, ACTIONS) if action.request is not None]
BROKEN = [
    pytest.param(action, broken, id=f"{action.name} {broken.name or 'whole'}")
    for action in TAKING
    for broken in Schemas(action).broken(Schemas(action).root)
]


def valid(action: Action) -> Any:
    schemas = Schemas(action)
    return schemas.valid(schemas.root)


def problems_of(request: object, action: Action) -> list[str]:
    with pytest.raises(BadRequestError) as caught:
        read_request(json.dumps(request).encode(), action)
    return [problem.at for problem in caught.value.problems]


@pytest.mark.parametrize("action", TAKING, ids=lambda action: action.name)
def test_au1_the_request_that_the_others_are_made_of_is_taken(action: Action) -> None:
    assert isinstance(read_request(json.dumps(valid(action)).encode(), action), action.request or object)


@pytest.mark.parametrize(("action", "broken"), BROKEN)
def test_au1_what_is_wrong_is_named_by_its_place_and_nothing_is_written(
    action: Action, broken: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("request.json").write_text(json.dumps(with_put(valid(action), Schemas(action), broken.put)))
    document: Any = serve(action, Path("request.json"))
    assert (document["ok"], status_of(document), document["error"]["kind"]) == (False, 2, "refused")
    assert [problem["at"] for problem in document["error"]["problems"]] == [broken.at]
    assert [path.name for path in tmp_path.iterdir()] == ["request.json"]


@pytest.mark.parametrize("action", TAKING, ids=lambda action: action.name)
def test_au1_everything_wrong_at_once_is_listed_at_once_and_nothing_is_written(
    action: Action, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = Schemas(action)
    fields = [one for one in schemas.broken(schemas.root) if len(one.put[0]) == 1 and one.put[1] is not NOTHING]
    request, wanted = valid(action), set[str]()
    for broken in fields:
        if broken.name.endswith("another type") or broken.at == "/unknown":
            request = with_put(request, schemas, broken.put)
    wanted = {f"/{name}" for name in schemas.followed(schemas.root)["properties"]} | {"/unknown"}
    assert {f"/{at.split('/')[1]}" for at in problems_of(request, action)} == wanted
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_text(json.dumps(request))
    document = serve(action, Path("request.json"))
    error: Any = document["error"]
    assert (document["ok"], status_of(document)) == (False, 2)
    assert (error["type"], error["code"], error["kind"]) == ("RequestError", "bad_request", "refused")
    assert [path.name for path in tmp_path.iterdir()] == ["request.json"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"run"',
        b"\xff\xfe{}",
        b'{"protocol_version": NaN, "run": "x"}',
        b'{"protocol_version": 1, "run": "x", "run": "y"}',
        b'{"protocol_version": 1, "run": "\\ud800"}',
        b'{"protocol_version": 1, "run": ' + b"[" * 100_000,
        b'{"protocol_version": 1' + b"0" * 10_000 + b', "run": "x"}',
    ],
    ids=lambda text: text[:40].decode("latin-1"),
)
def test_au1_what_is_no_request_at_all_is_refused(text: bytes) -> None:
    with pytest.raises(BadRequestError):
        read_request(text, load_action("check"))


@pytest.mark.parametrize("version", [0, 2, "1", 1.5, True, None, [1]])
def test_au1_another_version_is_refused(version: object) -> None:
    assert problems_of({"protocol_version": version, "run": "x"}, load_action("check")) == ["/protocol_version"]


def test_au22_no_message_holds_a_value(tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    for action in TAKING:
        schemas = Schemas(action)
        for name in schemas.followed(schemas.root)["properties"]:
            request = {"protocol_version": secret, name: {"K": [secret]}}
            (tmp_path / "r.json").write_text(json.dumps(request))
            assert secret not in json.dumps(serve(action, tmp_path / "r.json"))


def test_au13_a_name_of_any_length_is_shown_in_bounded_length(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"protocol_version": 1, "run": "x", "n\x1b[2J" + "y" * 10**6: 1}))
    assert len(json.dumps(serve(load_action("check"), tmp_path / "r.json"))) < 2000


def test_au13_problems_without_number_are_listed_in_bounded_length(tmp_path: Path) -> None:
    wrong = {f"k{number}": 1 for number in range(3000)}
    (tmp_path / "r.json").write_text(json.dumps({"protocol_version": 1, "run": "x"} | wrong))
    error: Any = serve(load_action("check"), tmp_path / "r.json")["error"]
    assert (len(error["problems"]), error["num_problems"]) == (1000, 3000)


def test_au1_a_name_that_stands_twice_is_found_in_an_object_of_any_length() -> None:
    many = ",".join(f'"k{number}": 1' for number in range(200_000))
    with pytest.raises(BadRequestError) as caught:
        read_request(f'{{{many}, "k7": 2}}'.encode(), load_action("check"))
    assert [problem.message for problem in caught.value.problems] == ["the name k7 stands twice in one object"]
