"""What every request, result and operation of the protocol holds (AU-1, AU-16)."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

PROTOCOL_VERSION: Final = 1

FilePath = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]  # longer is no path on Linux
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
UniqueRanks = Annotated[
    tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1, extra_json_schema={"uniqueItems": True})
]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]  # a year: more is a mistake, and too much for some clocks


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every request holds. A field without a default is required; an unknown one is refused."""

    protocol_version: Literal[1]


class Result(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """What every result holds. Each kind says `tag=` its action's name.

    `digest` is the SHA-256 of the result without it (`digests.py`); the wrapper fills it in. A result that is a field
    of a later request is accepted only with the digest that it left with.
    """

    protocol_version: Literal[1] = PROTOCOL_VERSION
    digest: Sha256 = "0" * 64  # until the wrapper has filled it in


class Action(Struct, frozen=True):
    """One action of the protocol.

    `varying`: fields of the result that may differ where request and evidence are the same, beside `digest` (AU-20);
    a field of a field is named `evidence.path`.
    """

    name: str
    summary: str  # one line, for people and agents
    result: type[Result]
    run: Callable[[Any, "Operation"], Result]  # takes the request of the kind below
    request: type[Request] | None  # None: the action takes no request
    varying: tuple[str, ...] = ()
    writes: bool = False  # whether it makes the directory `output`


class Operation:
    """One request being carried out; `claim` makes its output directory.

    An action looks at everything that it can before it claims: until then an error is Refused, and nothing was written;
    from then on it is Failed, and the output is used up.
    """

    def __init__(
        self,
        *,
        action: str,
        request_path: Path | None,
        request_sha256: str,
        claiming: Callable[["Operation", Path], None],
        requiring_fresh: Callable[[Path], None],
    ) -> None:
        self.action = action
        self.request_path = request_path
        self.request_sha256 = request_sha256
        self.output: Path | None = None  # once it is claimed
        self._claiming = claiming
        self._requiring_fresh = requiring_fresh

    def claim(self, output: str) -> Path:
        """Make the fresh directory `output` with the mark of this operation, and return its absolute path.

        Raises:
            RequestError: Refused, `output_not_fresh`: the name is taken.
            HostError: Refused: it cannot be made.
        """
        path = Path(output).absolute()
        self._claiming(self, path)
        self.output = path
        return path

    def require_fresh(self, output: str) -> None:
        """Refuse an output that `claim` would refuse; for a dry run, which makes nothing.

        Raises:
            RequestError: Refused, `output_not_fresh`.
        """
        self._requiring_fresh(Path(output).absolute())
