"""The proxy passes bytes on as they are and as they come, and keeps what it saw (IN-15)."""

import json
import socket
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from msgspec import Struct

from paritrace.errors import HostError, RequestError
from paritrace.inference.appending import append_import, init
from paritrace.inference.artifact import Events, place_of
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.importers.client_sse import MOST_EVENT_BYTES
from paritrace.inference.importing import Imported
from paritrace.inference.proxy.exchange import Exchange, Recorder
from paritrace.inference.proxy.forwarding import Forwarding, Upstream
from paritrace.inference.proxy.recording import Writer
from paritrace.inference.proxy.serving import upstream_of
from paritrace.inference.records import Request, Stage
from tests.inference.proxy.upstream import Served, running

STREAM = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "what nobody may read"}]}
CHAT = "/v1/chat/completions"


class Through(Struct):
    """A proxy under test: its address, the server behind it, and what it wrote."""

    url: str
    served: Served
    run: Path
    writer: Writer
    proxying: ExitStack

    def requests(self) -> list[Request]:
        """The requests in the artifact, once the proxy has ended and everything is written."""
        self.proxying.close()
        self.writer.close()
        return written(self.run)


def written(run: Path) -> list[Request]:
    """The requests of an artifact."""
    return [one for one in Events(place_of(run)) if isinstance(one, Request)]


def recorded(run: Path, *, content: bool = False) -> tuple[Recorder, Writer]:
    """A recorder and a writer of a new artifact."""
    init(run, run_id="run")
    facts = ContextFacts(
        run_id="run",
        session_id="inference",
        producer_id="proxy",
        source="test",
        clock_domain="here",
        clock_kind=ClockKind.MONOTONIC,
        collection_mode=CollectionMode.PASSIVE,
        provenance=Provenance.OBSERVED,
    )
    context = Context(facts)

    def append(imported: Imported) -> object:
        return append_import(run, imported, component="proxy", run_id="run", session="inference")

    writer = Writer(append, context=context, producer="proxy")
    writer.start()
    return Recorder(context=context, producer="proxy", upstream="upstream", content=content), writer


@pytest.fixture
def through(tmp_path: Path) -> Generator[Through]:
    recorder, writer = recorded(tmp_path)
    served = Served()
    with ExitStack() as opened:
        upstream = opened.enter_context(running(served))
        opened.callback(served.gate.set)
        proxying = opened.enter_context(ExitStack())
        url = proxying.enter_context(running(Forwarding(Upstream(upstream), recorder=recorder, writer=writer)))
        yield Through(url, served, tmp_path, writer, proxying)
    writer.close()


def test_a_stream_passes_unchanged_and_is_recorded_with_its_usage(through: Through) -> None:
    passed = httpx2.post(through.url + CHAT, json=STREAM, headers={"x-request-id": "mine"}).content
    assert passed.endswith(b"data: [DONE]\n\n")
    (request,) = through.requests()
    assert (request.status, request.input_tokens, request.output_tokens) == ("successful", 5, 7)
    assert request.metadata["events"] == {"content": 3, "done": 1, "finish": 1, "nothing": 1, "usage": 1}
    assert request.metadata["x_request_id"] == "mine"
    assert request.backend_request_ref is not None
    assert request.backend_request_ref.id == "chatcmpl-served"
    assert request.metadata["response_bytes"] == len(passed)
    assert request.metadata["asked"] == {"model": "tiny", "stream": True}
    timings = request.metadata["timings"]
    assert 0 < timings["time_to_first_byte_ns"] <= timings["time_to_first_output_ns"] <= timings["latency_ns"]
    assert request.start_ns is not None
    assert timings["sent_ns"] >= request.start_ns
    assert "nobody" not in repr(request)


def test_in27_how_late_a_client_was_is_recorded_and_not_passed_on(through: Through) -> None:
    for late in ("2500", "-1", "1.5", "9" * 16):
        httpx2.post(through.url + CHAT, json=STREAM, headers={"X-Paritrace-Late-Ns": late})
    sent = [{name.decode() for name, _ in one["headers"]} for one in through.served.seen]
    assert len(sent) == 4
    assert all("x-paritrace-late-ns" not in one for one in sent)
    first, *others = through.requests()
    assert first.start_ns is not None
    assert first.metadata["timings"]["scheduled_ns"] == first.start_ns - 2_500
    assert not any("scheduled_ns" in one.metadata["timings"] for one in others)


