"""Pages and JSON API over a small comparison: what they say, what they link to, what they refuse (SU-10, SU-12, P9)."""

import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from fastapi.testclient import TestClient

from paritrace.compare.result import Comparison
from paritrace.reports.keeping import MANIFEST, NAMES
from paritrace.reports.shelf import key_of, shelf_of
from tests.web.conftest import Served
from tests.web.shelves import MARKUP, ODD, keep_comparison, write_pair, write_run

LINK = re.compile(r'(?:href|src)="([^"]*)"')
OF_EACH_KIND = 2
CALLS = 15  # three calls of three steps, and of two


def data(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def api(home: str) -> str:
    return f"/api/comparisons/{home.split('/')[2]}"


def test_su10_every_link_of_every_page_leads_somewhere(client: TestClient) -> None:
    waiting, seen, kinds = ["/"], set[str](), Counter[str]()
    while waiting:
        place = waiting.pop()
        kind = re.sub(r"[0-9a-f]{12}|[0-9]+", "N", place.partition("?")[0])
        if place in seen or kinds[kind] >= OF_EACH_KIND:
            continue
        seen.add(place)
        kinds[kind] += 1
        answer = client.get(place)
        assert answer.status_code == 200, (place, answer.text[:2000])
        if "html" not in answer.headers["content-type"]:
            continue
        for href in map(unescape, LINK.findall(answer.text)):
            assert href.startswith(("/", "#", "?")), f"{place} leads away: {href}"
            target = href.partition("#")[0]
            if target.startswith("/"):
                waiting.append(target)
            elif target:
                waiting.append(place.partition("?")[0] + target)
    assert {"/", "/c/N/", "/c/N/calls", "/c/N/undetermined", "/c/N/source", "/r/N/"} <= set(kinds)
    assert {"/r/N/check", "/r/N/verify"} <= set(kinds)
    assert {"/c/N/f/FN", "/c/N/call/baseline/N/N", "/c/N/call/candidate/N/N"} <= set(kinds)


def test_su10_the_shelf_lists_runs_and_comparisons(client: TestClient, pair: Path) -> None:
    found = data(client, "/api/shelf")
    assert len(found["runs"]) == 2
    assert [one["path"] for one in found["comparisons"]] == [str(pair)]
    assert found["comparisons"][0]["calls"] == CALLS
    assert found["troubles"] == []


def test_su10_the_api_gives_the_document_itself(client: TestClient, home: str, pair: Path) -> None:
    document = (pair / NAMES["json"]).read_bytes()
    answer = client.get(api(home))
    assert answer.content == document
    assert msgspec.json.decode(answer.content, type=Comparison).counts.calls_baseline == 9


def test_su10_the_table_is_paged_filtered_and_sorted(client: TestClient, home: str) -> None:
    first = data(client, f"{api(home)}/calls?limit=4")
    assert (first["total"], first["all_rows"], len(first["rows"])) == (CALLS, CALLS, 4)
    assert [row["n"] for row in data(client, f"{api(home)}/calls?offset=13&limit=4")["rows"]] == [13, 14]
    bent = data(client, f"{api(home)}/calls?text=BEND&side=candidate")
    assert [row["function"] for row in bent["rows"]] == ["bend", "bend"]
    downwards = data(client, f"{api(home)}/calls?sort=function&descending=1&limit=500")["rows"]
    assert [row["function"] for row in downwards] == ["scale"] * 5 + ["fold"] * 5 + ["bend"] * 5
    numbers = [row["n"] for row in downwards[:5]]
    assert numbers == sorted(numbers)
    steps = data(client, f"{api(home)}/calls?sort=step&limit=500")["rows"]
    assert [row["step"] for row in steps] == sorted(row["step"] for row in steps)
    undetermined = data(client, f"{api(home)}/calls?correspondence=undetermined")
    assert undetermined["total"] == sum(row["status"] == "unaligned" for row in steps)


def test_su10_facets_count_every_row_once(client: TestClient, home: str) -> None:
    counts = data(client, f"{api(home)}/facets")["counts"]
    assert counts["side"] == {"baseline": 9, "candidate": 6}
    assert sum(counts["status"].values()) == CALLS


def test_p9_a_call_is_followed_to_its_journal_line(client: TestClient, home: str, pair: Path) -> None:
    row = data(client, f"{api(home)}/calls?text=bend&side=baseline&limit=1")["rows"][0]
    found = data(client, f"{api(home)}/calls/baseline/0/{row['record_id']}")
    ours, theirs = found["sides"]
    assert (ours["side"], theirs["side"], theirs["row"]["record_id"]) == ("baseline", "candidate", row["partner"])
    for side in (ours, theirs):
        line = Path(side["record"]["journal"]).read_bytes().split(b"\n")[side["record"]["journal_line"] - 1]
        assert line.startswith(f'["c",{side["row"]["record_id"]},'.encode())
    output = next(slot for slot in found["slots"] if slot["direction"] == "output")
    assert output["agreement"] == "different"
    assert output["baseline"]["bits"] != output["candidate"]["bits"]
    assert found["findings"][0]["id"] == "F1"
    page = client.get(f"{home}call/baseline/0/{row['record_id']}").text
    assert output["baseline"]["bits"] in page
    assert ours["record"]["journal"] in unescape(page)


def test_p9_an_anchor_is_the_one_that_explain_takes(client: TestClient, home: str, pair: Path, served: Served) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.documents import encoded
    from paritrace.reports.explanation import explain
    from paritrace.reports.kept_result import open_result

    for identity in ("F1", "ladder", "counts.paired", "not_seen", "baseline:0"):
        expected = encoded(explain(open_result(pair, files=LOCAL), identity, files=LOCAL))
        assert client.get(f"{api(home)}/evidence/{identity}").content == expected
        assert client.get(f"{home}f/{identity}").status_code == 200
    assert client.get(f"{home}f/F99").status_code == 404
    assert client.get("/f/F1").headers["location"] == f"{home}f/F1"


def test_p9_a_count_leads_to_as_many_rows(client: TestClient, home: str) -> None:
    counts = data(client, api(home))["counts"]
    for name, number in counts.items():
        page = unescape(client.get(f"{home}f/counts.{name}").text)
        table = next(href for href in LINK.findall(page) if "/calls?" in href)
        assert data(client, table.replace(home, f"{api(home)}/"))["total"] == number, name


def test_su10_both_sources_stand_side_by_side(client: TestClient, home: str) -> None:
    found = data(client, f"{api(home)}/source?side=candidate&file=<main>&line=6")
    rows = {row["baseline"]: row for row in found["rows"]}
    assert [text["why"] for text in found["texts"]] == ["", ""]
    assert (rows[1]["baseline_text"], rows[1]["candidate_text"]) == ("import torch", "import torch  # another")
    assert [number for number, row in rows.items() if row["changed"]] == [1]
    assert sum(rows[6]["baseline_calls"].values()) == 3
    assert sum(rows[6]["candidate_calls"].values()) == 2
    assert rows[4]["baseline_calls"] == {}
    nothing = data(client, f"{api(home)}/source?side=candidate&file=nowhere.py")
    assert [text["why"] for text in nothing["texts"]] == ["the run keeps no source of this file"] * 2


def test_su10_a_run_is_shown_and_verified(client: TestClient) -> None:
    key = data(client, "/api/shelf")["runs"][0]["key"]
    assert data(client, f"/api/runs/{key}")["sessions"][0]["steps"] in ([0, 1], [0, 1, 2])
    assert data(client, f"/api/runs/{key}/verification")["verdict"] == "intact"
    assert "Everything is as it was written" in client.get(f"/r/{key}/verify").text


def test_cp25_a_run_is_held_against_itself(client: TestClient) -> None:
    key = data(client, "/api/shelf")["runs"][0]["key"]
    found = data(client, f"/api/runs/{key}/check")
    assert found["format"] == "paritrace-check"
    text = unescape(client.get(f"/r/{key}/check").text)
    assert "Check of one run" in text
    for invariant in {one["id"] for one in found["invariants"] if one["status"] == "fail"}:
        assert invariant in text


def test_su10_the_api_describes_itself(client: TestClient) -> None:
    found = data(client, "/api/openapi.json")
    assert set(found["paths"]) >= {"/api/shelf", "/api/comparisons/{key}/calls", "/api/runs/{key}/verification"}
    assert all(set(methods) == {"get"} for methods in found["paths"].values())
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', msgspec.json.encode(found).decode()))
    assert references <= set(found["components"]["schemas"])


@pytest.mark.parametrize(
    "path",
    [
        "{home}calls?status=odd",
        "{home}calls?offset=-1",
        "{home}calls?offset=x",
        "{api}/calls?limit=100000",
        "{api}/calls?limit=0",
        "{home}call/elsewhere/0/1",
        "{home}call/baseline/0/99999999999999999999999",
        "{home}call/baseline/-1/1",
        "{home}source?side=odd&file=x",
        "{home}source?side=baseline",
    ],
)
def test_su11_what_cannot_be_asked_is_said(client: TestClient, home: str, path: str) -> None:
    answer = client.get(path.format(home=home, api=api(home)))
    assert answer.status_code == 400
    assert "bad_filter" in answer.text


TRAVERSAL = (
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e",
    "/etc/passwd",
    "\x00",
    "%00",
    "con",
    "a" * 3000,
)


@pytest.mark.parametrize("name", TRAVERSAL)
def test_su11_no_address_reads_a_path(client: TestClient, home: str, name: str) -> None:
    part = quote(name, safe="%/")
    for path in (f"/static/{part}", f"/r/{part}/", f"/c/{part}/", f"{home}f/{part}", f"/api/runs/{part}"):
        answer = client.get(path)
        assert answer.status_code in (400, 404), path
        assert "root:" not in answer.text
    for path in (
        f"{home}source?side=baseline&file={quote(name, safe='')}",
        f"{home}calls?file={quote(name[:100], safe='')}",
    ):
        answer = client.get(path)
        assert answer.status_code in (200, 400)
        assert "root:" not in answer.text


def test_su12_hostile_names_are_text(tmp_path: Path, served: Served) -> None:
    kept = write_pair(tmp_path, names=(MARKUP, ODD, "fold"))
    client, home = served(tmp_path), f"/c/{key_of(kept)}/"
    rows = data(client, f"{api(home)}/calls")["rows"]
    places = [
        "/",
        home,
        f"{home}calls",
        f"{home}undetermined",
        f"{home}f/F1",
        f"{home}source?side=baseline&file=%3Cmain%3E",
    ]
    places += [f"{home}call/{row['side']}/{row['rank']}/{row['record_id']}" for row in rows[:4]]
    for place in places:
        text = client.get(place).text
        assert "<img src=x" not in text, place
        assert "<script>document" not in text, place
        assert "\u202e" not in text, place
        assert "\x1b" not in text, place
        assert len(text) < 2_000_000


def test_su10_a_document_alone_says_how_to_get_its_calls(tmp_path: Path, pair: Path, served: Served) -> None:
    bare = tmp_path / "result.json"
    shutil.copy(pair / NAMES["json"], bare)
    client, home = served(bare), f"/c/{key_of(bare)}/"
    assert data(client, "/api/shelf")["comparisons"][0]["bare"]
    assert "a document alone, without its table of calls" in client.get(home).text
    answer = client.get(f"{home}calls")
    assert (answer.status_code, "no_calls_table" in answer.text) == (404, True)
    assert "compare BASE CAND -o FOLDER" in unescape(answer.text)
    assert client.get(f"{home}f/F1").status_code == 200
    assert "bend(y)" in client.get(f"{home}source?side=baseline&file=%3Cmain%3E").text


def test_su10_a_result_kept_without_its_table_says_so(tmp_path: Path, served: Served) -> None:
    a, b = write_run(tmp_path / "A"), write_run(tmp_path / "B", factor=1.5)
    home = f"/c/{key_of(keep_comparison(a, b, formats=('json',)))}/"
    assert "kept without its table of calls" in served(tmp_path).get(home).text


@pytest.mark.parametrize("damage", ["missing", "torn", "other", "empty"])
def test_su10_a_table_that_changes_under_the_page_is_an_error_page(
    tmp_path: Path, pair: Path, served: Served, damage: str
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(pair, kept)
    client, home = served(kept), f"/c/{key_of(kept)}/"
    assert client.get(f"{home}calls").status_code == 200
    table = kept / NAMES["parquet"]
    content = table.read_bytes()
    table.unlink()
    if damage != "missing":
        table.write_bytes({"torn": content[:-40], "other": content[:-8] + b"PAR1PAR1", "empty": b""}[damage])
    for path in (f"{home}calls", f"{api(home)}/calls", f"{api(home)}/facets", f"{home}call/baseline/0/0"):
        answer = client.get(path)
        assert answer.status_code == 409, path
        assert "damaged_result" in answer.text
    table.write_bytes(content)
    assert client.get(f"{home}calls").status_code == 200


def test_su10_what_is_damaged_is_listed_with_its_error(tmp_path: Path, pair: Path, served: Served) -> None:
    shutil.copytree(pair, tmp_path / "good")
    for name, spoil in (("no_json", NAMES["json"]), ("bad_manifest", MANIFEST)):
        shutil.copytree(pair, tmp_path / name)
        (tmp_path / name / spoil).write_bytes(b"{}" if spoil == MANIFEST else b"")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_bytes(b"not json")
    shelf = shelf_of(tmp_path)
    assert [Path(one.path).name for one in shelf.comparisons] == ["good"]
    assert sorted(Path(one.path).name for one in shelf.troubles) == ["bad_manifest", "no_json", "run"]
    assert all(one.message for one in shelf.troubles)
    client = served(tmp_path)
    page = client.get("/").text
    assert "Cannot be read" in page
    assert "damaged_result" in page
    assert client.get(f"/c/{key_of(tmp_path / 'no_json')}/").status_code == 409


def test_su10_an_empty_folder_is_an_empty_page(tmp_path: Path, served: Served) -> None:
    assert "There are none here" in served(tmp_path).get("/").text


def test_su10_runs_that_were_removed_leave_the_comparison_readable(tmp_path: Path, served: Served) -> None:
    kept = write_pair(tmp_path)
    moved = tmp_path / "elsewhere"
    shutil.move(kept, moved)
    shutil.rmtree(tmp_path / "A")
    shutil.rmtree(tmp_path / "B")
    client, home = served(moved), f"/c/{key_of(moved)}/"
    for path in (home, f"{home}calls", f"{home}call/baseline/0/0", f"{home}f/F1", f"{home}source?side=baseline&file=x"):
        assert client.get(path).status_code == 200, path
    assert "the run cannot be read" in client.get(f"{home}source?side=baseline&file=x").text
    assert "journal is not where it was" in client.get(f"{home}call/baseline/0/0").text
