"""What a heartbeat tells of the work: read on the control thread from what the work thread swaps as a whole (SE-14)."""

from collections.abc import Mapping
from math import isfinite

from paritrace.session.commands import Body
from paritrace.session.rank import previewing
from paritrace.session.rank.control import WorkView
from paritrace.session.rank.place import Place


def view_of(place: Place, /) -> WorkView:
    """Return what is told of the work now."""
    context = place.context
    said, (step, metrics) = context.said, context.metrics
    live, following = place.is_live_as, previewing.next_step(place)
    return WorkView(
        phase=said.phase,
        deadline_seconds=said.deadline_seconds,
        progress=context.progress_body(),
        metrics=plain_metrics(metrics),
        metrics_step=step,
        warnings=said.warnings,
        capabilities=tuple(sorted(place.capabilities)),
        checkpoint={} if live is None else live.facts,
        preview=place.preview if following is None else {**place.preview, "next_step": following},
        inputs=place.inputs.facts,
    )


def plain_metrics(metrics: Mapping[str, object], /) -> Body:
    """Return the metrics that JSON can hold: numbers and texts. A number that is none (`nan`, `inf`) becomes a text;
    a value of another type, a tensor for example, is named by its type and not read: that might wait for a device."""
    return {str(name): _plain(value) for name, value in metrics.items()}


def _plain(value: object) -> float | int | str:
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(value)
    return f"not told: of type {type(value).__name__}"
