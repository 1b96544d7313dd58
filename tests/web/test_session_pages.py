"""The page of a resident session: read from its files, with its coordinator's word where it lives (SU-10, SU-12)."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.loopback.listening import bound
from paritrace.process.identity import own_identity
from paritrace.reports import shelf_others
from paritrace.reports.shelf import key_of, shelf_of
from paritrace.session import directory as session_directory
from paritrace.session.coordinator.http.serving import Serving
from paritrace.session.coordinator.snapshot import Seen
from paritrace.session.coordinator_record import Coordinator
from paritrace.session.directory import JOURNAL, TOKEN
from tests.session.coordinator.http.conftest import Room
from tests.web.conftest import Served
from tests.web.sessions import write_session
from tests.web.shelves import MARKUP


@contextmanager
def lived(folder: Path) -> Generator[Room]:
    """A session whose coordinator is this process: it answers over its own HTTP API."""
    listening = bound(0)
    write_session(folder, owner=own_identity(), port=int(listening.getsockname()[1]))
    (folder / TOKEN).write_text("the-token")
    room = Room(folder)
    serving = Serving(room.desk, listening, token="the-token")
    serving.start()
    try:
        yield room
    finally:
        serving.end()
        room.end()


def publish(room: Room, machine: Coordinator) -> None:
    """Have the coordinator say how it stands now."""
    room.desk.publish(Seen("s-1", "local", machine, {0: 0, 1: 0}))


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "all" / "session")


@pytest.fixture
def client(session: Path, served: Served) -> TestClient:
    return served(session.parent)


def address(session: Path, more: str = "") -> str:
    return f"/session/{key_of(session)}/{more}"


def test_su10_a_session_stands_on_the_first_page_and_its_parts_are_no_broken_comparisons(
    session: Path, client: TestClient
) -> None:
    shelf = shelf_of(session.parent)
    assert [one.path for one in shelf.sessions] == [str(session)]
    assert (shelf.troubles, shelf.comparisons, shelf.stores) == ((), (), ())
    assert [one.line.path for one in shelf.runs] == [str(session / "captures" / "mine")]
    assert address(session) in client.get("/").text
    for named in (session, session / "session.json"):
        assert [one.key for one in shelf_of(named).sessions] == [key_of(session)]


def test_su10_what_marks_a_session_is_what_a_session_writes() -> None:
    assert (shelf_others.SESSION_NAME, shelf_others.SESSION_FORMAT) == (
        session_directory.SESSION,
        session_directory.FORMAT,
    )


def test_su10_a_session_that_is_over_shows_everything_from_its_files(session: Path, client: TestClient) -> None:
    before = {path: path.read_bytes() for path in session.rglob("*") if path.is_file()}
    page = client.get(address(session)).text
    for said in (
        "Nobody runs it, step 100",
        "invalid_value",  # a refused command's reason
        "In flight when it ended",
        "0 to 99",  # a segment
        "checkpoints/here",
        "no checkpoint",  # a folder without a manifest
        "number 3, of step 100",
        f'<img src="{address(session, "previews/3/loss.png")}"',
        "7 bytes, neither a picture nor a text",
        "this preview has no such file",
        f'<a class="path" href="/r/{key_of(session / "captures" / "mine")}/">mine</a>',
        "no run yet",
        "root cause rank 1",
        "ended by SIGTERM, sent by us",
        "unresponsive",
        "4 bytes of the journal",
    ):
        assert said in page, said
    assert "session.js" not in page
    assert client.get(f"/r/{key_of(session / 'captures' / 'mine')}/").status_code == 200
    assert before == {path: path.read_bytes() for path in session.rglob("*") if path.is_file()}, "it only reads"


def test_su10_the_same_for_programs(session: Path, client: TestClient) -> None:
    told = client.get(f"/api/sessions/{key_of(session)}").json()
    assert [(one["kind"], one["result"]) for one in told["commands"]] == [
        ("run", "applied"),
        ("configure", "refused"),
        ("save", "applied"),
        ("capture", "applied"),
        ("preview", None),
    ]
    assert (told["status"], told["owner"], told["state"], told["step"]) == (None, "gone", "error", 100)
    assert [one["captures"][0]["name"] for one in told["segments"]] == ["mine"]
    assert told["failures"][0]["ranks"][1]["role"] == "cause"


def test_su10_a_picture_of_a_preview_is_served_and_nothing_that_its_record_does_not_name(
    session: Path, client: TestClient
) -> None:
    found = client.get(address(session, "previews/3/loss.png"))
    assert (found.status_code, found.headers["content-type"]) == (200, "image/png")
    assert client.get(address(session, "previews/3/sample.txt")).headers["content-type"] == "application/octet-stream"
    (session / "previews" / "3" / "weights.bin").unlink()
    (session / "previews" / "3" / "weights.bin").symlink_to(session / "journal.jsonl")
    for other in ("preview.json", "../../session.json", "..%2F..%2Fsession.json", "weights.bin", "missing.txt"):
        assert client.get(address(session, f"previews/3/{other}")).status_code == 404, other
    assert client.get(address(session, "previews/4/loss.png")).status_code == 404


def test_su12_words_of_a_workload_are_text(session: Path, client: TestClient) -> None:
    page = client.get(address(session)).text
    assert MARKUP not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("name", "content"), [("failures/1.json", "{"), ("previews/3/preview.json", "[]"), ("failures/2.json", "{}")]
)
def test_su12_a_broken_record_is_named_and_the_rest_is_shown(
    session: Path, client: TestClient, name: str, content: str
) -> None:
    (session / name).write_text(content)
    page = client.get(address(session))
    assert page.status_code == 200
    assert name in page.text
    assert "checkpoints/here" in page.text


def test_su12_a_broken_journal_is_a_page_that_says_so(session: Path, client: TestClient) -> None:
    (session / JOURNAL).write_bytes(b"no journal\n")
    answer = client.get(address(session))
    assert answer.status_code == 409
    assert "journal" in answer.text


def test_su10_the_coordinator_of_a_session_that_lives_is_asked_for_each_rank(tmp_path: Path, served: Served) -> None:
    with lived(tmp_path / "session") as room:
        page = served(tmp_path).get(address(tmp_path / "session")).text
        assert "Loading" in page
        assert "silent" in page, "no rank has said anything"
        assert "session.js" in page
        assert room.asked == [], "nothing was asked of it but how it stands"


def test_su10_a_coordinator_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paritrace.web.session_view.STATUS_SECONDS", 0.05)
    with bound(0) as listening:  # and nobody accepts
        port = int(listening.getsockname()[1])
        write_session(tmp_path / "session", owner=own_identity(), port=port)
        (tmp_path / "session" / TOKEN).write_text("the-token")
        page = served(tmp_path).get(address(tmp_path / "session")).text
    assert "No answer" in page
    assert "the coordinator does not answer" in page
