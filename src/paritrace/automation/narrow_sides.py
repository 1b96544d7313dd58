"""The two sides of a narrowing: a run, a request file or a session, with how it is captured again (CP-15, SE-15)."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import HostError, RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.runs.reading import open_run
from paritrace.runs.request import RunRequest, parse_request, request_of

SUFFIX = ".json"


class Resident(Struct, frozen=True):
    """A session whose ranks are put at one of its checkpoints for every capture (SE-15)."""

    directory: Path
    checkpoint: str
    digest: str  # of the checkpoint's manifest
    step: int


class AskedSide(Struct, frozen=True):
    """One side. `run` is None where a request file or a session was given; `digest` is that of run.json, of the file or
    of the checkpoint. `again`: how it is captured again.
    """

    name: str
    path: Path
    run: Path | None
    again: RunRequest | Resident
    digest: str


def request_of_side(side: AskedSide) -> RunRequest:
    """Return how a side is started anew.

    Raises:
        RequestError: Refused: `needs_runs`: it is a session, whose ranks are never started by us.
    """
    if isinstance(side.again, Resident):
        raise RequestError(
            f"{side.path} is a session; this needs a run that is started anew",
            code="needs_runs",
            fix="give runs made by `paritrace run`, or leave --compile, --perturb and --upcast out",
        )
    return side.again


def asked_side(path: Path, *, name: str, launcher: str = "", files: Files = LOCAL) -> AskedSide:
    """Read a side that is a run or a request file. `launcher` is what started the ranks where the run does not know it.

    Raises:
        EvidenceError: Refused: it is no run (`not_a_run`), does not say how it was started (`no_request`), or is no
            request file (`foreign_request`, `newer_version`, `invalid_document`).
        HostError: Refused: `not_found`, or what the disk says.
    """
    if not files.exists(path):
        raise HostError(f"{path} does not exist", code="not_found", fix="check the path of the run")
    if path.suffix == SUFFIX and not path.is_dir() and path.name != "run.json":
        data = files.read(path)
        request = parse_request(data, name=str(path))
        return AskedSide(name, path, None, _launched(request, launcher), sha256_hex(data))
    with open_run(path) as run:
        return AskedSide(name, path, path, _launched(request_of(run), launcher), run.digest)


def _launched(request: RunRequest, launcher: str) -> RunRequest:
    return replace(request, launcher=launcher) if launcher and isinstance(request.launcher, Gap) else request