def test_each_chunk_passes_before_the_next_one_exists(through: Through) -> None:
    with httpx2.stream("POST", through.url + "/v1/gated", json=STREAM) as answer:
        chunks = answer.iter_raw()
        held = next(chunks)
        while b'"0 "' not in held:
            held += next(chunks)  # the server waits at its gate: what is here was not held back
        assert b'"1 "' not in held
        through.served.gate.set()
        assert b"".join(chunks).endswith(b"[DONE]\n\n")
    assert through.requests()[0].status == "successful"


def test_headers_bodies_and_addresses_reach_the_server_as_they_are(through: Through) -> None:
    sent = [("x-twice", "1"), ("x-twice", "2"), ("connection", "keep-alive, x-own"), ("x-own", "1"), ("accept", "*/*")]
    body = bytes(range(256)) * 5_000
    answer = httpx2.post(through.url + "/v1/echo?a=%20b&c", content=body, headers=sent)
    assert answer.json()["length"] == len(body)
    assert answer.headers.get_list("x-served") == ["1", "2"]
    (seen,) = through.served.seen
    assert (seen["body"], seen["query"]) == (body, b"a=%20b&c")
    names = [name for name, _ in seen["headers"]]
    assert names.count(b"x-twice") == 2
    assert b"x-own" not in names  # the client named it as of its own connection
    (request,) = through.requests()
    assert (request.metadata["request_bytes"], request.metadata["path"]) == (len(body), "/v1/echo")


def test_an_answer_that_is_no_stream_gives_usage_and_id(through: Through) -> None:
    assert httpx2.post(through.url + CHAT, json={"model": "tiny"}).json()["id"] == "chatcmpl-whole"
    (request,) = through.requests()
    assert (request.status, request.output_tokens) == ("successful", 7)
    assert request.metadata["response_id"] == "chatcmpl-whole"
    assert "stream" not in request.metadata


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(400, "rejected"), (429, "rejected"), (503, "rejected"), (500, "failed"), (504, "timed_out"), (200, "successful")],
)
def test_outcomes_by_status(through: Through, status: int, outcome: str) -> None:
    assert httpx2.get(f"{through.url}/v1/status/{status}").status_code == status
    (request,) = through.requests()
    assert (request.status, request.metadata["http_status"]) == (outcome, status)
    assert ("latency_ns" in request.metadata["timings"]) == (outcome == "successful")


def test_an_answer_that_is_cut_is_cut_for_the_client_too(through: Through) -> None:
    with pytest.raises(httpx2.TransportError):
        httpx2.post(through.url + "/v1/cut", json=STREAM)
    (request,) = through.requests()
    assert (request.status, request.metadata["broken"]) == ("incomplete", "upstream_ended_inside_the_answer")
    assert request.metadata["why_incomplete"] == "no [DONE]"
    assert "latency_ns" not in request.metadata["timings"]


def test_a_client_that_leaves_is_a_cancelled_request(through: Through) -> None:
    with httpx2.stream("POST", through.url + "/v1/gated", json=STREAM) as answer:
        next(answer.iter_raw())
    for _ in range(400):
        if through.writer.num_written >= 2:
            break
        through.served.gate.wait(0.05)  # nobody opens it: the proxy has to notice by itself
    (request,) = through.requests()
    assert (request.status, request.metadata["broken"]) == ("cancelled", "client_left")


