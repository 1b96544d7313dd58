"""Attempts in the web view: a manifest on the first page, its comparison, and each figure to its lines (SU-10, P9)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.attempts.api import figures, load
from paritrace.cli.entry import status_of
from paritrace.reports.shelf import key_of, shelf_of
from tests.web.conftest import Served
from tests.web.shelves import MARKUP

DATA = Path(__file__).parents[1] / "data" / "attempts"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest of two configurations, in a folder where it has the name of a kept result's own manifest."""
    made = tmp_path / "all" / "manifest.json"
    made.parent.mkdir()
    sources = [str(DATA / "inspect" / name) for name in ("inspect-a-errors.eval", "inspect-b-errors.json")]
    assert status_of(["attempts", "import", "inspect", *sources, "-o", str(made)]) == 0
    return made


@pytest.fixture
def client(manifest: Path, served: Served) -> TestClient:
    return served(manifest.parent)


@pytest.fixture
def home(manifest: Path) -> str:
    return f"/a/{key_of(manifest)}/"


def test_su10_attempts_stand_on_the_first_page_and_are_no_broken_result(
    manifest: Path, client: TestClient, home: str
) -> None:
    shelf = shelf_of(manifest.parent)
    assert [one.path for one in shelf.manifests] == [str(manifest)]
    assert (shelf.troubles, shelf.comparisons) == ((), ())
    assert home in client.get("/").text
    assert [one.path for one in shelf_of(manifest).manifests] == [str(manifest)]


def test_su10_the_page_says_what_attempts_compare_says(manifest: Path, client: TestClient, home: str) -> None:
    page = client.get(home)
    assert page.status_code == 200
    for said in ("undetermined", "[-0.222, +0.167]", "the sign flips if 1 of the 4 missing attempts"):
        assert said in page.text
    told = client.get(f"/api/attempts/{key_of(manifest)}").json()
    assert told["comparison"]["pairs"][0]["claim"] == "undetermined"
    assert tuple(told["figures"]) == figures(load(manifest))


def test_p9_each_figure_leads_to_its_attempts_and_their_files(manifest: Path, client: TestClient, home: str) -> None:
    told = client.get(f"/api/attempts/{key_of(manifest)}").json()
    page = client.get(home).text
    for figure in told["figures"]:
        assert f"{home}f/{figure}" in page
        shown = client.get(f"{home}f/{figure}")
        found = client.get(f"/api/attempts/{key_of(manifest)}/explained", params={"figure": figure}).json()
        assert shown.status_code == 200
        assert all(place["path"] in shown.text for one in found["evidence"] for place in one["places"])
    assert client.get(f"{home}f/nothing.of.this").status_code == 404


def test_su12_a_broken_manifest_is_an_error_page_and_a_hostile_one_is_text(
    manifest: Path, client: TestClient, home: str
) -> None:
    document = json.loads(manifest.read_text())
    old = document["configurations"][0]["id"]
    manifest.write_text(manifest.read_text().replace(json.dumps(old), json.dumps(MARKUP)))
    page = client.get(home)
    assert page.status_code == 200
    assert "<img src=x" not in page.text
    assert client.get(f"{home}f/{MARKUP}.attempts").status_code == 200
    manifest.write_text('{"attempts": [')
    assert client.get(home).status_code in (400, 409)


@pytest.mark.slow
def test_su1_what_weighs_attempts_alone_is_loaded_with_the_first_of_them() -> None:
    code = "import sys, paritrace.web.application; print([name for name in ('scipy', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
