"""Configuration on this rank: at the start, by configure, by rebuild, by a load; planned whole, then applied (SE-9)."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from paritrace.evidence.plain_json import is_object
from paritrace.session.commands import Body, Kind, Reason
from paritrace.session.configuration import Given, Resolved, Setting, Source, changed_fields, needs_rebuild, resolved
from paritrace.session.rank import previewing, supplying
from paritrace.session.rank.place import Before, Declined, Outcome, Place, Task, digest_of
from paritrace.session.workload import RUN_BOUNDARY, InputSet, Plan, Refusal


class Change(Struct, frozen=True):
    """A configuration as it will be: planned on this rank, nothing applied."""

    given: Given
    resolved: Resolved | None  # None where the workload declares no fields
    values: Mapping[str, Any]  # all of them
    world_size: int
    plan: Plan | None = None  # of what differs; None where nothing does
    inputs: InputSet | None = None
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> Body:
        """What is told of it: every value with its source where fields are declared (SE-26)."""
        changed = {} if self.plan is None else self.plan.values
        return {"config": _told(self.resolved, self.values, world_size=self.world_size), "changed": sorted(changed)}


class Differing(Struct, frozen=True):
    """What is asked for beside the values themselves."""

    may_rebuild: bool = False  # fields that device state is made from may change, too
    stored: Mapping[str, Any] | None = None  # a checkpoint's values
    requested: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tolerate_unknown: bool = False


def _without_unknown(place: Place, given: Given) -> Given:
    """What was tolerated once is not asked for again: the next request would be refused for it."""
    if place.declared is None:
        return given
    known = {one.name for one in place.declared}
    return replace(given, requested={name: value for name, value in given.requested.items() if name in known})


def first(place: Place, stored: Mapping[str, Any] | None) -> None:
    """Resolve the configuration that the workload is built under. Raises Declined."""
    place.declared = tuple(place.workload.config_fields()) if place.can("config_fields") else None
    given = Given(requested=place.spec.first_config, stored=stored, tolerate_unknown=place.spec.tolerate_unknown)
    whole = _resolved(place, given)
    values = {**(stored or {}), **place.spec.first_config} if whole is None else whole.values
    place.given, place.resolved = _without_unknown(place, given), whole
    for note in () if whole is None else whole.notes:
        place.context.warn(note)
    place.context.configure(values, config_revision=place.context.config_revision)


def told(place: Place) -> Body:
    """The configuration in force, every value with its source where fields are declared (SE-26)."""
    return _told(place.resolved, place.context.plain_config, world_size=place.context.world_size)


def prepare(task: Task) -> Outcome:
    """Prepare the inputs on the host, while steps go on; values that cannot be are told with what is wrong of these.

    The workload's own plan, which its work thread makes, is part of the vote.
    """
    place = task.place
    reasons: list[Reason] = []
    try:
        _wanted(place, _asked(task, may_rebuild=task.kind is Kind.REBUILD))
    except Declined as refusal:
        reasons += refusal.reasons
    return supplying.prepared_for(task, task.body["inputs"], besides=tuple(reasons))


def vote(task: Task) -> Outcome:
    """Plan the changes, with the inputs that were prepared. Nothing changes."""
    return _voted(task, may_rebuild=False)


def act(task: Task) -> Outcome:
    """Apply what was planned, install and publish what was prepared. The values before are kept (SE-33)."""
    place, change = task.place, task.kept()
    assert isinstance(change, Change)
    before = _before(place, change)
    task.releases()
    put_in_force(place, change, revision=place.context.config_revision + 1)
    place.before = before
    _put_inputs(task, change)
    return _acted(task, change)


def vote_rebuild(task: Task) -> Outcome:
    """Plan the whole new request; what cannot be is refused before anything is released (SE-33)."""
    return _voted(task, may_rebuild=True)


def act_rebuild(task: Task) -> Outcome:
    """Make device state anew under the new configuration; host inputs stay unless others came with the request."""
    place, change = task.place, task.kept()
    assert isinstance(change, Change)
    before = (place.given, place.resolved, place.context.plain_config, place.context.config_revision)
    _set(place, change, revision=place.context.config_revision + 1)
    try:
        _put_inputs(task, change)
        task.releases()
        place.workload.rebuild(place.context, dict(task.body))
    except Exception:  # whoever reads the configuration after this sees that of the state
        place.given, place.resolved, config, revision = before
        place.context.configure(config, config_revision=revision)
        raise
    place.before = None
    place.changed()
    if place.can("release_setup"):
        place.workload.release_setup(place.context)
    place.offers_preview = previewing.offered(place)
    return _acted(task, change)


def changed(place: Place, asked: Differing) -> Change:
    """Return the configuration with what is asked for in it, planned by the workload. Raises Declined, every reason."""
    given, whole = _wanted(place, asked)
    now, size = place.context.plain_config, place.context.world_size
    if whole is None:
        values: Mapping[str, Any] = {**now, **(asked.stored or {}), **asked.requested}
        differing = {name: value for name, value in values.items() if name not in now or now[name] != value}
        return Change(given, None, values, size, _planned(place, differing, asked, declared=None))
    assert place.resolved is not None
    differing = {name: whole.values[name] for name in changed_fields(place.resolved, whole)}
    plan = _planned(place, differing, asked, declared=whole)
    return Change(given, whole, whole.values, size, plan, notes=(*whole.notes, *(() if plan is None else plan.notes)))


def _wanted(place: Place, asked: Differing) -> tuple[Given, Resolved | None]:
    """What is asked for, resolved: the workload is not asked. Raises Declined, every reason."""
    _refuse_facts_of_inputs(place, asked.requested)
    given = _given(place, asked)
    whole = _resolved(place, given)
    if whole is not None and not asked.may_rebuild:
        assert place.resolved is not None
        if names := needs_rebuild(place.resolved, whole):
            words = "takes effect by a rebuild only"
            raise Declined(*(place.reason("needs_rebuild", f"{name}: {words}") for name in names))
    return _without_unknown(place, given), whole


def _asked(task: Task, *, may_rebuild: bool) -> Differing:
    """What the body of a command asks for. Raises Declined where it is none."""
    place, body = task.place, task.body
    task.only("values", "inputs", "tolerate_unknown")
    values = body.get("values", {})
    if not is_object(values):
        raise Declined(place.reason("bad_values", "`values` is no object of names and values"))
    tolerate = bool(body.get("tolerate_unknown", False))
    return Differing(may_rebuild=may_rebuild, requested=values, tolerate_unknown=tolerate)


def _given(place: Place, asked: Differing) -> Given:
    """A load starts from what its checkpoint stored, but for fields that belong to the request; the rest go on."""
    if asked.stored is None:
        return Given(
            requested={**place.given.requested, **asked.requested},
            owned=place.given.owned,
            stored=place.given.stored,
            tolerate_unknown=asked.tolerate_unknown,
        )
    now = place.context.plain_config
    owned = {one.name: now[one.name] for one in place.declared or () if one.owned_by_request}
    return Given(requested=asked.requested, owned=owned, stored=asked.stored, tolerate_unknown=asked.tolerate_unknown)


def put_in_force(place: Place, change: Change, *, revision: int) -> None:
    """Have the workload apply a planned change; from now on it is the configuration, under this revision."""
    if change.plan is not None and place.can("plan_config"):
        place.workload.apply_config(place.context, change.plan)
    _set(place, change, revision=revision)
    place.changed()


def put_back(place: Place) -> str | None:
    """Put the values back that were in force before a configure whose first step did not come to an end (SE-33).

    Returns what is told of it; None where a step was taken since, or nothing was configured.
    """
    before, place.before = place.before, None
    if before is None or before.steps_taken != place.steps_taken:
        return None
    if before.undo is not None:
        place.workload.apply_config(place.context, before.undo)
    place.given, place.resolved = before.given, before.resolved
    place.context.configure(before.config, config_revision=before.config_revision)
    return f"the values of revision {before.config_revision} are in force again on this rank"


def _told(whole: Resolved | None, values: Mapping[str, Any], *, world_size: int) -> Body:
    if whole is None:  # no fields are declared, so every value was given by whoever asked
        settings = tuple(Setting(name, value, Source.REQUEST, None, requested=value) for name, value in values.items())
        whole = Resolved(settings, world_size)
    found: Body = to_builtins(whole)
    return found


def _voted(task: Task, *, may_rebuild: bool) -> Outcome:
    place = task.place
    change = changed(place, _asked(task, may_rebuild=may_rebuild))
    if "inputs" in task.body:
        change = replace(change, inputs=task.kept())
    place.retained[task.command_id] = change
    return Outcome(digest=agreed_digest(change), notes=change.notes, facts=change.facts)


def agreed_digest(change: Change) -> str:
    """What all ranks must have planned alike."""
    plan = change.plan
    return digest_of(
        {
            "values": dict(change.values),
            "plan": None if plan is None else {"values": plan.values, "impact": plan.impact},
            "inputs": None if change.inputs is None else change.inputs.digest,
        }
    )


def _planned(place: Place, differing: dict[str, Any], asked: Differing, *, declared: Resolved | None) -> Plan | None:
    if not differing or not place.can("plan_config"):
        return None
    plan = place.workload.plan_config(place.context, dict(differing))
    if isinstance(plan, Refusal):
        raise place.refusal(plan, "plan_refused")
    if declared is None and not asked.may_rebuild:
        rebuilt = sorted(name for name in differing if plan.impact.get(name) != RUN_BOUNDARY)
        if rebuilt:
            raise Declined(
                *(place.reason("needs_rebuild", f"{name}: takes effect by a rebuild only") for name in rebuilt)
            )
    assert isinstance(plan, Plan)
    return plan


def _put_inputs(task: Task, change: Change) -> None:
    place = task.place
    if change.inputs is not None:
        task.releases()
        place.changed()
        place.workload.install_inputs(place.context, change.inputs)
        task.releases()
        supplying.publish_set(place, change.inputs)


def _before(place: Place, change: Change) -> Before:
    """The values in force, and the plan that brings them back: asked for while nothing has changed."""
    now = dict(place.context.plain_config)
    undo = None
    if change.plan is not None and place.can("plan_config"):
        asked = place.workload.plan_config(
            place.context, {name: now[name] for name in change.plan.values if name in now}
        )
        undo = asked if isinstance(asked, Plan) else None
    return Before(place.given, place.resolved, now, place.context.config_revision, undo, place.steps_taken)


def _acted(task: Task, change: Change) -> Outcome:
    place = task.place
    place.retained.pop(task.command_id, None)
    facts = {**change.facts, **({} if change.inputs is None else {"inputs": place.inputs.facts})}
    return Outcome(config_revision=place.context.config_revision, notes=change.notes, facts=facts)


def _set(place: Place, change: Change, *, revision: int) -> None:
    place.given, place.resolved = change.given, change.resolved
    place.context.configure(change.values, config_revision=revision)


def _resolved(place: Place, given: Given) -> Resolved | None:
    if place.declared is None:
        return None
    size = place.spec.world_size
    found = resolved(place.declared, given, asked_world_size=size, joined_world_size=place.context.world_size)
    if isinstance(found, Resolved):
        return found
    raise Declined(*(place.reason(reason.code, reason.words) for reason in found))


def _refuse_facts_of_inputs(place: Place, requested: Mapping[str, Any]) -> None:
    """A request may not restate what belongs to the inputs (SE-23)."""
    facts = {} if place.inputs.known is None else place.inputs.known.facts
    reasons = [
        place.reason("fact_of_inputs", f"{name}: belongs to the inputs, {facts[name]!r}")
        for name in requested
        if name in facts
    ]
    if reasons:
        raise Declined(*reasons)
