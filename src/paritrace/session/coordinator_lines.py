"""What the coordinator's machine writes down of the command under way: runs, captures, inputs, a save (SE-8, SE-15)."""

from paritrace.session.commands import Body, Kind
from paritrace.session.coordinator_record import Turn, UnderWay
from paritrace.session.messages import Autosaved


def record_run(
    turn: Turn, event: str, command_id: str | None, *, step: int | None = None, schedule: object = None
) -> None:
    """Write into the journal what became of a run: admitted, parked, resumed, stopped, ended."""
    state = turn.state
    turn.record(
        "run",
        durable=event == "admitted",
        event=event,
        id=command_id,
        step=state.step if step is None else step,
        target=state.target,
        epoch=state.epoch,
        config_revision=state.config_revision,
        schedule=schedule,
    )


def record_capture(turn: Turn) -> None:
    """Write which steps are captured next, and under which name."""
    state, under = turn.state, turn.under
    turn.record(
        "capture",
        id=under.command.id,
        name=told_facts(under).get("name", under.body.get("name")),
        steps=under.body.get("steps"),
        level=under.body.get("level"),
        step=state.step,
        epoch=state.epoch,
        config_revision=state.config_revision,
    )


def to_keep(turn: Turn) -> Body:
    """Return what the manifest of a save is made of."""
    state, under = turn.state, turn.under
    return {
        **under.body,
        "step": state.step,
        "epoch": state.epoch,
        "config_revision": state.config_revision,
        "generation": state.generation,
        "inputs": {"digest": state.inputs_digest, "generation": state.inputs_generation},
        "digest": under.digest,
        "ranks": list(under.facts),
    }


def told_facts(under: UnderWay) -> Body:
    """Return what rank 0 told of, or all alike; of a preview what the ranks told that made one."""
    if under.command.kind is Kind.PREVIEW:
        made = [facts for facts in under.facts if facts]
        return {**made[0], "previews": made} if made else {}
    return under.facts[0] if under.facts else {}


def record_autosave(turn: Turn, said: Autosaved) -> None:
    """Write what became of an autosave; of one that failed, on which rank and why."""
    if said.words:
        failed: Body = {"rank": said.rank, "words": said.words}
        turn.record("checkpoint", event="autosave_failed", step=said.step, seconds=said.seconds, **failed)
    else:
        turn.record("checkpoint", event="autosaved", step=said.step, seconds=said.seconds, **said.facts)


def record_inputs(turn: Turn, digest: str | None) -> None:
    """Say which inputs are the present ones now: published by their own command, or with other values (SE-33)."""
    turn.change(inputs_digest=digest, inputs_generation=turn.state.inputs_generation + 1)
    turn.record(
        "inputs",
        durable=True,
        digest=digest,
        generation=turn.state.inputs_generation,
        step=turn.state.step,
        id=turn.under.command.id,
    )
