"""Invariants of parameters, gradients, the optimizer and the batches of one session (CP-25): pure rules."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from paritrace.compare.checks_facts import SessionFacts
from paritrace.compare.checks_parameters import Parameters
from paritrace.compare.checks_result import Evidence, Invariant, Outcome

NAMES_KEPT = 50  # of the names behind a failure; all are counted

HAVE_GRADIENT = "each trainable parameter gets a gradient"
IN_OPTIMIZER = "each trainable parameter is in an optimizer"
NOT_ZERO = "no gradient is always zero"
CHANGE = "each parameter with a gradient changes"
TIED = "parameters declared tied are alike"
NONE_TIED = "no parameters are declared tied"  # holds of nothing: said, so that nobody takes it for a test
RATE = "no learning rate is always zero"
BATCHES = "no batch comes twice"


def parameter_invariants(facts: SessionFacts, /, *, rank: int) -> Iterator[Invariant]:
    """Yields the invariants that rest on the state inventory and on the settings that the workload carries."""
    parameters = facts.parameters
    yield _have_gradient(parameters, rank=rank)
    yield _in_optimizer(parameters, rank=rank)
    yield _zero_gradient(parameters, rank=rank)
    yield _change(facts, rank=rank)
    yield _tied(facts, rank=rank)
    yield _rate(facts, rank=rank)
    yield _batches(parameters, rank=rank)


def outcome(identity: str, words: str, evidence: Evidence, *, rank: int, failed: bool, step: int = -1) -> Invariant:
    """Returns an invariant that was checked."""
    status = Outcome.FAIL if failed else Outcome.PASS
    return Invariant(id=identity, status=status, rank=rank, step=step, name=words, evidence=evidence)


def not_checkable(identity: str, words: str, reason: str, *, rank: int) -> Invariant:
    """Returns an invariant about which the records say nothing, and why."""
    evidence = Evidence(reason=reason)
    return Invariant(id=identity, status=Outcome.NOT_CHECKABLE, rank=rank, step=-1, name=words, evidence=evidence)


def named(names: Iterable[str], /, *, facts: Sequence[str] = ()) -> Evidence:
    """Returns the evidence of names: the first of them, and how many."""
    found = list(names)
    return Evidence(facts=tuple(facts), names=tuple(found[:NAMES_KEPT]), total=len(found))


def _have_gradient(parameters: Parameters, *, rank: int) -> Invariant:
    identity = "parameters.have_gradient"
    if not parameters.num_gradient_states:
        return not_checkable(identity, HAVE_GRADIENT, "no optimizer step was recorded", rank=rank)
    held = parameters.without_gradient.keys() | parameters.with_gradient.keys()
    missing = [
        name for name in parameters.known if name in parameters.trainable & held - _keys(parameters.with_gradient)
    ]
    sometimes = [name for name in parameters.with_gradient if parameters.without_gradient[name]]
    facts = [f"{len(held):,} parameters held, {parameters.num_gradient_states:,} gradient inventories"]
    facts += [
        f"{name} has none in {parameters.without_gradient[name]:,} inventories" for name in sometimes[:NAMES_KEPT]
    ]
    return outcome(identity, HAVE_GRADIENT, named(missing, facts=facts), rank=rank, failed=bool(missing))


def _in_optimizer(parameters: Parameters, *, rank: int) -> Invariant:
    identity = "parameters.in_optimizer"
    if not parameters.num_gradient_states or not parameters.known:
        return not_checkable(identity, IN_OPTIMIZER, "no optimizer step was recorded", rank=rank)
    held = _keys(parameters.with_gradient) | _keys(parameters.without_gradient)
    loose = [name for name in parameters.known if name in parameters.trainable - held]
    missing = [name for name in loose if not parameters.is_alias(name, held)]
    facts = [f"{len(parameters.trainable):,} of {len(parameters.known):,} parameters are trainable"]
    facts += [f"{name} is alike one that is held: tied" for name in loose[:NAMES_KEPT] if name not in missing]
    return outcome(identity, IN_OPTIMIZER, named(missing, facts=facts), rank=rank, failed=bool(missing))


def _zero_gradient(parameters: Parameters, *, rank: int) -> Invariant:
    identity = "gradients.not_zero"
    if not parameters.with_gradient:
        return not_checkable(identity, NOT_ZERO, "no gradient was recorded", rank=rank)
    zero = [name for name, times in parameters.with_gradient.items() if parameters.zero_gradient[name] == times]
    sometimes = len(parameters.zero_gradient) - len(zero)
    facts = (f"{sometimes:,} more parameters have a zero gradient at some step",) if sometimes else ()
    return outcome(identity, NOT_ZERO, named(zero, facts=facts), rank=rank, failed=bool(zero))


def _change(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "parameters.change"
    parameters = facts.parameters
    judged = _keys(parameters.changed) | _keys(parameters.unchanged)
    if not judged:
        reason = "no optimizer step is followed by a recorded state (a run of one step shows none)"
        return not_checkable(identity, CHANGE, reason, rank=rank)
    never = [name for name in parameters.known if name in judged and not parameters.changed[name]]
    said = [f"{len(judged):,} parameters over {max(_totals(parameters).values()):,} optimizer steps"]
    said += [f"{name}: its gradient is zero" for name in never if _always_zero(parameters, name)][:NAMES_KEPT]
    if never:
        said += _rates(facts)
    return outcome(identity, CHANGE, named(never, facts=said), rank=rank, failed=bool(never))


def _totals(parameters: Parameters) -> Counter[str]:
    return parameters.changed + parameters.unchanged


def _always_zero(parameters: Parameters, name: str) -> bool:
    return parameters.zero_gradient[name] == parameters.with_gradient[name]


def _tied(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "parameters.tied"
    parameters = facts.parameters
    groups = parameters.tied()
    said = tuple(f"alike at {parameters.num_begins:,} recorded steps: {', '.join(group)}" for group in groups)
    declared = [mark.values for mark in facts.configs if mark.source == "model"]
    if not any(values.get("tie_word_embeddings") == "True" for values in declared):
        return outcome(identity, NONE_TIED, Evidence(facts=said, total=len(groups)), rank=rank, failed=False)
    ends = [name for name in parameters.known if name.rpartition(".")[0].rpartition(".")[2] in _OUTPUT_HEADS]
    starts = [name for name in parameters.known if name.rpartition(".")[0].rpartition(".")[2] in _EMBEDDINGS]
    if not ends or not starts:  # a tied parameter has one name only
        return outcome(identity, TIED, Evidence(facts=said, total=len(groups)), rank=rank, failed=False)
    loose = [name for name in ends if not any({name, start} <= group for group in parameters.alike for start in starts)]
    evidence = named(loose, facts=("the model's configuration says tie_word_embeddings: True", *said))
    return outcome(identity, TIED, evidence, rank=rank, failed=bool(loose))


_OUTPUT_HEADS = frozenset({"lm_head", "embed_out"})
_EMBEDDINGS = frozenset({"embed_tokens", "wte", "word_embeddings", "embed_in"})


def _rate(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "optimizer.learning_rate"
    seen = _learning_rates(facts)
    if not seen:
        return not_checkable(identity, RATE, "no optimizer setting was recorded", rank=rank)
    zero = [group for group, rates in seen.items() if all(_is_zero(rate) for rate in rates)]
    return outcome(identity, RATE, named(zero, facts=_rates(facts)), rank=rank, failed=bool(zero))


def _learning_rates(facts: SessionFacts) -> dict[str, list[str]]:
    seen: dict[str, list[str]] = {}
    for mark in facts.configs:
        if mark.source == "optimizer":
            for key, value in mark.values.items():
                group, _, setting = key.rpartition(".")
                if setting == "lr":
                    seen.setdefault(f"{mark.values.get('class', 'optimizer').rpartition('.')[2]} {group}", []).append(
                        value
                    )
    return seen


def _rates(facts: SessionFacts) -> list[str]:
    return [
        f"{group}: learning rate {rates[0]}" + (f", later {rates[-1]}" if rates[-1] != rates[0] else "")
        for group, rates in _learning_rates(facts).items()
    ]


def _is_zero(text: str) -> bool:
    try:
        return float(text) == 0.0
    except ValueError:
        return False


def _batches(parameters: Parameters, *, rank: int) -> Invariant:
    identity = "batches.not_repeated"
    if parameters.num_batches < 2:
        reason = f"{parameters.num_batches} batches were recorded; it takes two"
        return not_checkable(identity, BATCHES, reason, rank=rank)
    steps = [again[0] for _, again in parameters.repeated]
    facts = [f"{len(parameters.batches):,} of {parameters.num_batches:,} recorded inputs have elements of their own"]
    facts += [
        f"step {again[0]} micro-batch {again[1]} has the elements of step {first[0]} micro-batch {first[1]}"
        for first, again in parameters.repeated[:NAMES_KEPT]
    ]
    evidence = Evidence(facts=tuple(facts), steps=tuple(steps[:NAMES_KEPT]), total=parameters.num_repeated)
    failed = bool(parameters.num_repeated)
    return outcome(identity, BATCHES, evidence, rank=rank, failed=failed, step=steps[0] if steps else -1)


def _keys(counter: Counter[str]) -> set[str]:
    return set(counter)
