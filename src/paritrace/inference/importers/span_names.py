"""Attributes of spans by what they mean: names of the semantic conventions and of vLLM, one table (IN-14)."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Convention(StrEnum):
    """Whose name an attribute has."""

    GEN_AI = "gen_ai_semantic_conventions"
    GEN_AI_EARLIER = "gen_ai_semantic_conventions_earlier"
    VLLM = "vllm"


class Meaning(StrEnum):
    """What a span can say of a request."""

    REQUEST_ID = "request_id"  # the server's own id, which may hold the client's
    RESPONSE_ID = "response_id"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    CACHED_INPUT_TOKENS = "cached_input_tokens"
    REASONING_TOKENS = "reasoning_tokens"
    MODEL = "model"
    RESPONSE_MODEL = "response_model"
    OPERATION = "operation"
    PROVIDER = "provider"
    MAX_TOKENS = "max_tokens"
    TIME_TO_FIRST_TOKEN = "time_to_first_token"  # noqa: S105 - no secret
    END_TO_END = "end_to_end"
    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    MODEL_INFERENCE = "inference"
    MODEL_FORWARD = "model_forward"
    MODEL_EXECUTE = "model_execute"
    SCHEDULER = "scheduler"


class Name(Struct, frozen=True):
    """One attribute's name, and whose it is."""

    name: str
    convention: Convention


NAMES: Mapping[Meaning, tuple[Name, ...]] = {
    Meaning.REQUEST_ID: (Name("gen_ai.request.id", Convention.VLLM),),
    Meaning.RESPONSE_ID: (Name("gen_ai.response.id", Convention.GEN_AI),),
    Meaning.INPUT_TOKENS: (
        Name("gen_ai.usage.input_tokens", Convention.GEN_AI),
        Name("gen_ai.usage.prompt_tokens", Convention.VLLM),
    ),
    Meaning.OUTPUT_TOKENS: (
        Name("gen_ai.usage.output_tokens", Convention.GEN_AI),
        Name("gen_ai.usage.completion_tokens", Convention.VLLM),
    ),
    Meaning.CACHED_INPUT_TOKENS: (
        Name("gen_ai.usage.cache_read.input_tokens", Convention.GEN_AI),
        Name("gen_ai.usage.cached_tokens", Convention.VLLM),
    ),
    Meaning.REASONING_TOKENS: (Name("gen_ai.usage.reasoning.output_tokens", Convention.GEN_AI),),
    Meaning.MODEL: (Name("gen_ai.request.model", Convention.GEN_AI),),
    Meaning.RESPONSE_MODEL: (Name("gen_ai.response.model", Convention.GEN_AI),),
    Meaning.OPERATION: (Name("gen_ai.operation.name", Convention.GEN_AI),),
    Meaning.PROVIDER: (
        Name("gen_ai.provider.name", Convention.GEN_AI),
        Name("gen_ai.system", Convention.GEN_AI_EARLIER),
    ),
    Meaning.MAX_TOKENS: (Name("gen_ai.request.max_tokens", Convention.GEN_AI),),
    Meaning.TIME_TO_FIRST_TOKEN: (Name("gen_ai.latency.time_to_first_token", Convention.VLLM),),
    Meaning.END_TO_END: (Name("gen_ai.latency.e2e", Convention.VLLM),),
    Meaning.QUEUE: (Name("gen_ai.latency.time_in_queue", Convention.VLLM),),
    Meaning.PREFILL: (Name("gen_ai.latency.time_in_model_prefill", Convention.VLLM),),
    Meaning.DECODE: (Name("gen_ai.latency.time_in_model_decode", Convention.VLLM),),
    Meaning.MODEL_INFERENCE: (Name("gen_ai.latency.time_in_model_inference", Convention.VLLM),),
    Meaning.MODEL_FORWARD: (Name("gen_ai.latency.time_in_model_forward", Convention.VLLM),),
    Meaning.MODEL_EXECUTE: (Name("gen_ai.latency.time_in_model_execute", Convention.VLLM),),
    Meaning.SCHEDULER: (Name("gen_ai.latency.time_in_scheduler", Convention.VLLM),),
}
STAGES = (
    Meaning.QUEUE,
    Meaning.PREFILL,
    Meaning.DECODE,
    Meaning.MODEL_INFERENCE,
    Meaning.MODEL_FORWARD,
    Meaning.MODEL_EXECUTE,
    Meaning.SCHEDULER,
)
COUNTS = (Meaning.INPUT_TOKENS, Meaning.OUTPUT_TOKENS, Meaning.CACHED_INPUT_TOKENS, Meaning.REASONING_TOKENS)


class Said(Struct, frozen=True):
    """What an attribute says, and by which name it was said."""

    value: str | int | float | bool
    name: str
    convention: Convention


class Conflict(Struct, frozen=True):
    """Two names of one meaning with different values: neither is taken."""

    names: tuple[str, ...]


def said(attributes: Mapping[str, object]) -> dict[Meaning, Said | Conflict]:
    """Returns what the attributes of a span say, by meaning; what is not said is left out."""
    found: dict[Meaning, Said | Conflict] = {}
    for meaning, names in NAMES.items():
        given = [
            Said(value, one.name, one.convention)
            for one in names
            if isinstance(value := attributes.get(one.name), str | int | float | bool)
        ]
        if given:
            same = all(type(one.value) is type(given[0].value) and one.value == given[0].value for one in given)
            found[meaning] = given[0] if same else Conflict(tuple(one.name for one in given))
    return found
