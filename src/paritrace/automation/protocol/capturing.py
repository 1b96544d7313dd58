"""Runs a workload under its launcher, captured on every rank, and accepts only a whole capture (AU-4, AU-15, AU-18)."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from paritrace.automation.protocol import workloads
from paritrace.automation.protocol.completeness import Left, problems
from paritrace.automation.protocol.troubles import Trouble, failure
from paritrace.automation.protocol.workloads import Begun, Completion, Order, Workload
from paritrace.capture.launch import find_script
from paritrace.capture.plans import Steps
from paritrace.capture.publishing import is_shared, require_own_disk
from paritrace.capture.settings import DEFAULT_STEPS
from paritrace.capture.sites import workload_root
from paritrace.clock import SYSTEM
from paritrace.errors import HostError, RequestError
from paritrace.evidence import codec
from paritrace.evidence.ids import new_run_id
from paritrace.files import LOCAL, Files
from paritrace.process.ending import end_tree
from paritrace.process.identity import Life, has_ended, liveness, own_identity
from paritrace.process.logged import run_logged
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from paritrace.store.restoring import Restored, restore
from paritrace.store.targets import open_target

WORKER = "paritrace.automation.worker"
SHELLS = (".sh", ".bash", ".zsh", ".ksh", ".fish")
OWN_PREFIX = "PARITRACE_"
DETERMINISTIC = "PARITRACE_DETERMINISTIC"
Document = TypeVar("Document", bound=Struct)
ENDED = "launcher-ended"  # in the output
SHOWN_SECONDS = 90.0  # storage that nodes share may show a new file a minute late (NFS: acdirmax is 60 s)
LOOK_SECONDS = 0.25
_OF_RANKS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"})


class Place(Struct, frozen=True):
    """Where a workload is: absolute paths, and its script below the root of its checkout."""

    cwd: str
    script: str
    root: str
    main: str


class Captured(Struct, frozen=True):
    """A whole capture: the restored run and what each rank said of itself."""

    run: Path
    run_id: str
    completions: dict[int, Completion]


def place_of(workload: Workload) -> Place:
    """Find a workload's script and checkout; runs nothing.

    Raises:
        RequestError: Refused: `no_cwd`, `shell_script`, `no_script`, `bad_script`, `script_outside`.
    """
    cwd = Path(workload.cwd)
    if not cwd.is_absolute() or not cwd.is_dir():
        raise RequestError(
            f"workload.cwd {workload.cwd} is no folder", code="no_cwd", fix="give the absolute path of a folder"
        )
    script = cwd / workload.script
    _refuse_shell(script, workload.script)
    target = find_script(str(script), ())
    root = workload_root(target.path, imported_from=Path(target.search_path))
    return Place(str(cwd), workload.script, str(root), target.path.relative_to(root).as_posix())


def _refuse_shell(script: Path, name: str) -> None:
    try:
        with script.open("rb") as stream:
            first = stream.readline(256)
    except OSError:
        return  # said by whoever reads it next
    shebang = first.startswith(b"#!") and b"python" not in first
    if shebang or script.suffix in SHELLS:
        raise RequestError(
            f"workload.script {name} is no Python file but a script of another interpreter",
            code="shell_script",
            fix="name the Python file that it starts, its launcher in workload.launcher and its variables in env",
        )


def require_apart(output: Path, local_root: Path) -> None:
    """Refuse a local root in the output, or the output in it, or on shared storage.

    Raises:
        RequestError: Refused, `local_root_in_output`.
        HostError: Refused, `staging_is_shared`.
    """
    one, other = output.absolute().resolve(), local_root.resolve()
    if not local_root.is_absolute() or one == other or one in other.parents or other in one.parents:
        raise RequestError(
            f"local_root {local_root} and output {output} are not apart",
            code="local_root_in_output",
            fix="name an absolute folder on a disk of each node, outside the output",
        )
    require_own_disk(local_root)


def is_deterministic(workload: Workload, policy: workloads.Policy) -> bool:
    """Whether the deterministic policy is asked for, by the request or by its variable (CA-21)."""
    return policy.deterministic or workload.env.get(DETERMINISTIC, "") not in ("", "0")


def new_order(place: Place, workload: Workload, *, action: str, request_sha256: str, output: Path) -> Order:
    """The order for the ranks of one operation, to be completed with what is recorded."""
    return Order(
        action=action,
        request_sha256=request_sha256,
        output=str(output),
        store=str(output / workloads.STORE),
        local_root="",
        run_id=new_run_id(unix_ns=SYSTEM.wall_ns(), random=secrets.token_bytes(10)),
        cwd=place.cwd,
        script=workload.script,
        args=workload.args,
        ranks=workload.ranks,
        deterministic=False,
        steps=Steps(*DEFAULT_STEPS),
        declared_steps=False,
        regions=4,
    )


def capture(order: Order, workload: Workload, *, log: str, timeout_seconds: float, files: Files = LOCAL) -> Captured:
    """Run the workload to its end and restore what its ranks published.

    Nothing of the checkout is written; Python keeps no bytecode meanwhile, for files that are not rewritten either.

    Raises:
        EvidenceError: Failed: the code of the first thing that is wrong, all of them in `details`.
        HostError: `child_not_started`.
    """
    output = Path(order.output)
    path = output / workloads.ORDER
    files.replace(path, codec.encode_document(order))
    files.mkdir(output / workloads.RANKS)
    command = (*workload.launcher, "-m", WORKER, str(path), workload.script, *workload.args)
    late: set[int] = set()
    status: int | None = None

    def launcher_ended() -> None:
        late.update(_unended_here(output, files))
        files.replace(output / ENDED, b"the launcher has ended\n")

    try:
        with (output / log).open("ab") as stream:
            status = run_logged(
                command,
                directory=Path(order.cwd),
                environment=_environment(workload.env),
                log=stream,
                deadline_seconds=timeout_seconds,
                ended=launcher_ended,
            ).status
        if status == 0:
            late.update(_wait_for_others(order, files))
    except HostError as error:
        if error.code != "child_too_slow":
            raise
    finally:
        _end_ranks(output, files)
    found = _left(output, status, frozenset(late), files)
    wrong = problems(order.ranks, found)
    if wrong:
        raise failure(wrong)
    return _restored(order, found.completions, files)


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(OWN_PREFIX) and name not in _OF_RANKS
    }
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **own}


def _left(output: Path, status: int | None, late: frozenset[int], files: Files) -> Left:
    begun = _documents(output, workloads.BEGUN, Begun, files)
    completions = _documents(output, workloads.COMPLETION, Completion, files)
    folders = _rank_folders(output, files)
    again = {
        rank for rank, folder in folders.items() if any(one.name.startswith("again-") for one in files.list(folder))
    }
    running = {rank for rank, one in begun.items() if rank not in completions and not has_ended(one.process)}
    return Left(status, begun, late, frozenset(again), completions, frozenset(running))


def _unended_here(output: Path, files: Files) -> set[int]:
    """Ranks of this host that have not ended; a rank writes its receipt as the last thing before its end."""
    here = own_identity().host
    begun = _documents(output, workloads.BEGUN, Begun, files)
    done = _documents(output, workloads.COMPLETION, Completion, files)
    return {
        rank
        for rank, one in begun.items()
        if rank not in done and one.process.host == here and not has_ended(one.process)
    }


def _wait_for_others(order: Order, files: Files) -> set[int]:
    """Wait, within bounds, until shared storage shows what other nodes wrote; returns the ranks that were late.

    A receipt is late when it is younger than the mark of the launcher's end: one storage dates both (AU-10, AU-15).
    """
    output, here = Path(order.output), own_identity().host
    until = SYSTEM.monotonic_ns() + int(SHOWN_SECONDS * 1e9)
    while True:
        begun = _documents(output, workloads.BEGUN, Begun, files)
        done = _documents(output, workloads.COMPLETION, Completion, files)
        elsewhere = {rank for rank, one in begun.items() if one.process.host != here}
        hidden = set(order.ranks) - begun.keys() if elsewhere or is_shared(output) else set[int]()
        awaited = (elsewhere | hidden) - done.keys()
        if not awaited or SYSTEM.monotonic_ns() >= until:
            break
        SYSTEM.sleep(LOOK_SECONDS)
    ended_ns = files.modified_ns(output / ENDED)
    folder = output / workloads.RANKS
    return (elsewhere - done.keys()) | {
        rank
        for rank in elsewhere & done.keys()
        if files.modified_ns(folder / f"rank-{rank}" / workloads.COMPLETION) > ended_ns
    }


def _end_ranks(output: Path, files: Files) -> None:
    """End the ranks of this node that a launcher left, in sessions of their own or under another parent by now."""
    for one in _documents(output, workloads.BEGUN, Begun, files).values():
        if liveness(one.process).life is Life.ALIVE:
            end_tree(one.process.pid)


def _rank_folders(output: Path, files: Files) -> dict[int, Path]:
    listed = files.list(output / workloads.RANKS)
    named = ((path.name.removeprefix("rank-"), path) for path in listed)
    return {int(number): path for number, path in named if number.isdecimal()}


def _documents(output: Path, name: str, kind: type[Document], files: Files) -> dict[int, Document]:
    found = ((rank, files.read_if_present(folder / name)) for rank, folder in _rank_folders(output, files).items())
    return {rank: codec.decode_document(data, kind, name=name) for rank, data in found if data is not None}


def _restored(order: Order, completions: Mapping[int, Completion], files: Files) -> Captured:
    run = Path(order.output) / workloads.RUN
    restored = restore(open_target(order.store), run, files=files)
    wrong = [*_counts(restored, completions)]
    with open_run(run, files=files) as opened:
        found = verify(opened, files=files)
        wrong += [
            Trouble(
                code="damaged_capture",
                message=f"{item.id}: {item.status.value}: {item.detail}",
                fix="check the disks of staging and output, and ask again with a new output",
            )
            for item in found.items
            if item.status in (Finding.CHANGED, Finding.MISSING)
        ]
    if wrong:
        raise failure(wrong)
    return Captured(run, order.run_id, dict(completions))


def _counts(restored: Restored, completions: Mapping[int, Completion]) -> list[Trouble]:
    """What the store holds against what the ranks said they published."""
    held = {rank.rank: rank.bundles for rank in restored.ranks}
    return [
        Trouble(
            code="counts_differ",
            message=f"rank {rank} published {done.bundles} bundles, {held.get(rank, 0)} are there",
            fix="check that store and output are one folder for all nodes, and ask again with a new output",
        )
        for rank, done in completions.items()
        if held.get(rank, 0) != done.bundles
    ]
