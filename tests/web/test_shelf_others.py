"""Kept checks and stores in the web view: what they are, where they are broken, beside the runs (SU-10)."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.cli.entry import status_of
from paritrace.reports.shelf import key_of, shelf_of
from tests.runs.test_stored import Published
from tests.web.conftest import Served
from tests.web.shelves import MARKUP, write_run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a run, its check, and a store of another run of two ranks."""
    run = write_run(tmp_path / "all" / "run")
    assert status_of(["check", str(run), "-o", str(tmp_path / "all" / "checked")]) == 0
    published = Published(tmp_path)
    for one in published.places:
        published.syncer(one).final()
    (tmp_path / "all" / "stores").mkdir()
    published.store.rename(tmp_path / "all" / "stores" / "store")
    return tmp_path / "all"


@pytest.fixture
def client(place: Path, served: Served) -> TestClient:
    return served(place)


def test_su10_checks_and_stores_stand_on_the_first_page(place: Path, client: TestClient) -> None:
    shelf = shelf_of(place)
    assert [Path(one.path).name for one in shelf.checks] == ["check.json"]
    assert [Path(one.path).name for one in shelf.stores] == ["store"]
    assert [Path(one.line.path).name for one in shelf.runs] == ["run"]
    assert shelf.troubles == ()
    page = client.get("/").text
    assert "invariants fail" in page
    assert str(place / "stores" / "store") in page


def test_su10_a_kept_check_is_the_page_that_the_run_itself_gives(place: Path, client: TestClient) -> None:
    kept = client.get(f"/k/{key_of(place / 'checked' / 'check.json')}/")
    assert kept.status_code == 200
    document = json.loads((place / "checked" / "check.json").read_text())
    told = client.get(f"/api/checks/{key_of(place / 'checked' / 'check.json')}").json()
    assert told["counts"] == document["counts"]
    for invariant in document["invariants"]:
        assert invariant["id"] in kept.text


def test_su10_a_store_says_how_far_its_ranks_are_and_leads_to_its_run(place: Path, client: TestClient) -> None:
    key = key_of(place / "stores" / "store")
    page = client.get(f"/s/{key}/").text
    assert page.count("ended by a receipt") == 2
    told = client.get(f"/api/stores/{key}").json()
    assert [(rank["rank"], rank["bundles"]) for rank in told["ranks"]] == [(0, 1), (1, 1)]
    run = client.get(f"/r/{key}/")
    assert run.status_code == 200
    assert "run-of-two" in run.text


def test_su10_each_of_them_can_be_named_alone(place: Path) -> None:
    assert len(shelf_of(place / "checked" / "check.json").checks) == 1
    assert len(shelf_of(place / "stores" / "store").stores) == 1


def test_su12_a_broken_check_is_a_trouble_and_a_hostile_one_is_text(place: Path, client: TestClient) -> None:
    path = place / "checked" / "check.json"
    document = json.loads(path.read_text())
    document["run"]["run_id"] = document["invariants"][0]["name"] = MARKUP
    path.write_text(json.dumps(document))
    assert "<img src=x" not in client.get("/").text
    assert "<img src=x" not in client.get(f"/k/{key_of(path)}/").text
    path.write_text('{"format": "paritrace-check", "version": ')
    (trouble,) = shelf_of(place).troubles
    assert (Path(trouble.path), trouble.code) == (path, "damaged_result")
    assert client.get(f"/k/{key_of(path)}/").status_code == 409


def test_su10_a_store_or_check_that_goes_away_while_it_is_viewed_is_a_page_that_says_so(
    place: Path, client: TestClient
) -> None:
    client.get("/")
    (place / "checked" / "check.json").unlink()
    (place / "stores" / "store").rename(place / "moved")
    for address in (f"/k/{key_of(place / 'checked' / 'check.json')}/", f"/r/{key_of(place / 'stores' / 'store')}/"):
        answer = client.get(address)
        assert answer.status_code in (404, 409)
        assert "<h1>" in answer.text
