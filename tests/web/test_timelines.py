"""Timelines: Perfetto's page from an origin of its own, and what is said where it is not installed (SU-11, SU-13)."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.cli import view_timeline
from paritrace.cli.entry import status_of
from paritrace.files import LOCAL
from paritrace.reports.shelf import key_of
from paritrace.reports.traces.verifying import read_back
from paritrace.web import perfetto, timelines
from paritrace.web.application import application
from paritrace.web.perfetto import installed, perfetto_page, policy_of
from tests.web.conftest import ORIGIN, TOKEN
from tests.web.shelves import write_run
from tests.web.test_inference_pages import evidence, write_inference

SECRET = "a-secret"
UI = "http://127.0.0.1:8124"
INDEX = "<!doctype html><script>start()</script><p>Perfetto</p>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stands for the folder that the extra carries: its index with a script inside it, and one file."""
    folder = tmp_path_factory.mktemp("ui")
    (folder / "index.html").write_text(INDEX)
    (folder / "frontend.js").write_text("start = () => {}")
    return folder


@pytest.fixture(scope="module")
def page(pair: Path, folder: Path) -> TestClient:
    app = perfetto_page(pair.parents[3], folder, token=SECRET, shown_in=ORIGIN)
    return TestClient(app, base_url=UI, raise_server_exceptions=False, follow_redirects=False)


def test_su13_perfettos_page_and_traces_lie_below_a_secret(page: TestClient, pair: Path, tmp_path: Path) -> None:
    assert page.get(f"/{SECRET}/index.html").text == INDEX
    assert page.get(f"/{SECRET}/frontend.js").status_code == 200
    for kind, place in (("c", pair), ("r", pair.parents[2])):
        answer = page.get(f"/{SECRET}/trace/{kind}/{key_of(place)}.pftrace")
        assert answer.status_code == 200
        (tmp_path / "got.pftrace").write_bytes(answer.content)
        assert sum(part.instants for part in read_back(tmp_path / "got.pftrace", files=LOCAL)) > 0


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/wrong/index.html", f"/{SECRET}", f"/{SECRET}x/index.html", f"//{SECRET}/index.html"]
)
def test_su11_nothing_is_there_without_the_secret(page: TestClient, path: str) -> None:
    answer = page.get(f"{UI}{path}")
    assert (answer.status_code, answer.text) == (403, "There is nothing here.\n")


@pytest.mark.parametrize(
    "path",
    [
        "trace/c/nothing.pftrace",
        "trace/x/{key}.pftrace",
        "../pages.py",
        "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc/passwd",
    ],
)
def test_su11_foreign_keys_kinds_and_paths_lead_nowhere(page: TestClient, pair: Path, path: str) -> None:
    answer = page.get(f"{UI}/{SECRET}/{path.format(key=key_of(pair))}")
    assert answer.status_code in (403, 404)
    assert "root:" not in answer.text


