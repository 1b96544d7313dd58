"""Which start a process belongs to, from the environment of its launcher (EV-13)."""

import pytest
from msgspec.structs import replace

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import checked_id
from paritrace.process.identity import own_identity
from paritrace.runs.launch import Launch, Launcher, launch_of, shared_run_id
from tests.runs.making import torchrun

ME = own_identity()


def launch(**environ: str) -> Launch:
    return launch_of(environ, process=ME)


def test_without_a_launcher_the_process_is_the_start() -> None:
    found = launch()
    assert (found.start.launcher, found.rank, found.world_size, found.restart) == (Launcher.PROCESS, 0, 1, 0)
    assert found.start.job == f"{ME.host}/{ME.boot_id}/{ME.pid}/{ME.start_ticks}"
    assert found.job_id == Gap(RunGap.NO_LAUNCHER)
    assert launch_of({}, process=replace(ME, start_ticks=1)).start != found.start


def test_ranks_of_one_torchrun_have_one_start() -> None:
    first, second = (launch_of(torchrun(rank), process=ME) for rank in (0, 1))
    assert first.start == second.start
    assert (first.rank, second.rank, second.local_rank, second.world_size) == (0, 1, 1, 2)
    assert first.job_id == "job-1"


def test_a_restart_of_torchrun_is_the_same_start_counted() -> None:
    first, again = (launch_of(torchrun(0, restart=restart), process=ME) for restart in (0, 3))
    assert first.start == again.start
    assert (first.restart, again.restart) == (0, 3)


def test_an_unnamed_rendezvous_on_one_node_is_told_by_the_agents_folder() -> None:
    environ = {**torchrun(0, job="none"), "LOCAL_WORLD_SIZE": "2"}
    one, other = (
        launch_of({**environ, "TORCHELASTIC_ERROR_FILE": f"/tmp/t_x/{name}/attempt_{attempt}/0/error.json"}, process=ME)
        for name, attempt in (("none_a", 0), ("none_b", 0))
    )
    again = launch_of({**environ, "TORCHELASTIC_ERROR_FILE": "/tmp/t_x/none_a/attempt_1/0/error.json"}, process=ME)
    assert one.start != other.start
    assert one.start == again.start


def test_an_unnamed_rendezvous_on_several_nodes_is_told_by_its_address() -> None:
    environ = {
        **torchrun(3, world_size=4, job="none"),
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "n0",
        "MASTER_PORT": "29500",
    }
    assert launch_of(environ, process=ME).start.job == "none@n0:29500"


def test_a_slurm_step() -> None:
    environ = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2", "SLURM_PROCID": "5", "SLURM_LOCALID": "1"}
    found = launch(**environ, SLURM_STEP_NUM_TASKS="8", SLURM_NTASKS="99", SLURM_RESTART_COUNT="1")
    assert (found.start.launcher, found.start.job) == (Launcher.SLURM, "77.2")
    assert (found.rank, found.local_rank, found.world_size, found.restart) == (5, 1, 8, 1)
    assert found.job_id == "77"


@pytest.mark.parametrize("step", ["", "4294967291", "batch"])
def test_a_plain_process_in_a_batch_script_is_alone(step: str) -> None:
    found = launch(SLURM_JOB_ID="77", SLURM_STEP_ID=step, SLURM_PROCID="0", SLURM_NTASKS="8")
    assert (found.start.launcher, found.world_size, found.job_id) == (Launcher.PROCESS, 1, "77")


def test_torchrun_inside_a_slurm_step_is_torchrun_of_that_job() -> None:
    found = launch(**torchrun(1), SLURM_JOB_ID="77", SLURM_STEP_ID="0", SLURM_PROCID="0")
    assert (found.start.launcher, found.start.job, found.job_id, found.rank) == (Launcher.TORCHRUN, "job-1", "77", 1)


def test_mpi() -> None:
    found = launch(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4", PMIX_NAMESPACE="ns9")
    assert (found.start.launcher, found.start.job, found.rank, found.world_size) == (Launcher.MPI, "ns9", 1, 4)
    assert found.local_rank == Gap(RunGap.NO_LAUNCHER, "OMPI_COMM_WORLD_LOCAL_RANK is not set")


def test_rank_and_world_size_set_by_something_else() -> None:
    found = launch(RANK="1", WORLD_SIZE="2", MASTER_ADDR="n0", MASTER_PORT="1234")
    assert (found.start.launcher, found.start.job, found.job_id) == (
        Launcher.ENVIRONMENT,
        "n0:1234",
        Gap(RunGap.NO_LAUNCHER),
    )


@pytest.mark.parametrize(
    "environ",
    [
        {**torchrun(0), "RANK": "zero"},
        {**torchrun(0), "RANK": "-1"},
        {**torchrun(0), "WORLD_SIZE": "²"},
        {name: value for name, value in torchrun(0).items() if name != "LOCAL_RANK"},
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(RequestError) as caught:
        launch_of(environ, process=ME)
    assert caught.value.code == "bad_launch_environment"


def test_st18_ranks_of_one_start_derive_one_run_id_and_other_starts_another() -> None:
    """A torchrun on one node by its agent's random name, on several by its rendezvous id, Slurm by job and step."""
    one_node = {**torchrun(0), "LOCAL_WORLD_SIZE": "2"}
    folder = "/tmp/t_x/{}/attempt_{}/0/error.json"
    ids = [
        shared_run_id(
            launch_of({**one_node, "RANK": rank, "TORCHELASTIC_ERROR_FILE": folder.format(*told)}, process=ME)
        )
        for rank, told in (("0", ("job-1_a", 0)), ("1", ("job-1_a", 1)), ("0", ("job-1_b", 0)))
    ]
    ids += [shared_run_id(launch_of(torchrun(rank, world_size=4, job="mine"), process=ME)) for rank in (0, 3)]
    slurm = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}
    ids += [shared_run_id(launch(**slurm, SLURM_STEP_ID=step, SLURM_PROCID=rank)) for step, rank in ("00", "01", "10")]
    assert [ids.index(one) for one in ids] == [0, 0, 2, 3, 3, 5, 5, 7]
    assert all(one is not None and one == checked_id(one, what="run id") for one in ids)


def test_st18_a_start_that_nothing_tells_from_others_has_no_id_of_its_own() -> None:
    address = {"MASTER_ADDR": "n0", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2"}
    assert shared_run_id(launch_of({**torchrun(3, world_size=4, job="none"), **address}, process=ME)) is None
    assert shared_run_id(launch(RANK="0", WORLD_SIZE="2", **address)) is None
    assert shared_run_id(launch()) is None
