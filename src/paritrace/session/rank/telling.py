"""What a heartbeat tells of the work: read on the control thread from what the work thread swaps as a whole (SE-14)."""

from paritrace.session.rank import previewing
from paritrace.session.rank.control import WorkView
from paritrace.session.rank.place import Place
from paritrace.session.rank.plain import plain_metrics


def view_of(place: Place, /) -> WorkView:
    """Return what is told of the work now."""
    context = place.context
    said, measured = context.said, context.metrics
    live, following = place.is_live_as, previewing.next_step(place)
    return WorkView(
        phase=said.phase,
        deadline_seconds=said.deadline_seconds,
        progress=context.progress_body(),
        metrics=plain_metrics(measured.metrics),
        metrics_step=measured.step,
        metrics_epoch=measured.epoch,
        metrics_revision=measured.config_revision,
        warnings=said.warnings,
        capabilities=tuple(sorted(place.capabilities)),
        checkpoint={} if live is None else live.facts,
        preview=place.preview if following is None else {**place.preview, "next_step": following},
        inputs=place.inputs.facts,
        scheduled=dict(context.scheduled),
    )