def test_su11_other_hosts_methods_and_sites_are_refused(page: TestClient) -> None:
    at = f"/{SECRET}/index.html"
    assert page.get(at, headers={"Host": "evil.example"}).status_code == 400
    assert page.get(at, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert page.get(at, headers={"Sec-Fetch-Site": "same-site"}).status_code == 200  # the frame of our page
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
        assert page.request(method, at).status_code == 403


def test_su11_perfettos_page_may_run_its_own_files_and_be_framed_by_ours_alone(page: TestClient, folder: Path) -> None:
    answer = page.get(f"/{SECRET}/index.html")
    policy = answer.headers["content-security-policy"]
    assert policy == policy_of(folder, shown_in=ORIGIN)
    assert f"frame-ancestors {ORIGIN}" in policy
    assert "'sha256-" in policy
    assert "unsafe-eval" not in policy.replace("wasm-unsafe-eval", "")
    assert "script-src 'self' 'wasm-unsafe-eval' 'sha256-" in policy
    assert "http" not in policy.replace(ORIGIN, "")
    assert "access-control-allow-origin" not in answer.headers


@pytest.fixture
def asking(pair: Path) -> Callable[[str], TestClient]:
    """Clients of the view, with and without Perfetto's page beside it."""

    def client(perfetto: str) -> TestClient:
        app = application(pair.parents[3], token=TOKEN, origin=ORIGIN, perfetto=perfetto)
        return TestClient(app, base_url=ORIGIN, headers={"Authorization": f"Bearer {TOKEN}"}, follow_redirects=False)

    return client


def test_su13_a_timeline_frames_the_page_and_no_other(
    asking: Callable[[str], TestClient], pair: Path, home: str
) -> None:
    client = asking(f"{UI}/{SECRET}/")
    for address in (f"{home}timeline", f"/r/{key_of(pair.parents[2])}/timeline"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert f'src="{UI}/{SECRET}/index.html#!/?mode=embedded' in answer.text
        assert answer.headers["content-security-policy"].endswith(f"; frame-src {UI}")


def test_su13_without_the_extra_the_page_says_how_and_gives_the_trace(
    asking: Callable[[str], TestClient], home: str, tmp_path: Path
) -> None:
    client = asking("")
    answer = client.get(f"{home}timeline")
    assert "iframe" not in answer.text
    assert "frame-src" not in answer.headers["content-security-policy"]
    assert timelines.INSTALL.replace("'", "&#39;") in answer.text
    assert timelines.PUBLIC in answer.text
    trace = client.get(f"{home}trace.pftrace")
    assert trace.headers["content-disposition"].startswith("attachment")
    (tmp_path / "got.pftrace").write_bytes(trace.content)
    assert read_back(tmp_path / "got.pftrace", files=LOCAL)[0].facts["of"] == "comparison"


def test_su13_a_trace_is_cut_and_counts_what_it_leaves_out(
    asking: Callable[[str], TestClient], home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_CALLS", 4)
    (tmp_path / "got.pftrace").write_bytes(asking("").get(f"{home}trace.pftrace").content)
    (part,) = read_back(tmp_path / "got.pftrace", files=LOCAL)
    assert part.left_out["beyond_max_events"] > 0


def test_su13_without_the_extra_the_command_prints_the_file_and_the_public_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pair: Path
) -> None:
    monkeypatch.setattr(view_timeline, "installed", lambda: None)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))
    run = write_run(tmp_path / "run")
    for source in (run, pair):
        assert status_of(["view", str(source), "--perfetto", "--no-open", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["open_at"] == "https://ui.perfetto.dev"
        assert told["fix"] == "pip install 'paritrace[perfetto-ui]'"
        assert read_back(Path(told["trace"]), files=LOCAL)
    assert status_of(["view", str(run), "--perfetto", "--no-open"]) == 0
    assert str(tmp_path / "trace.pftrace") in capsys.readouterr().out


def test_in19_of_inference_alone_the_command_draws_what_infer_show_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(view_timeline, "installed", lambda: None)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))
    run = write_inference(tmp_path / "run", evidence())
    assert status_of(["infer", "show", str(run), "-o", str(tmp_path / "shown.pftrace")]) == 0
    capsys.readouterr()
    assert status_of(["view", str(run), "--perfetto", "--no-open", "--json"]) == 0
    drawn = Path(json.loads(capsys.readouterr().out)["trace"])
    assert drawn.read_bytes() == (tmp_path / "shown.pftrace").read_bytes()
    assert {part.facts["of"] for part in read_back(drawn, files=LOCAL)} == {"inference"}


def test_su13_a_timeline_is_of_one(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["view", str(pair.parents[3]), "--perfetto", "--no-open", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "several_to_view"


def test_su13_what_is_installed_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfetto, "CARRIER", "no_such_package_of_ours")
    assert installed() is None
    monkeypatch.setattr(perfetto, "CARRIER", "paritrace")  # a package without such a folder
    assert installed() is None
