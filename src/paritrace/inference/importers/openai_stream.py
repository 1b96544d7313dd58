"""What the events of an OpenAI streaming body say, one after the other: a chunk is not a token (IN-15). Pure."""

import json
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.plain_json import elements, is_object, members
from paritrace.inference.plain_values import whole

DONE = "[DONE]"
MOST_CHOICES = 1024  # choices whose end is followed; beyond it a stream is told as incomplete
MOST_TEXT = 200  # characters of an id or a model that are kept
_RESPONSES_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


class Carries(StrEnum):
    """What one event of a stream carries; one that carries several counts as the first of these."""

    ERROR = "error"
    TOOL = "tool"
    REFUSAL = "refusal"
    REASONING = "reasoning"
    CONTENT = "content"
    FINISH = "finish"
    USAGE = "usage"
    NOTHING = "nothing"  # a role, an empty delta
    DONE = "done"
    INVALID = "invalid"  # no JSON, or no object


OUTPUT = frozenset({Carries.TOOL, Carries.REFUSAL, Carries.REASONING, Carries.CONTENT})


class StreamEnd(StrEnum):
    """How a stream ended, by what it says itself."""

    COMPLETE = "complete"  # [DONE], and every choice that began has a finish reason
    INCOMPLETE = "incomplete"
    ERROR = "error"  # the server said so inside the stream


class Usage(Struct, frozen=True):
    """Tokens as the server counts them; a field that it does not give is None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


class StreamFacts(Struct, frozen=True):
    """A stream as far as it was read; no text of it is kept (P7).

    `events` counts events by what they carry. `why_incomplete`: what is missing, "" where nothing is.
    """

    end: StreamEnd
    response_id: str | None
    model: str | None
    events: dict[str, int]
    finish_reasons: dict[str, str]
    usage: Usage | None
    why_incomplete: str = ""
    error_type: str | None = None


class StreamReader:
    """Takes the data of events in order, and says at any time what is known."""

    def __init__(self) -> None:
        self._events: dict[str, int] = {}
        self._finish: dict[str, str] = {}
        self._begun: set[str] = set()
        self._done = self._too_many = False
        self._id: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._error: str | None = None

    def take(self, data: str) -> Carries:
        """Takes the data of one event and returns what it carries."""
        carries = self._taken(data)
        self._events[carries.value] = self._events.get(carries.value, 0) + 1
        return carries

    def facts(self) -> StreamFacts:
        """What the events so far say; asked at the end, how the stream ended."""
        missing = self._missing()
        end = StreamEnd.ERROR if self._error is not None else StreamEnd.INCOMPLETE if missing else StreamEnd.COMPLETE
        return StreamFacts(
            end=end,
            response_id=self._id,
            model=self._model,
            events=dict(sorted(self._events.items())),
            finish_reasons=dict(sorted(self._finish.items())),
            usage=self._usage,
            why_incomplete=missing,
            error_type=self._error,
        )

    def _missing(self) -> str:
        if not self._done:
            return "no [DONE]"
        if self._too_many:
            return f"more than {MOST_CHOICES} choices"
        if self._events.get(Carries.INVALID.value):
            return "an event that is no JSON object"
        open_choices = self._begun - set(self._finish)
        return f"{len(open_choices)} of {len(self._begun)} choices have no finish reason" if open_choices else ""

    def _taken(self, data: str) -> Carries:
        if data.strip() == DONE:
            self._done = True
            return Carries.DONE
        try:
            chunk: object = json.loads(data)
        except (ValueError, RecursionError):
            return Carries.INVALID
        if not is_object(chunk):
            return Carries.INVALID
        if chunk.get("error"):
            return self._failed(chunk["error"])
        kind = chunk.get("type")
        if isinstance(kind, str) and (kind.startswith("response.") or kind == "error"):
            return self._of_responses(chunk, kind)
        return self._of_completions(chunk)

    def _failed(self, error: object) -> Carries:
        said = members(error).get("type") or members(error).get("code")
        self._error = str(said)[:MOST_TEXT] if isinstance(said, str | int) else "unnamed"
        return Carries.ERROR

    def _named(self, chunk: dict[str, object]) -> None:
        response_id, model = chunk.get("id"), chunk.get("model")
        if self._id is None and isinstance(response_id, str):
            self._id = response_id[:MOST_TEXT]
        if self._model is None and isinstance(model, str):
            self._model = model[:MOST_TEXT]

    def _of_completions(self, chunk: dict[str, object]) -> Carries:
        self._named(chunk)
        used = self._took_usage(chunk.get("usage"))
        carried = [self._choice(choice) for choice in elements(chunk.get("choices"))]
        first = min(carried, key=list(Carries).index, default=Carries.NOTHING)
        return Carries.USAGE if first is Carries.NOTHING and used else first

    def _choice(self, choice: object) -> Carries:
        own = members(choice)
        index = str(own.get("index", 0))
        if len(self._begun) >= MOST_CHOICES and index not in self._begun:
            self._too_many = True
            return Carries.NOTHING
        self._begun.add(index)
        reason = own.get("finish_reason")
        if isinstance(reason, str):
            self._finish[index] = reason[:MOST_TEXT]
        delta = members(own.get("delta"))
        if delta.get("tool_calls") or delta.get("function_call"):
            return Carries.TOOL
        if delta.get("refusal"):
            return Carries.REFUSAL
        if delta.get("reasoning_content") or delta.get("reasoning"):
            return Carries.REASONING
        if delta.get("content") or own.get("text"):
            return Carries.CONTENT
        return Carries.FINISH if isinstance(reason, str) else Carries.NOTHING

    def _of_responses(self, chunk: dict[str, object], kind: str) -> Carries:
        """An event of the Responses API, whose last event names its end and which has no [DONE]."""
        response = members(chunk.get("response"))
        self._named(response)
        self._took_usage(response.get("usage"))
        self._begun.add("response")
        if kind == "error":
            return self._failed({"type": chunk.get("code")})
        if kind in _RESPONSES_ENDS:
            self._done = True
            self._finish["response"] = _RESPONSES_ENDS[kind]
            return self._failed(response.get("error")) if kind == "response.failed" else Carries.FINISH
        for part, carries in (
            ("refusal", Carries.REFUSAL),
            ("function_call", Carries.TOOL),
            ("tool", Carries.TOOL),
            ("reasoning", Carries.REASONING),
            ("output_text", Carries.CONTENT),
        ):
            if kind.startswith(f"response.{part}") and kind.endswith(".delta"):
                return carries
        return Carries.NOTHING

    def _took_usage(self, usage: object) -> bool:
        """Keeps the last usage: servers that report it with every chunk report it so far."""
        if not is_object(usage):
            return False
        self._usage = usage_of(usage)
        return True


def usage_of(usage: dict[str, object]) -> Usage:
    """Returns what an object `usage` of a completion or of a response says."""
    into = members(usage.get("prompt_tokens_details")) or members(usage.get("input_tokens_details"))
    out = members(usage.get("completion_tokens_details")) or members(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=whole(usage.get("prompt_tokens", usage.get("input_tokens"))),
        output_tokens=whole(usage.get("completion_tokens", usage.get("output_tokens"))),
        cached_input_tokens=whole(into.get("cached_tokens")),
        reasoning_tokens=whole(out.get("reasoning_tokens")),
    )
