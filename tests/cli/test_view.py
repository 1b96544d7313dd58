"""`paritrace view` as a process: its address works, signals end it, what it needs is said (SU-5, SU-10, SU-11)."""

import json
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paritrace.cli import view
from paritrace.cli.entry import status_of
from paritrace.errors import HostError
from paritrace.loopback.listening import bound, is_healthy
from tests.web.shelves import write_run

ANSWER_SECONDS = 60  # of a start on a loaded machine; it takes a second or two


@contextmanager
def viewing(path: Path, *arguments: str) -> Generator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """A running `paritrace view --json` and the document that it printed once it answered."""
    command = [sys.executable, "-m", "paritrace", "view", str(path), "--no-open", "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = ""
        for line in process.stdout:
            lines += line
            if line == "}\n":
                break
        yield process, json.loads(lines)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=ANSWER_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_su10_the_address_works_and_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    run = write_run(tmp_path / "run")
    with viewing(run) as (process, told):
        parts = urlsplit(str(told["url"]))
        assert (parts.hostname, parts.port) == ("127.0.0.1", told["port"])
        assert told["path"] == str(run)
        connection = HTTPConnection("127.0.0.1", int(str(told["port"])), timeout=ANSWER_SECONDS)
        connection.request("GET", f"{parts.path}?{parts.query}")
        entered = connection.getresponse()
        entered.read()
        cookie = str(entered.headers["set-cookie"]).partition(";")[0]
        connection.request("GET", "/", headers={"Cookie": cookie})
        page = connection.getresponse()
        assert page.status == 200
        assert "server" not in {name.lower() for name, _ in page.getheaders()}
        assert b"sessions" in page.read()
        process.send_signal(number)  # while the connection is still open
        out, err = process.communicate(timeout=ANSWER_SECONDS)
        assert (process.returncode, out, err) == (0, "", "")
        connection.close()


def test_su11_only_this_machine_is_listened_to() -> None:
    with bound(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_su11_a_taken_port_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert status_of(["view", str(run), "--no-open", "--port", str(port)]) == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in capsys.readouterr().err


def test_su11_what_is_no_server_of_ours_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    assert not is_healthy(port, token="x")


def test_su5_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "NEEDED", ("json", "no_such_package_of_ours"))
    with pytest.raises(HostError) as refused:
        view.require_web()
    assert refused.value.code == "missing_extra"
    assert refused.value.fix == "pip install 'paritrace[web]'"
    assert "no_such_package_of_ours" in refused.value.message


@pytest.mark.parametrize("name", ["nothing", "file.txt"])
def test_su10_what_cannot_be_shown_is_said_before_a_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file.txt").write_text("text")
    assert status_of(["view", str(tmp_path / name), "--no-open", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == {"nothing": "not_found", "file.txt": "nothing_to_view"}[name]


def test_su10_no_browser_is_opened_where_nobody_sits(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("CI", "true")
    view.open_browser("http://127.0.0.1:1/")
    assert opened == []
    monkeypatch.delenv("CI")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    view.open_browser("http://127.0.0.1:1/")
    assert opened == ["http://127.0.0.1:1/"]