def test_a_client_that_leaves_inside_its_own_request_is_a_cancelled_one(through: Through) -> None:
    with socket.create_connection(("127.0.0.1", int(through.url.rpartition(":")[2]))) as client:
        client.sendall(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    for _ in range(400):
        if through.writer.num_written >= 2:
            break
        through.served.gate.wait(0.05)
    (request,) = through.requests()
    assert (request.status, request.metadata["broken"]) == ("cancelled", "client_left")


def test_a_compressed_stream_passes_compressed_and_is_read(through: Through) -> None:
    answer = httpx2.post(through.url + "/v1/compressed", json=STREAM)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content.endswith(b"data: [DONE]\n\n")
    (request,) = through.requests()
    assert (request.status, request.output_tokens, request.metadata["observed"]) == ("successful", 7, True)
    assert request.metadata["response_bytes"] < len(answer.content)


def test_a_stream_that_cannot_be_followed_passes_on_unobserved(through: Through) -> None:
    answer = httpx2.post(through.url + "/v1/endless-line", json=STREAM)
    assert len(answer.content) == 6 * MOST_EVENT_BYTES // 4
    (request,) = through.requests()
    assert (request.status, request.metadata["observed"]) == ("incomplete", False)


def test_nobody_there_is_an_answer_of_the_proxys_own(tmp_path: Path) -> None:
    recorder, writer = recorded(tmp_path)
    with running(Forwarding(Upstream("http://127.0.0.1:9"), recorder=recorder, writer=writer)) as url:
        answer = httpx2.post(url + CHAT, json=STREAM)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "upstream_unreachable")
    writer.close()
    (request,) = written(tmp_path)
    assert (request.status, request.metadata["broken"]) == ("unreachable", "upstream_unreachable")


def test_content_is_kept_only_where_it_was_asked_for(tmp_path: Path) -> None:
    recorder, writer = recorded(tmp_path, content=True)
    with ExitStack() as opened:
        upstream = opened.enter_context(running(Served()))
        url = opened.enter_context(running(Forwarding(Upstream(upstream), recorder=recorder, writer=writer)))
        httpx2.post(url + CHAT, json=STREAM)
    writer.close()
    (request,) = written(tmp_path)
    assert json.loads(request.metadata["content"]["request"]["text"]) == STREAM
    assert request.metadata["content"]["response"]["text"].endswith("[DONE]\n\n")


def test_a_client_is_served_where_nothing_can_be_written_and_where_nothing_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a full disk, and an event that cannot even be made."""
    recorder, _ = recorded(tmp_path)

    def full(_imported: Imported) -> object:
        raise HostError("write: No space left on device", code="disk_full", fix="free space")

    told, timings = list[Exchange](), Exchange.timings

    def impossible(exchange: Exchange) -> dict[str, object]:
        """Of any but the first to end, which may be told when its client has gone on already."""
        told.append(exchange)
        if exchange is not told[0]:
            raise ZeroDivisionError
        return timings(exchange)

    monkeypatch.setattr(Exchange, "timings", impossible)
    writer = Writer(full, context=recorder.context, producer="proxy")
    writer.start()
    with ExitStack() as opened:
        upstream = opened.enter_context(running(Served()))
        url = opened.enter_context(running(Forwarding(Upstream(upstream), recorder=recorder, writer=writer)))
        assert httpx2.post(url + CHAT, json=STREAM).text.endswith("data: [DONE]\n\n")
        assert httpx2.post(url + CHAT, json=STREAM).text.endswith("data: [DONE]\n\n")
    writer.close()
    assert isinstance(writer.failure, HostError)
    assert writer.num_unwritten == 4  # two beginnings, one end, one loss


def test_a_number_that_no_field_holds_is_kept_as_text(through: Through) -> None:
    httpx2.post(through.url + CHAT, json=STREAM | {"max_tokens": 10**30})
    (found,) = through.requests()
    assert found.metadata["asked"]["max_tokens"] == str(10**30)


def test_a_request_under_way_is_told_before_it_ends(through: Through) -> None:
    httpx2.get(through.url + "/v1/status/200")
    through.requests()
    stages = [one for one in Events(place_of(through.run)) if isinstance(one, Stage)]
    assert [(one.name, one.end_ns) for one in stages] == [("in_flight", None)]


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://a", "http://", "http://u:p@host", "http://h:0", "http://h/?q=1", "http://[x"]
)
def test_what_is_no_upstream_is_refused(url: str) -> None:
    with pytest.raises(RequestError) as refused:
        upstream_of(url)
    assert refused.value.code == "bad_upstream"
    assert "u:p" not in refused.value.message


def test_an_upstream_may_have_a_path() -> None:
    assert upstream_of("http://host:80/base/").at(b"/v1/models", b"") == "http://host:80/base/v1/models"
