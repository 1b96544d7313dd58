"""What a mark of the ladder rests on (P9)."""

from paritrace.compare.result import LADDER, Comparison, Outside
from paritrace.reports.behind import Behind, pair_of, unknown_id
from paritrace.reports.behind_causes import change_text, outside_text
from paritrace.reports.wording import module_or_root, source_place

_CHANGES_OF = {"code": ("code", "git"), "config": ("config", "argv")}
_STATES_OF = {
    "config": ("scheduler", "scaler"),
    "data": ("batch", "sampler", "data_position"),
    "weights": ("parameter", "buffer"),
    "rng": ("rng",),
    "reduced grads": ("gradient",),
    "optimizer": ("optimizer_state", "optimizer_config"),
    "weights+1": ("parameter", "buffer"),
    "loss": ("loss",),
}
_PHASE_OF = {"forward": "forward", "backward": "backward", "optimizer": "optimizer"}


def ladder(comparison: Comparison, rung: str) -> Behind:
    if not rung:
        facts = tuple(f"{name} {mark.value}" for name, mark in comparison.ladder.items())
        return Behind(f"The marks of step {comparison.ladder_step}.", facts=facts)
    if rung not in LADDER:
        raise unknown_id(f"ladder.{rung}", [f"ladder.{name}" for name in LADDER])
    return _rung(comparison, rung)


def _rung(comparison: Comparison, rung: str) -> Behind:
    step = comparison.ladder_step
    mark = comparison.ladder.get(rung)
    facts = [change_text(change) for change in comparison.changed if change.kind in _CHANGES_OF.get(rung, ())]
    facts += [outside_text(state) for state in _states(comparison, rung)]
    origins = [place for place in comparison.origins if place.phase == _PHASE_OF.get(rung) and place.step == step]
    facts += [f"{source_place(place)} in {module_or_root(place.module)}: {place.group.value}" for place in origins]
    return Behind(
        f"{rung} {mark.value if mark else '?'} at step {step}.",
        facts=tuple(facts) or ("no recorded difference stands behind this mark",),
        record_ids=tuple(pair for place in origins for pair in pair_of(place)),
        rows=None if origins or rung not in _PHASE_OF else _phase_rows(_PHASE_OF[rung], step),
    )


def _phase_rows(phase: str, step: int) -> dict[str, object]:
    return {"phase": phase, "step": step}


def _states(comparison: Comparison, rung: str) -> list[Outside]:
    groups = _STATES_OF.get(rung, ())
    step = comparison.ladder_step + (rung == "weights+1")
    return [state for state in comparison.outside if state.group in groups and state.step == step]
