"""Which start of a job this process belongs to: launcher, job, restart count and rank, from its environment (EV-13)."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity

_SLURM_NOT_A_STEP = frozenset({"", "4294967291", "4294967294", "batch", "extern", "interactive"})
_ID_DIGITS = 24  # of a digest, in an id that is derived from one
_NO_RENDEZVOUS_ID = "none"  # what torchrun writes when --rdzv-id was not given


class Launcher(StrEnum):
    TORCHRUN = "torchrun"
    SLURM = "slurm"
    MPI = "mpi"
    ENVIRONMENT = "environment"  # RANK and WORLD_SIZE set by something else
    PROCESS = "process"  # no launcher: the process itself is the start


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """The start identity of a run: ranks of one start join one run directory."""

    launcher: Launcher
    job: str


class Launch(Struct, frozen=True):
    """This process's place in its start."""

    start: Start
    restart: int
    rank: int
    local_rank: int | Gap[RunGap]
    world_size: int
    job_id: str | Gap[RunGap]
    agent: str = ""  # the launcher's process that started this one and counts restarts; "" where none is known
    several_agents: bool = False  # ranks of this start have other agents


def launch_of(environ: Mapping[str, str], *, process: ProcessIdentity) -> Launch:
    """Return the launch that `environ` describes, innermost launcher first.

    Raises:
        RequestError: Refused, code `bad_launch_environment`: a variable of the launcher is missing or not a number.
    """
    if "TORCHELASTIC_RUN_ID" in environ:
        return _torchrun(environ)
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return _environment(environ)
    if environ.get("SLURM_STEP_ID", "") not in _SLURM_NOT_A_STEP and "SLURM_PROCID" in environ:
        return _slurm(environ)
    if "OMPI_COMM_WORLD_RANK" in environ:
        return _mpi(environ)
    return Launch(
        start=Start(launcher=Launcher.PROCESS, job=_process_job(process)),
        restart=0,
        rank=0,
        local_rank=0,
        world_size=1,
        job_id=_scheduler_job(environ),
    )


def shared_run_id(launch: Launch) -> str | None:
    """Return an id of the run that every rank of a launch derives alike; None where nothing tells it from other starts.

    A torchrun on one node names itself at random, a scheduler numbers its jobs; a rendezvous id is the user's own word.
    An address and a port alone are those of other starts too.
    """
    told = launch.start.job
    match launch.start.launcher:
        case Launcher.TORCHRUN if launch.agent and not launch.several_agents:
            told = launch.agent
        case Launcher.TORCHRUN if told.startswith(f"{_NO_RENDEZVOUS_ID}@"):
            told = ""
        case Launcher.ENVIRONMENT | Launcher.PROCESS:
            told = ""
        case Launcher.TORCHRUN | Launcher.SLURM | Launcher.MPI:
            pass
    digest = sha256_hex(f"{launch.start.launcher.value} {told}".encode())
    return f"launch-{digest[:_ID_DIGITS]}" if told else None


def _torchrun(environ: Mapping[str, str]) -> Launch:
    job = environ["TORCHELASTIC_RUN_ID"]
    if job == _NO_RENDEZVOUS_ID:
        job = _unnamed_torchrun(environ)
    return Launch(
        start=Start(launcher=Launcher.TORCHRUN, job=job),
        restart=_number(environ, "TORCHELASTIC_RESTART_COUNT", default=0),
        rank=_number(environ, "RANK"),
        local_rank=_number(environ, "LOCAL_RANK"),
        world_size=_number(environ, "WORLD_SIZE"),
        job_id=_scheduler_job(environ, otherwise=job),
        agent=_torchrun_agent(environ),
        several_agents=not _one_node(environ),
    )


def _unnamed_torchrun(environ: Mapping[str, str]) -> str:
    """Tell apart two starts without a rendezvous id: by the agent's own log folder where one node has all ranks."""
    agent = _torchrun_agent(environ)
    return agent if _one_node(environ) and agent else f"{_NO_RENDEZVOUS_ID}@{_rendezvous(environ)}"


def _torchrun_agent(environ: Mapping[str, str]) -> str:
    """The agent's log folder, which it names at random once: `ID_RANDOM` of `…/ID_RANDOM/attempt_N/RANK/error.json`."""
    folders = environ.get("TORCHELASTIC_ERROR_FILE", "").split("/")
    return folders[-4] if len(folders) > 4 else ""


def _one_node(environ: Mapping[str, str]) -> bool:
    return environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE")


def _environment(environ: Mapping[str, str]) -> Launch:
    return Launch(
        start=Start(launcher=Launcher.ENVIRONMENT, job=_scheduler_prefix(environ) + _rendezvous(environ)),
        restart=0,
        rank=_number(environ, "RANK"),
        local_rank=_optional(environ, "LOCAL_RANK"),
        world_size=_number(environ, "WORLD_SIZE"),
        job_id=_scheduler_job(environ),
    )


def _slurm(environ: Mapping[str, str]) -> Launch:
    job = environ.get("SLURM_JOB_ID", "")
    return Launch(
        start=Start(launcher=Launcher.SLURM, job=f"{job}.{environ['SLURM_STEP_ID']}"),
        restart=_number(environ, "SLURM_RESTART_COUNT", default=0),
        rank=_number(environ, "SLURM_PROCID"),
        local_rank=_optional(environ, "SLURM_LOCALID"),
        world_size=_number(environ, "SLURM_STEP_NUM_TASKS", default=_number(environ, "SLURM_NTASKS", default=1)),
        job_id=_scheduler_job(environ),
    )


def _mpi(environ: Mapping[str, str]) -> Launch:
    job = environ.get("PMIX_NAMESPACE") or environ.get("OMPI_MCA_ess_base_jobid", "")
    return Launch(
        start=Start(launcher=Launcher.MPI, job=_scheduler_prefix(environ) + job),
        restart=0,
        rank=_number(environ, "OMPI_COMM_WORLD_RANK"),
        local_rank=_optional(environ, "OMPI_COMM_WORLD_LOCAL_RANK"),
        world_size=_number(environ, "OMPI_COMM_WORLD_SIZE"),
        job_id=_scheduler_job(environ, otherwise=job),
    )


def _rendezvous(environ: Mapping[str, str]) -> str:
    return f"{environ.get('MASTER_ADDR', '')}:{environ.get('MASTER_PORT', '')}"


def _scheduler_prefix(environ: Mapping[str, str]) -> str:
    job = environ.get("SLURM_JOB_ID", "")
    return f"{job}/" if job else ""


def _scheduler_job(environ: Mapping[str, str], *, otherwise: str = "") -> str | Gap[RunGap]:
    return environ.get("SLURM_JOB_ID") or otherwise or Gap(RunGap.NO_LAUNCHER)


def _process_job(process: ProcessIdentity) -> str:
    boot = "unknown-boot" if isinstance(process.boot_id, Gap) else process.boot_id
    ticks = "unknown-start" if isinstance(process.start_ticks, Gap) else str(process.start_ticks)
    return f"{process.host}/{boot}/{process.pid}/{ticks}"


def _optional(environ: Mapping[str, str], name: str) -> int | Gap[RunGap]:
    return _number(environ, name) if name in environ else Gap(RunGap.NO_LAUNCHER, f"{name} is not set")


def _number(environ: Mapping[str, str], name: str, *, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit():
        raise RequestError(
            f"the launcher's variable {name} is {text!r}, not a number",
            code="bad_launch_environment",
            fix=f"start through a launcher that sets {name}, or unset its variables for a run without one",
        )
    return int(text)
