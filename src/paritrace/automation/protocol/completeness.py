"""Whether a capture of the protocol is a success: a rule over what launcher and ranks left (AU-4, AU-15, AU-18)."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from paritrace.automation.protocol.troubles import Trouble
from paritrace.automation.protocol.workloads import Begun, Completion


class Left(Struct, frozen=True):
    """What is there when the launcher has ended.

    `late`: ranks that had begun and not ended when the launcher returned. `again`: ranks that were started twice.
    `running`: ranks that are not known to have stopped.
    """

    launcher_status: int | None  # None: its time was up
    begun: Mapping[int, Begun]
    late: frozenset[int]
    again: frozenset[int]
    completions: Mapping[int, Completion]
    running: frozenset[int]


def problems(expected: Sequence[int], left: Left) -> tuple[Trouble, ...]:
    """Everything that makes a capture a failed one, the cause before what follows from it; empty for a success."""
    return (*_of_ranks(expected, left), *_of_launcher(expected, left), *_empty(left))


def _of_launcher(expected: Sequence[int], left: Left) -> Iterator[Trouble]:
    if left.launcher_status is None:
        yield Trouble(
            code="workload_timeout",
            message="the workload had not ended in time and was ended",
            fix="give it longer with timeout_seconds, or see in workload.log where it waits",
        )
    elif left.launcher_status:
        yield Trouble(
            code="launcher_failed",
            message=f"the launcher ended with status {left.launcher_status}",
            fix="read workload.log in the output; run the workload under its launcher by hand",
        )
    elif left.late:
        ranks = _listed(left.late)
        yield Trouble(
            code="launcher_returned_early",
            message=f"the launcher returned before {ranks} had ended",
            fix="use a launcher that waits for its ranks: torchrun, srun or python itself",
        )
    silent = sorted(set(expected) - left.completions.keys() - left.begun.keys())
    if silent:
        yield Trouble(
            code="ranks_missing",
            message=f"never began: {_listed(silent)}",
            fix="name in workload.ranks what the launcher starts, and see workload.log for why a rank ended",
        )
    unended = sorted(left.begun.keys() - left.completions.keys() - left.running)
    if unended:
        yield Trouble(
            code="ranks_missing",
            message=f"began and left no receipt: {_listed(unended)}",
            fix="name in workload.ranks what the launcher starts, and see workload.log for why a rank ended",
        )
    if left.running:
        where = ", ".join(f"rank {rank} on {left.begun[rank].process.host}" for rank in sorted(left.running))
        yield Trouble(
            code="not_confirmed_stopped",
            message=f"not known to have stopped: {where}",
            fix="end them by their scheduler; nothing here can reach them",
        )


def _of_ranks(expected: Sequence[int], left: Left) -> Iterator[Trouble]:
    for rank in sorted(left.again):
        yield Trouble(
            code="restart_into_capture",
            message=f"rank {rank} was started twice into the same output: again, or by two processes of one rank",
            fix="start the launcher without restarts (torchrun --max-restarts 0) and with ranks unique over all nodes, "
            "and ask again with a new output",
        )
    for rank, done in sorted(left.completions.items()):
        where = f"rank {rank} on {done.node_id}"
        for trouble in done.troubles:
            named = "".join(f"; {file}: {how}" for file, how in sorted(done.not_as_planned.items()))
            yield Trouble(trouble.code, f"{where}: {trouble.message}{named}", trouble.fix)
        if rank not in expected:
            yield Trouble(
                code="unexpected_rank",
                message=f"{where} is not among the ranks of the request",
                fix="name in workload.ranks exactly the ranks that the launcher starts",
            )
        if done.world_size != len(expected):
            said = f"{where} is one of {done.world_size}, the request names {len(expected)}"
            yield Trouble(
                code="unexpected_rank",
                message=said,
                fix="name in workload.ranks exactly the ranks that the launcher starts",
            )
        if not done.troubles and done.exit_status:
            yield Trouble(
                code="rank_failed",
                message=f"{where} ended with status {done.exit_status}",
                fix="read workload.log in the output; run the workload under its launcher by hand",
            )


def _empty(left: Left) -> Iterator[Trouble]:
    for rank, done in sorted(left.completions.items()):
        if not done.troubles and not done.calls:
            message = f"rank {rank} on {done.node_id} recorded no call with tensors"
            yield Trouble(
                code="empty_trace",
                message=message,
                fix="choose steps that the workload reaches, and a script whose own code calls something with tensors",
            )


def _listed(ranks: Sequence[int] | frozenset[int]) -> str:
    numbers = sorted(ranks)
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {', '.join(map(str, numbers))}"
