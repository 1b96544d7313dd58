"""What the actions on attempts have in common: their files (AU-9, AT-17)."""

from pathlib import Path

from paritrace.attempts.gate import Gate
from paritrace.attempts.rate_card import RateCard
from paritrace.automation.protocol.records import FilePath, Request


class AttemptsRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`manifest`, `rate_card` and `gate`: files, as of `paritrace attempts`."""

    manifest: FilePath
    rate_card: FilePath | None = None
    gate: FilePath | None = None


def files_of(request: AttemptsRequest) -> tuple[RateCard | None, Gate | None]:
    """Read the rate card and the rules that a request names.

    Raises:
        RequestError: Refused: what a file says of itself is wrong, with every problem.
        HostError: Refused: one cannot be read.
    """
    from paritrace.attempts.toml_files import parse_gate
    from paritrace.files import LOCAL

    gate = request.gate
    return rate_card_of(request.rate_card), None if gate is None else parse_gate(LOCAL.read(Path(gate)), name=gate)


def rate_card_of(path: FilePath | None) -> RateCard | None:
    """Read a rate card; raises as `files_of` does."""
    from paritrace.attempts.toml_files import parse_rate_card
    from paritrace.files import LOCAL

    return None if path is None else parse_rate_card(LOCAL.read(Path(path)), name=path)
