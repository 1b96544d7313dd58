"""The end line of a recorded command, out of its wait status and what was seen of it; loaded once it runs (PF-16)."""

from paritrace.clock import Clock, rfc3339
from paritrace.evidence.gaps import Gap, gap_of, value_of
from paritrace.process.commands import CommandEnd
from paritrace.process.stop_facts import ExchangeEnd, StopFacts, StopGap
from paritrace.runs.command_watch import CommandWatch
from paritrace.runs.record_ends import End, RecordStatus
from paritrace.runs.record_lines import Ids, RecordGap
from paritrace.runs.stop import stop_of


def not_started(clock: Clock) -> StopFacts:
    """Return the facts of a command that could not be started."""
    return StopFacts(exchange=ExchangeEnd.RAISED, ended_ns=clock.monotonic_ns(), wait_gap=Gap(StopGap.NOT_STARTED))


def facts_of(ended: CommandEnd, watch: CommandWatch) -> StopFacts:
    """Return what is known of how a command ended."""
    memory = watch.memory
    return StopFacts(
        exchange=ended.exchange,
        ended_ns=ended.ended_ns,
        host_ended_ns=ended.host_ended_ns,
        wait=ended.wait,
        timer=ended.timer,
        force_stopped=ended.force_stopped,
        sent=ended.sent,
        stopped=ended.stopped,
        rises=memory.rises,
        exclusivity=memory.exclusivity,
        victims=(*watch.victims, *memory.victims),
        killers=memory.killers,
        left=watch.left,
        remarks=(*watch.remarks, *memory.remarks),
    )


def end_line(ids: Ids, facts: StopFacts, watch: CommandWatch, *, began_ns: int, clock: Clock) -> End:
    """Return the end line of now, which follows from the facts."""
    wall_ns, monotonic_ns = clock.wall_ns(), clock.monotonic_ns()
    return End(
        time=rfc3339(wall_ns),
        wall_ns=wall_ns,
        monotonic_ns=monotonic_ns,
        runtime_id=ids.runtime_id,
        invocation_id=ids.invocation_id,
        request_id=ids.request_id,
        status=status_of(facts),
        error=None,
        elapsed_seconds=(facts.ended_ns - began_ns) / 1e9,
        stop=stop_of(facts),
        facts=facts,
        oom_kill=value_of(watch.memory.count),
        oom_kill_gap=gap_of(watch.memory.count),
        usage_gap=Gap(RecordGap.NOT_COLLECTED),
        resources=value_of(watch.resources),
        resources_gap=gap_of(watch.resources),
        sampled=value_of(watch.sampled),
        sampled_gap=gap_of(watch.sampled),
    )


def status_of(facts: StopFacts) -> RecordStatus:
    """Return the one-word status of an exchange."""
    match facts.exchange:
        case ExchangeEnd.SUCCEEDED:
            return RecordStatus.SUCCEEDED
        case ExchangeEnd.CANCELLED:
            return RecordStatus.CANCELLED
        case _:
            return RecordStatus.FAILED
