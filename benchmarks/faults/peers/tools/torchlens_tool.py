"""torchlens: the first forward pass of both sides, `debug.first_divergence` without tolerance.

Its seed is fixed: otherwise it draws another one and every dropout differs. It looks at one forward pass only, so that
faults of the backward pass, the optimizer or a later step are outside what it is asked; they are left out of its row.
"""

from typing import Any

import torch
import torchlens
from workload_runs import frames_in, train

SEED = 7


class FirstCallError(Exception):
    """Carries the model and the inputs of its first call out of the training."""


def first_difference(job: dict[str, Any]) -> dict[str, Any]:
    left, right = (traced(job[side]) for side in ("baseline", "candidate"))
    found = torchlens.debug.first_divergence(left, right, rtol=0.0, atol=0.0)
    if found is None:
        return {}
    trace, side = (left, "baseline") if found["status"] == "only-a" else (right, "candidate")
    frames = [(frame.file, frame.line_number) for frame in reversed(trace[found["op"]].code_context)]
    return {
        "name": str(found["op"]),
        "step": 0,
        "phase": "forward",
        "side": side,
        "frames": frames_in(job[side]["script"], frames),
    }


def traced(side: dict[str, Any]) -> Any:
    model, inputs = first_call(side)
    return torchlens.trace(model, inputs, capture=torchlens.options.CaptureOptions(random_seed=SEED))


def first_call(side: dict[str, Any]) -> tuple[Any, Any]:
    def leave(module: Any, inputs: Any) -> None:
        raise FirstCallError(module, inputs)

    hook = torch.nn.modules.module.register_module_forward_pre_hook(leave)
    try:
        train(side)
    except FirstCallError as found:
        model, inputs = found.args
        return model, inputs
    finally:
        hook.remove()
    raise RuntimeError("the training calls no module")
