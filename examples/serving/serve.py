"""Serves OpenAI's completions and chat completions from the engine; at its end the run has its evidence and its trace.

    python serve.py --run RUN [--port N]

Ctrl-C or SIGTERM ends it: requests under way are finished, then events and trace are appended to the run.
"""

import argparse
import json
import signal
import socket
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from engine import Engine, Job
from evidence import Evidence
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from model import LONGEST, VOCABULARY

from paritrace.inference import ProfilerTrace, SessionFacts, append, init
from paritrace.inference.artifact import head_of, place_of
from paritrace.inference.pytorch.profiling import profiled

MODEL = "random-bytes"
SESSION = "serving"
DEFAULT_TOKENS = 16


def application(engine: Engine) -> FastAPI:
    """The routes; ids are the client's X-Request-Id where it gives one, so that every party names a request alike."""
    app = FastAPI()
    numbers = count()

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "example"}]}

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        body = await request.json()
        return answered(request, body, str(body.get("prompt", "")), kind="text_completion", prefix="cmpl")

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await request.json()
        text = "\n".join(str(one.get("content", "")) for one in body.get("messages", ()))
        return answered(request, body, text, kind="chat.completion", prefix="chatcmpl")

    def answered(request: Request, body: dict[str, Any], text: str, *, kind: str, prefix: str) -> Response:
        most = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_TOKENS
        prompt = list(text.encode())[: LONGEST - 1] or [0]
        if not isinstance(most, int) or most < 1:
            told = {"message": "max_tokens is a whole number from 1", "type": "invalid_request_error"}
            return JSONResponse({"error": told}, 400)
        name = request.headers.get("x-request-id") or str(next(numbers))
        job = Job(id=f"{prefix}-{name}", prompt=prompt, most=most)
        engine.submit(job)
        answer = Answer(job, kind)
        if body.get("stream"):
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(answer.stream(usage=usage), media_type="text/event-stream")
        return JSONResponse(answer.whole())

    return app


class Answer:
    """One job's tokens in OpenAI's shapes."""

    def __init__(self, job: Job, kind: str) -> None:
        self._job, self._chat = job, kind == "chat.completion"
        self._head = {"id": job.id, "created": int(time.time()), "model": MODEL}
        self._kind = kind

    def whole(self) -> dict[str, Any]:
        text = "".join(_text(token) for token in self._tokens())
        said = {"message": {"role": "assistant", "content": text}} if self._chat else {"text": text}
        choice = {"index": 0, "finish_reason": "length", **said}
        return {**self._head, "object": self._kind, "choices": [choice], "usage": self._usage()}

    def stream(self, *, usage: bool) -> Iterator[str]:
        """Server-sent events; a client that leaves in the middle cancels the job."""
        try:
            for token in self._tokens():
                yield self._chunk({"content": _text(token)} if self._chat else _text(token), None)
            yield self._chunk({} if self._chat else "", "length")
            if usage:
                yield _event({**self._head, "object": self._chunk_kind, "choices": [], "usage": self._usage()})
            yield "data: [DONE]\n\n"
        finally:
            self._job.cancelled = True  # without effect on one that has ended

    def _tokens(self) -> Iterator[int]:
        while (token := self._job.produced.get()) is not None:
            yield token

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _chunk(self, said: object, finish: str | None) -> str:
        choice = {"index": 0, "finish_reason": finish, ("delta" if self._chat else "text"): said}
        return _event({**self._head, "object": self._chunk_kind, "choices": [choice]})

    def _usage(self) -> dict[str, int]:
        given, made = len(self._job.prompt), len(self._job.output)
        return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _event(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document)}\n\n"


def _text(token: int) -> str:
    return chr(32 + token * 95 // VOCABULARY)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", type=Path, required=True, help="run directory; made where there is none")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", options.port)) as listening:
        port = listening.getsockname()[1]
        if not (options.run / "inference.jsonl").exists():  # a proxy that records into the same run may have been first
            init(options.run, session=SessionFacts(session_id=SESSION))
        run_id, session = identity_of(options.run)
        evidence = Evidence(f"upstream:127.0.0.1:{port}")  # as a proxy before it names the server: ids join exactly
        trace = options.run / "serving.pt.trace.json.gz"
        engine = Engine(evidence, profiler=profiled(trace))
        engine.start()
        print(f"http://127.0.0.1:{port}/v1", flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal that ended it once more: ignored
            signal.signal(number, lambda *_: None)
        uvicorn.Server(uvicorn.Config(application(engine), log_level="warning")).run(sockets=[listening])
        engine.close()
    collector = ProfilerTrace(trace, {"operators": "yes"})
    append(options.run, run_id=run_id, session=session, engine_adapter=evidence, trace_collector=collector)
    print(f"evidence of {run_id} is in {options.run}", flush=True)


def identity_of(run: Path) -> tuple[str, str]:
    """The run id and the first session of an artifact."""
    head = head_of(place_of(run)).context.facts
    return head.run_id, head.session_id


if __name__ == "__main__":
    main()
