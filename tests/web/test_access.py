"""Who is let in: token, host, origin and method (SU-11)."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from paritrace.web.access import Request, Verdict, verdict
from paritrace.web.guard import HEADERS, cookie_name
from tests.web.conftest import ORIGIN, TOKEN, Served

PAGES = ("/", "/api/shelf", "/api/openapi.json", "/static/pages.css", "/nothing", "/favicon.ico")


def asked(**changed: object) -> Request:
    values: dict[str, object] = {"method": "GET", "path": "/", "headers": {}, "token": None, "cookie": TOKEN}
    found = values | changed
    found["headers"] = {"host": "127.0.0.1:8123"} | found["headers"]  # type: ignore[operator]
    return Request(**found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, Verdict.SERVED),
        ({"cookie": None}, Verdict.NO_TOKEN),
        ({"cookie": ""}, Verdict.NO_TOKEN),
        ({"cookie": "another"}, Verdict.WRONG_TOKEN),
        ({"cookie": "the-right-toke\u00f1"}, Verdict.WRONG_TOKEN),
        ({"cookie": None, "headers": {"authorization": f"Bearer {TOKEN}"}}, Verdict.SERVED),
        ({"cookie": None, "headers": {"authorization": "Bearer x"}}, Verdict.WRONG_TOKEN),
        ({"cookie": None, "headers": {"authorization": f"Basic {TOKEN}"}}, Verdict.NO_TOKEN),
        ({"token": TOKEN, "cookie": None}, Verdict.ENTERS),
        ({"token": "x"}, Verdict.WRONG_TOKEN),  # a right cookie does not excuse a wrong address
        ({"method": "POST"}, Verdict.NOT_READING),
        ({"method": "HEAD"}, Verdict.NOT_READING),
        ({"headers": {"origin": ORIGIN}}, Verdict.SERVED),
        ({"headers": {"origin": "http://127.0.0.1:9"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": {"origin": "null"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": {"sec-fetch-site": "same-origin"}}, Verdict.SERVED),
        ({"headers": {"sec-fetch-site": "cross-site"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}}, Verdict.FOREIGN_ORIGIN),
        (
            {"headers": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}},
            Verdict.SERVED,
        ),
        (
            {"headers": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}},
            Verdict.FOREIGN_ORIGIN,
        ),
    ],
)
def test_su11_the_rule_of_access(changed: dict[str, object], found: Verdict) -> None:
    assert verdict(asked(**changed), token=TOKEN, origin=ORIGIN) is found


@given(st.text(max_size=60).filter(lambda text: text != TOKEN))
def test_su11_no_other_token_opens(text: str) -> None:
    for changed in (
        {"token": text},
        {"cookie": text},
        {"cookie": None, "headers": {"authorization": f"Bearer {text}"}},
    ):
        assert verdict(asked(**changed), token=TOKEN, origin=ORIGIN) in (Verdict.WRONG_TOKEN, Verdict.NO_TOKEN)


@pytest.mark.parametrize("page", PAGES)
def test_su11_nothing_is_shown_without_the_token(client: TestClient, page: str) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
        answer = client.get(page, headers=headers)
        assert answer.status_code == 403, page
        assert "set-cookie" not in answer.headers
        assert "token" in answer.text


def test_su11_the_token_moves_from_the_address_into_a_cookie(client: TestClient) -> None:
    answer = client.get(f"/r/x/?token={TOKEN}&a=1", headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["location"]) == (303, "/r/x/?a=1")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f"{cookie_name(TOKEN)}={TOKEN};")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    entered = client.get("/", headers={"Authorization": "", "Cookie": f"{cookie_name(TOKEN)}={TOKEN}"})
    assert entered.status_code == 200
    assert TOKEN not in entered.text


@pytest.mark.parametrize("path", ["//evil.example/", "/%2F%2Fevil.example/", "/\\evil.example"])
def test_su11_entering_never_leads_elsewhere(client: TestClient, path: str) -> None:
    answer = client.get(f"{ORIGIN}{path}?token={TOKEN}", headers={"Authorization": ""})
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith(("//", "/\\"))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8123", "127.0.0.1.evil.example", "[::1]", "0.0.0.0"])
def test_su11_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code == 400
    assert "comparison" not in answer.text
    assert "[foreign_host]\n" in answer.text
    assert client.get("/api/shelf", headers={"Host": host}).json()["error"]["code"] == "foreign_host"
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_su11_only_get_is_answered(client: TestClient, method: str) -> None:
    for page in ("/", "/api/shelf"):
        answer = client.request(method, page)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


COMMAND = "/api/sessions/k/commands/run"
FROM_US = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "content-type": "application/json"}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, Verdict.SERVED),
        ({"headers": FROM_US | {"content-type": "application/json; charset=utf-8"}}, Verdict.SERVED),
        ({"headers": {name: FROM_US[name] for name in ("origin", "content-type")}}, Verdict.SERVED),  # a program
        ({"headers": FROM_US | {"origin": "http://127.0.0.1:9"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": FROM_US | {"origin": "http://localhost:8123"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": FROM_US | {"origin": "null"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": {"content-type": "application/json"}}, Verdict.FOREIGN_ORIGIN),  # none stated
        ({"headers": FROM_US | {"sec-fetch-site": "cross-site"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": FROM_US | {"sec-fetch-site": "same-site"}}, Verdict.FOREIGN_ORIGIN),
        ({"headers": FROM_US | {"host": "evil.example"}}, Verdict.FOREIGN_HOST),
        ({"headers": FROM_US | {"content-type": "text/plain"}}, Verdict.NOT_JSON),  # what a form can send
        ({"headers": FROM_US | {"content-type": "application/x-www-form-urlencoded"}}, Verdict.NOT_JSON),
        ({"cookie": None}, Verdict.NO_TOKEN),
        ({"cookie": "another"}, Verdict.WRONG_TOKEN),
        ({"cookie": None, "token": TOKEN}, Verdict.NO_TOKEN),  # an address is no place for it
        ({"path": "/api/sessions/k/commands/run/"}, Verdict.NOT_READING),
        ({"path": "/api/sessions/k"}, Verdict.NOT_READING),
        ({"path": "/"}, Verdict.NOT_READING),
        ({"method": "PUT"}, Verdict.NOT_READING),
        ({"method": "OPTIONS"}, Verdict.NOT_READING),  # no other page is ever told that it may
    ],
)
def test_su11_a_command_needs_token_own_origin_and_the_permission(changed: dict[str, object], found: Verdict) -> None:
    request = asked(**({"method": "POST", "path": COMMAND, "headers": FROM_US} | changed))
    assert verdict(request, token=TOKEN, origin=ORIGIN, allow_control=True) is found
    without = verdict(request, token=TOKEN, origin=ORIGIN)
    assert without is (Verdict.FOREIGN_HOST if found is Verdict.FOREIGN_HOST else Verdict.NOT_READING)


def test_su11_every_answer_tells_the_browser_to_be_strict(client: TestClient, home: str) -> None:
    for page in (*PAGES, home, f"{home}nothing"):
        for headers in ({}, {"Authorization": ""}):
            answer = client.get(page, headers=headers)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert "access-control-allow-origin" not in answer.headers
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_su11_two_servers_share_no_cookie() -> None:
    assert cookie_name("a") != cookie_name("b")


def test_su11_a_websocket_is_closed(pair: Path, served: Served) -> None:
    with pytest.raises(Exception, match=r".*"), served(pair).websocket_connect("/"):
        pass
