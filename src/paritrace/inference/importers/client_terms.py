"""The words of client importers and the proxy for a request's outcome and its timings (IN-15, IN-17, IN-27)."""

from enum import StrEnum


class Outcome(StrEnum):
    """How a request went: `status` of its event.

    offered = dropped + sent; sent = unreachable + delivery_unknown + rejected + accepted;
    accepted = successful + failed + timed_out + cancelled + incomplete.
    """

    DROPPED = "dropped"  # the client wanted to send it and did not
    UNREACHABLE = "unreachable"  # nobody took it
    DELIVERY_UNKNOWN = "delivery_unknown"  # sent, and no answer that says whether it arrived
    REJECTED = "rejected"  # answered by a refusal before any work: 4xx, overload
    SUCCESSFUL = "successful"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"  # an answer began and its end was never seen: who ended it is not known


class Timing(StrEnum):
    """Names under `timings` of a request's metadata, in nanoseconds."""

    SCHEDULED = "scheduled_ns"  # when it was meant to be sent; on the clock of the event's `start_ns` (IN-27)
    SENT = "sent_ns"  # when it was sent; on the clock of the event
    TIME_TO_FIRST_OUTPUT = "time_to_first_output_ns"
    TIME_TO_FIRST_BYTE = "time_to_first_byte_ns"
    LATENCY = "latency_ns"
    MEAN_BETWEEN_TOKENS = "mean_between_tokens_ns"
    MEAN_BETWEEN_CHUNKS = "mean_between_chunks_ns"
    LONGEST_BETWEEN_CHUNKS = "longest_between_chunks_ns"


TIMINGS = "timings"
REQUEST_ID = "x_request_id"
RESPONSE_ID = "response_id"
SUMMARY_COMPONENT = "client_summary"


class SummaryGap(StrEnum):
    """Why a figure of a client's summary is not taken."""

    NO_COMPLETED_REQUESTS = "no_completed_requests"  # latencies of nothing: 0.0 is no latency
    ZERO_REPORTED = "zero_reported"  # a latency of exactly 0.0 beside requests: nobody measured it
    NOT_REPORTED = "not_reported"
    NOT_FINITE = "not_finite"
    NO_POPULATION = "no_population"  # a summary: quantiles of it, and no values
