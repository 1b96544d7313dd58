"""`paritrace infer proxy` as a process between a real client and a server of its own process (IN-15)."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import openai
import pytest
from click.testing import CliRunner

from paritrace.cli.entry import paritrace
from paritrace.errors import HostError, RequestError
from paritrace.inference.artifact import Events, place_of
from paritrace.inference.records import AnyEvent, ClockAlignment, Request, Stage
from tests.inference.proxy import upstream

pytestmark = pytest.mark.slow  # three processes that import what they need
ENDS_WITHIN_SECONDS = 60
SERVER = [sys.executable, "-m", "tests.inference.proxy.upstream"]
QUESTION = [{"role": "user", "content": "what nobody may read"}]
STREAM = {"model": "tiny", "stream": True, "messages": QUESTION}


@contextmanager
def started(command: list[str]) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A process and the first line that it prints."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def proxied(run: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server, and a proxy before it."""
    with started(SERVER) as (_, server):
        words = ["infer", "proxy", "--upstream", server, "--run", str(run), "--json"]
        with started([sys.executable, "-m", "paritrace", *words]) as (process, line):
            yield process, json.loads(line)["url"]


def events(run: Path) -> list[AnyEvent]:
    return list(Events(place_of(run)))


def requests(run: Path) -> list[Request]:
    return [one for one in events(run) if isinstance(one, Request)]


def test_the_openai_client_notices_nothing_and_everything_is_recorded(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(run) as (process, url):
        client = openai.OpenAI(base_url=url + "/v1", api_key="secret", max_retries=0, timeout=ENDS_WITHIN_SECONDS)
        stream = client.chat.completions.create(**STREAM, stream_options={"include_usage": True})  # type: ignore[call-overload]
        chunks = list(stream)
        assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "0 1 2 "
        assert chunks[-1].usage.completion_tokens == 7
        whole = client.chat.completions.create(model="tiny", messages=QUESTION)  # type: ignore[arg-type]
        assert whole.choices[0].message.content == "a b"
        with pytest.raises(openai.RateLimitError):
            client.get("/status/429", cast_to=object)
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_SECONDS) == 0
    found = requests(run)
    assert [one.status for one in found] == ["successful", "successful", "rejected"]
    assert [one.output_tokens for one in found] == [7, 7, None]
    assert found[0].backend_request_ref is not None
    assert found[0].backend_request_ref.id == upstream.ID
    text = (run / "inference.jsonl").read_text()
    assert "secret" not in text
    assert "nobody may read" not in text
    assert len([one for one in events(run) if isinstance(one, ClockAlignment)]) == 1


def test_a_proxy_that_is_killed_leaves_what_had_ended_and_what_was_under_way(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(run) as (process, url):
        for _ in range(5):
            assert httpx2.post(url + "/v1/chat/completions", json=STREAM).status_code == 200
        with httpx2.stream("POST", url + "/v1/gated", json=STREAM, timeout=ENDS_WITHIN_SECONDS) as answer:
            chunks = answer.iter_raw()
            next(chunks)  # under way: the server waits at its gate
            until = time.monotonic() + ENDS_WITHIN_SECONDS  # of a GET that stands there: so does what came before it
            while not [one for one in requests(run) if "status" in one.metadata["path"]] and time.monotonic() < until:
                httpx2.get(url + "/v1/status/200")
            process.kill()
            process.wait(ENDS_WITHIN_SECONDS)
    found = requests(run)
    streams = [one for one in found if one.metadata["path"].endswith("completions")]
    assert [one.status for one in streams] == ["successful"] * 5
    assert not [one for one in found if one.metadata["path"].endswith("gated")]
    under_way = {one.request_ref for one in events(run) if isinstance(one, Stage)} - {one.request_ref for one in found}
    assert under_way
    with proxied(run) as (process, url):  # the same run goes on
        assert httpx2.post(url + "/v1/chat/completions", json=STREAM).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN_SECONDS) == 0
    assert len(requests(run)) == len(found) + 1


def test_what_cannot_be_served_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    def asked(*words: str) -> None:
        arguments = ["infer", "proxy", *words]
        CliRunner().invoke(paritrace, arguments, catch_exceptions=False, standalone_mode=False)

    with pytest.raises(RequestError) as refused:
        asked("--upstream", "localhost:8000", "--run", str(tmp_path / "run"))
    assert refused.value.code == "bad_upstream"
    assert not (tmp_path / "run").exists()
    with upstream.listening() as taken:
        words = ["--upstream", "http://127.0.0.1:9", "--run", str(tmp_path / "run")]
        with pytest.raises(HostError) as busy:
            asked(*words, "--port", str(taken.getsockname()[1]))
    assert busy.value.code == "port_taken"
