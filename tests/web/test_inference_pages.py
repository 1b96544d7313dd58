"""Inference evidence in the web view: the run's pages, the API, and the lines behind each number (SU-10, P9)."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL
from paritrace.inference.appending import append, init
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.link_report import link_artifact
from paritrace.inference.records import Observation, Request, Stage
from paritrace.reports.formats import Cut
from paritrace.reports.inference.trace_file import write_trace_file
from paritrace.reports.shelf import key_of, shelf_of
from paritrace.reports.traces.verifying import read_back
from paritrace.web import timelines
from tests.inference.evidence import ENGINE, RUN, SESSION, Adapter, claim, context, iteration, kernel, member
from tests.web.conftest import Served
from tests.web.shelves import MARKUP, write_run

LINK = re.compile(r'href="(/r/[^"]+)"')


def request(name: str, **more: Any) -> Request:
    given: dict[str, Any] = {"start_ns": 0, "end_ns": 5_000_000, "status": "finished", "output_tokens": 2} | more
    held = given.pop("context", ENGINE)
    return Request(context=held, event_id=f"r:{name}", request_ref=Ref("client", name), **given)


def evidence() -> list[Observation]:
    """Two requests that share an iteration, one that nobody says the iterations of, linked and unlinked work."""
    stage = Stage(
        context=ENGINE,
        event_id="s:1",
        stage_ref=Ref("client", "s1"),
        name="prefill",
        request_ref=Ref("client", "first"),
        start_ns=0,
        end_ns=1_000_000,
    )
    return [
        request("first"),
        request("second"),
        request("alone", context=context(producer_id="proxy", source="a proxy", clock_domain="another")),
        stage,
        iteration("i1", 0, 2_000_000),
        iteration("i2", 2_000_000, 5_000_000),
        member("i1", "first", tokens=7),
        member("i1", "second"),
        member("i2", "first"),
        claim("k1", "i1", start_ns=0, end_ns=900_000),
        kernel("k2", 1_000_000, 1_500_000),
    ]


def write_inference(place: Path, events: list[Observation]) -> Path:
    init(place, run_id=RUN, session=SessionFacts(session_id=SESSION))
    append(place, run_id=RUN, session=SESSION, engine_adapter=Adapter(events))
    return place


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_inference(tmp_path / "all" / "run", evidence())


@pytest.fixture
def client(run: Path, served: Served) -> TestClient:
    return served(run.parent)


@pytest.fixture
def home(run: Path) -> str:
    return f"/r/{key_of(run)}/inference"


def test_su10_a_run_of_inference_alone_is_on_the_first_page_and_its_page_leads_to_the_evidence(
    run: Path, client: TestClient, home: str
) -> None:
    shelf = shelf_of(run.parent)
    assert ([one.line.path for one in shelf.runs], shelf.troubles) == ([str(run)], ())
    assert f"/r/{key_of(run)}/" in client.get("/").text
    page = client.get(f"/r/{key_of(run)}/")
    assert (page.status_code, home in page.text) == (200, True)


def test_in19_the_timeline_of_inference_alone_draws_its_evidence_and_is_cut_as_others_are(
    run: Path, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = write_trace_file(run, tmp_path / "show.pftrace", cut=Cut(), files=LOCAL)
    trace = client.get(f"/r/{key_of(run)}/trace.pftrace")
    assert (trace.status_code, trace.content) == (200, (tmp_path / "show.pftrace").read_bytes())
    assert drawn.slices > 5
    monkeypatch.setattr(timelines, "MOST_CALLS", 3)
    (tmp_path / "cut.pftrace").write_bytes(client.get(f"/r/{key_of(run)}/trace.pftrace").content)
    parts = read_back(tmp_path / "cut.pftrace", files=LOCAL)
    assert sum(part.left_out.get("beyond_max_events", 0) for part in parts) > 0


def test_su10_a_run_without_inference_evidence_offers_none(tmp_path: Path, served: Served) -> None:
    run = write_run(tmp_path / "run")
    client = served(tmp_path)
    assert "/inference" not in client.get(f"/r/{key_of(run)}/").text
    for place in (f"/r/{key_of(run)}/inference", f"/api/runs/{key_of(run)}/inference", "/r/none/inference"):
        assert client.get(place).status_code == 404


def test_su10_the_page_says_what_infer_says(client: TestClient, home: str) -> None:
    page = client.get(home)
    assert page.status_code == 200
    told = client.get(f"/api{home.replace('/r/', '/runs/')}").json()
    assert told["show"]["events"]["request"] == 3
    assert told["links"]["gpu"]["by_reason"] == {"no_key": 1}
    assert told["account"]["devices"][0]["busy_ns"] == 1_400_000
    for said in ("3 requests, 2 iterations, 2 activities", "1.400 ms", "no_key", "exact_id", "unavailable"):
        assert said in page.text


def test_in7_links_are_counted_whether_or_not_they_were_kept(run: Path, client: TestClient, home: str) -> None:
    before = client.get(f"/api{home.replace('/r/', '/runs/')}").json()
    written = (run / "inference.jsonl").read_bytes()
    assert client.get(home).status_code == 200
    assert (run / "inference.jsonl").read_bytes() == written
    link_artifact(run)
    after = client.get(f"/api{home.replace('/r/', '/runs/')}").json()
    assert after["links"] == before["links"]
    assert after["show"]["events"]["link"] == 2, "the summary of an artifact that changed is read again"


def test_p9_every_link_of_the_page_leads_to_as_many_lines_as_its_number_says(client: TestClient, home: str) -> None:
    page = client.get(home).text
    counted = re.findall(rf'href="({home}/events[^"]*)">([\d,]+)<', page)
    assert len(counted) > 8
    for place, number in counted:
        shown = client.get(unescape(place))
        assert shown.status_code == 200, place
        assert f"<h1>{number} line" in shown.text, place
    assert all(client.get(unescape(place)).status_code == 200 for place in LINK.findall(page))


def test_su10_a_request_shows_its_parties_stages_iterations_and_what_is_not_known(
    client: TestClient, home: str
) -> None:
    shown = client.get(f"{home}/request/first").text
    assert "served in 2 iterations" in shown
    assert shown.count('class="lane iteration"') == 2
    assert shown.count('class="lane stage"') == shown.count('class="lane party"') == 1
    assert "Device work: it is known of 1 of 2 iterations." in shown
    assert "1 of them were shared with other requests" in shown
    assert all(client.get(unescape(place)).status_code == 200 for place in LINK.findall(shown))
    lines = client.get(f"/api{home.replace('/r/', '/runs/')}/events", params={"producer": "engine", "iteration": "i1"})
    assert {one["event_id"] for one in lines.json()["lines"]} == {"i:i1", "m:i1:first", "m:i1:second", "k:k1"}
    alone = client.get(f"{home}/request/alone").text
    assert "the iterations that served it are unknown (membership unknown)" in alone
    assert "measured by another clock" not in alone
    assert client.get(f"{home}/request/nobody").status_code == 404


def test_su10_requests_are_paged_and_say_what_was_left_out(tmp_path: Path, served: Served) -> None:
    run = write_inference(tmp_path / "run", [request(f"q{number}") for number in range(501)])
    client, home = served(tmp_path), f"/r/{key_of(run)}/inference"
    first, second = client.get(home).text, client.get(f"{home}?offset=500").text
    assert (first.count("/request/q"), second.count("/request/q")) == (500, 1)
    assert "showing 1 to 500 of 501 requests" in first
    assert "showing 501 to 501 of 501 requests" in second
    assert client.get(f"{home}?offset=-1").status_code == 400


@pytest.mark.parametrize("name", [MARKUP, "..", "a/../b?c#d", "\u202egnp", "x" * 3000, "&id=first"])
def test_su12_a_hostile_name_is_text_and_its_page_is_found(tmp_path: Path, served: Served, name: str) -> None:
    held = context(source=MARKUP, engine=MARKUP)
    run = write_inference(tmp_path / "run", [request(name, context=held, status=MARKUP), request("first")])
    client, home = served(tmp_path), f"/r/{key_of(run)}/inference"
    page = client.get(home)
    assert page.status_code == 200
    for place in LINK.findall(page.text):
        shown = client.get(unescape(place))
        assert shown.status_code == 200, place
        assert "<img src=x" not in shown.text
        assert "\u202e" not in shown.text
    asked = client.get(f"/api{home.replace('/r/', '/runs/')}/request", params={"id": name}).json()
    assert [one["request"]["id"] for one in asked["requests"]] == [name]


def test_su12_a_broken_artifact_is_an_error_page_that_says_how_to_mend_it(
    run: Path, client: TestClient, home: str
) -> None:
    assert client.get(home).status_code == 200
    with (run / "inference.jsonl").open("ab") as artifact:
        artifact.write(b'{"type":"request"}\n')
    for place in (home, f"{home}/request/first", f"{home}/events"):
        page = client.get(place)
        assert page.status_code == 409
        assert "paritrace infer recover" in unescape(page.text)
    assert client.get(f"/r/{key_of(run)}/").status_code == 200


def test_su10_the_routes_are_documented(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    for place in ("", "/requests", "/request", "/events"):
        answer = document["paths"][f"/api/runs/{{key}}/inference{place}"]["get"]["responses"]["200"]
        name = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert name in document["components"]["schemas"]
