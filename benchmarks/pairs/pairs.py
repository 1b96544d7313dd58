"""The pairs, and beside each what an expert says of it, as a sentence and as a rule that checks it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from benchmarks.pairs.training import Variant
from paritrace.compare.result import Comparison, Finding, Group, Mark

Rule = Callable[[Comparison], bool]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """`draws`: whose perturbed runs judge: "baseline", "candidate" (by `--envelope`), or "" where layouts differ.

    `ranked`: names of variants that torchrun starts on two ranks, or on one. `by_other`: the candidate is captured by
    another interpreter, with another version of torch.
    """

    name: str
    baseline: Variant
    candidate: Variant
    expert: str
    rule: Rule
    draws: str = "baseline"
    ranks: tuple[int, int] = (1, 1)
    ranked: tuple[str, str] = ("", "")
    by_other: bool = False


def of_group(result: Comparison, group: Group) -> list[Finding]:
    return [found for found in result.findings if found.place.group is group]


def nothing_beyond(result: Comparison) -> bool:
    return result.envelope is not None and result.envelope.judged > 0 and result.envelope.beyond == 0


def attention_inside(result: Comparison) -> bool:
    first = result.findings[0].place if result.findings else None
    return first is not None and "layers.0.self_attn" in first.module and nothing_beyond(result)


def norm_and_attention(result: Comparison) -> bool:
    first = result.findings[0].place if result.findings else None
    exits = [found.place.module for found in of_group(result, Group.EXCEEDS)]
    inside = [found.place.module for found in of_group(result, Group.WITHIN)]
    named = first is not None and first.module == "model.layers.0.input_layernorm" and bool(exits)
    return named and exits[0] == "model.layers.0.input_layernorm" and any("self_attn" in module for module in inside)


def silent(result: Comparison) -> bool:
    return result.counts.different == 0 and not result.findings and result.counts.paired > 0


def optimizer_state_outside(result: Comparison) -> bool:
    told = [*(state.group for state in result.outside), *(found.place.function for found in result.findings)]
    return "optimizer_state" in told and not of_group(result, Group.EXCEEDS)


def narrower_inside(result: Comparison) -> bool:
    return (
        nothing_beyond(result)
        and result.ladder["forward"] in (Mark.INSIDE, Mark.BEYOND)
        and not of_group(result, Group.EXCEEDS)
    )


def layout_without_fault(result: Comparison) -> bool:
    return result.folds is not None and not of_group(result, Group.EXCEEDS) and not of_group(result, Group.ORIGINATES)


def fused_inside(result: Comparison) -> bool:
    beyond = result.envelope is None or result.envelope.beyond
    rungs = [result.ladder[rung] for rung in ("loss", "grad norm")]
    return not beyond and not of_group(result, Group.EXCEEDS) and Mark.BEYOND not in rungs


def choice_and_no_fault(result: Comparison) -> bool:
    return not of_group(result, Group.EXCEEDS)


def versions_told(result: Comparison) -> bool:
    told = any((change.kind, change.name) == ("package", "torch") for change in result.changed)
    return told and (nothing_beyond(result) or result.counts.different == 0) and not of_group(result, Group.EXCEEDS)


LLAMA = Variant()
BF16 = Variant(dtype=torch.bfloat16)
RESUMED = Variant(first=2)
PAIRS = (
    Pair(
        name="the same twice",
        baseline=LLAMA,
        candidate=LLAMA,
        expert="Nothing differs.",
        rule=silent,
    ),
    Pair(
        name="eager / SDPA, float32",
        baseline=LLAMA,
        candidate=replace(LLAMA, attention="sdpa"),
        expert="The attention of layer 0 is other code; nothing is beyond round-off.",
        rule=attention_inside,
    ),
    Pair(
        name="eager / SDPA, float32, operators",
        baseline=replace(LLAMA, level=("module", "op"), steps=1),
        candidate=replace(LLAMA, level=("module", "op"), steps=1, attention="sdpa"),
        expert="The attention of layer 0 is other code; nothing is beyond round-off.",
        rule=attention_inside,
    ),
    Pair(
        name="eager / SDPA, bfloat16",
        baseline=BF16,
        candidate=replace(BF16, attention="sdpa"),
        expert="The attention of layer 0 is other code; nothing is beyond round-off.",
        rule=attention_inside,
    ),
    Pair(
        name="eager / SDPA with another epsilon, float32",
        baseline=LLAMA,
        candidate=replace(LLAMA, attention="sdpa", eps=1e-5),
        expert="The first norm is beyond round-off; the attention is other code and adds nothing.",
        rule=norm_and_attention,
    ),
    Pair(
        name="eager / SDPA with another epsilon, bfloat16",
        baseline=BF16,
        candidate=replace(BF16, attention="sdpa", eps=1e-5),
        expert="The first norm is beyond round-off; the attention is other code and adds nothing.",
        rule=norm_and_attention,
    ),
    Pair(
        name="eager / compiled (aot_eager)",
        baseline=LLAMA,
        candidate=replace(LLAMA, backend="aot_eager"),
        expert="What the compiled region gives is the same up to round-off.",
        rule=lambda result: not of_group(result, Group.EXCEEDS),
    ),
    Pair(
        name="eager / compiled (inductor)",
        baseline=LLAMA,
        candidate=replace(LLAMA, backend="inductor"),
        expert="Kernels are fused and round otherwise; loss, gradients and weights stay inside round-off.",
        rule=fused_inside,
    ),
    Pair(
        name="float32 / bfloat16, judged by the narrower one's draws",
        baseline=LLAMA,
        candidate=BF16,
        expert="The candidate is narrower everywhere; no module errs more than that explains.",
        rule=narrower_inside,
        draws="candidate",
    ),
    Pair(
        name="uninterrupted / resumed",
        baseline=replace(LLAMA, steps=4),
        candidate=RESUMED,
        expert="From the resumed step on nothing differs.",
        rule=silent,
        draws="",
    ),
    Pair(
        name="uninterrupted / resumed without optimizer state",
        baseline=replace(LLAMA, steps=4),
        candidate=replace(RESUMED, with_optimizer=False),
        expert="Optimizer state differs at the begin of the resumed step, before any call.",
        rule=optimizer_state_outside,
        draws="",
    ),
    Pair(
        name="routed experts, another order of a sum",
        baseline=Variant(experts=True),
        candidate=Variant(experts=True, last_first=True),
        expert="Round-off tips a choice between tied experts; no module is at fault.",
        rule=choice_and_no_fault,
    ),
    Pair(
        name="DP 1 accumulated / DP 2",
        baseline=LLAMA,
        candidate=LLAMA,
        expert="The batches lie otherwise on ranks; weights agree and no call is at fault.",
        rule=layout_without_fault,
        draws="",
        ranks=(1, 2),
        ranked=("accumulated", "ddp"),
    ),
    Pair(
        name="TP 1 / TP 2",
        baseline=LLAMA,
        candidate=LLAMA,
        expert="Weights lie in parts on ranks; folded they agree and no call is at fault.",
        rule=layout_without_fault,
        draws="",
        ranks=(1, 2),
        ranked=("one", "tp"),
    ),
    Pair(
        name="two versions of torch",
        baseline=LLAMA,
        candidate=LLAMA,
        expert="The version is told; kernels that round otherwise stay inside round-off.",
        rule=versions_told,
        by_other=True,
    ),
)
