"""Where ranks that somebody else starts find the coordinator: a file in its directory, and dialling (SE-16)."""

import os
import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from paritrace.errors import HostError, RequestError
from paritrace.evidence.gaps import Gap
from paritrace.files.local import Files
from paritrace.process.identity import own_identity
from paritrace.session.engines.lines import SocketLine, ends_with_its_machine
from paritrace.session.engines.seam import RankSpec
from paritrace.session.messages import Joined, encoded

NAME = "rendezvous.json"
FORMAT = "paritrace-session-rendezvous"
VERSION = "1.0"
DIAL_SECONDS = 10.0  # a listener of this cluster answers at once; a training does not wait longer for its control


class Rendezvous(Struct, frozen=True, forbid_unknown_fields=True):
    """`rendezvous.json`, 0600, there while the coordinator takes ranks. It holds the token that they show."""

    host: str
    port: int
    session_id: str
    generation: int
    world_size: int
    job_id: str
    token: str
    format: str = FORMAT
    version: str = VERSION


def publish(files: Files, spec: RankSpec, *, host: str, port: int) -> None:
    """Write where to dial. Raises HostError."""
    found = Rendezvous(host, port, spec.session_id, spec.generation, spec.world_size, spec.job_id, spec.token)
    files.replace(Path(spec.directory, NAME), msgspec.json.format(msgspec.json.encode(found)), mode=0o600)


def withdraw(files: Files, spec: RankSpec) -> None:
    """No rank is taken any more. Raises HostError."""
    path = Path(spec.directory, NAME)
    if files.exists(path):
        files.remove(path)


def rendezvous_in(directory: Path, /) -> Rendezvous:
    """Return where to dial.

    Raises:
        RequestError: Refused: `no_rendezvous`: no coordinator takes ranks there, or its file cannot be read.
    """
    try:
        return msgspec.json.decode((directory / NAME).read_bytes(), type=Rendezvous)
    except (OSError, msgspec.MsgspecError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RequestError(
            f"no session takes ranks in {directory}: {why}",
            code="no_rendezvous",
            fix="start its coordinator first: paritrace session start --engine attach",
        ) from None


def joined_as(found: Rendezvous, *, rank: int, world_size: int, capabilities: tuple[str, ...] = ()) -> Joined:
    """Return the first word of this process as a rank."""
    own = own_identity()
    return Joined(
        generation=found.generation,
        rank=rank,
        world_size=world_size,
        job_id=found.job_id,
        token=found.token,
        pid=os.getpid(),
        host=own.host,
        boot_id=None if isinstance(own.boot_id, Gap) else own.boot_id,
        start_ticks=None if isinstance(own.start_ticks, Gap) else own.start_ticks,
        capabilities=capabilities,
    )


def dialled(host: str, port: int, joined: Joined | None = None) -> SocketLine:
    """Return the line to a coordinator, after this first word; without one it is the caller's to send.

    Raises:
        HostError: Refused: `coordinator_not_reached`.
    """
    try:
        end = socket.create_connection((host, port), timeout=DIAL_SECONDS)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends_with_its_machine(end)
        line = SocketLine(end)
        if joined is not None:
            line.send(encoded(joined))
    except OSError as error:
        raise HostError(
            f"the coordinator at {host}:{port} cannot be reached: {error.strerror or error}",
            code="coordinator_not_reached",
            fix="look whether it lives: paritrace session status",
        ) from None
    return line
