"""The two sides of a narrowing: a run directory or a request file, with the request by which it runs again (CP-15)."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.runs.reading import open_run
from paritrace.runs.request import RunRequest, parse_request, request_of

SUFFIX = ".json"


class AskedSide(Struct, frozen=True):
    """One side. `run` is None where a request file was given; `digest` is that of run.json or of the file."""

    name: str
    path: Path
    run: Path | None
    request: RunRequest
    digest: str


def asked_side(path: Path, *, name: str, launcher: str = "", files: Files = LOCAL) -> AskedSide:
    """Read a side. `launcher` fills in what started the ranks where the run does not know it.

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
