"""The document of `paritrace infer show RUN --request ID`: what served a request, and what is not known of it."""

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.result import IterationWork, Source


class ToldRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The request as one party tells it: a client, a proxy, the engine. Parties are joined by ids alone."""

    request: Ref
    attempt: Ref | None
    backend_request: Ref | None
    source: str
    status: str | None
    elapsed_ns: int | Gap[InferenceGap]
    input_tokens: int | None
    output_tokens: int | None


class ToldStage(Struct, frozen=True, forbid_unknown_fields=True):
    """A named part of it."""

    stage: Ref
    name: str
    elapsed_ns: int | Gap[InferenceGap]


class ServedIn(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An iteration that it took part in.

    Attributes:
        members: requests that took part in the iteration, this one among them: its work is not this request's alone.
        work: device work of the whole iteration, by device and clock.
        other: linked activities of hosts, by domain; their times are not added up.
    """

    iteration: Ref
    role: str
    tokens: int | None
    elapsed_ns: int | Gap[InferenceGap]
    members: int
    work: tuple[IterationWork, ...]
    other: dict[str, int]


class ServedReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that the artifact holds of one request.

    Attributes:
        num_iterations: how many it took part in; `membership_unknown` where no source says it of any iteration.
        in_flight: iterations whose times, by the same clock, meet those of the request: an estimate of what could have
            served it, and no link.
    """

    format: str
    version: str
    artifact: Source
    asked: str
    requests: tuple[ToldRequest, ...]
    stages: tuple[ToldStage, ...]
    num_iterations: int | Gap[InferenceGap]
    iterations: tuple[ServedIn, ...]
    iterations_left_out: int
    in_flight: int | Gap[InferenceGap]
