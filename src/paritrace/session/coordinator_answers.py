"""What the answers of all ranks to a round say together: every refusal, and where ranks do not agree (SE-7 to SE-9)."""

from collections import Counter

from paritrace.session.commands import Reason
from paritrace.session.coordinator_record import ours
from paritrace.session.messages import Answer, RoundName, Verdict


def refusals_of(answers: list[Answer]) -> tuple[Reason, ...]:
    """Return all reasons of all ranks, and that the ranks' digests differ where they do."""
    reasons = tuple(reason for answer in answers for reason in answer.reasons if answer.verdict is not Verdict.YES)
    bare = tuple(
        Reason(answer.rank, "refused", "no reason was given")
        for answer in answers
        if answer.verdict is not Verdict.YES and not answer.reasons
    )
    agreed = () if reasons or bare else differing(answers) + steps_differ(answers)
    return reasons + bare + agreed + (() if reasons or bare else _nobody_offers(answers))


def differing(answers: list[Answer]) -> tuple[Reason, ...]:
    """Return the digest of every rank where they are not all the same."""
    if len({answer.digest for answer in answers}) <= 1:
        return ()
    return tuple(Reason(answer.rank, "digests_differ", f"{answer.name.value}: {answer.digest}") for answer in answers)


def steps_differ(answers: list[Answer]) -> tuple[Reason, ...]:
    """Return that the ranks are not, or would not be, at one step; while they reserve or prepare they need not be."""
    steps = Counter(answer.facts.get("step", answer.step) for answer in answers)
    if len(steps) <= 1 or not answers or answers[0].name is not RoundName.VOTE:
        return ()
    counts = ", ".join(f"{step}: {ranks}" for step, ranks in sorted(steps.items()))
    return ours("steps_differ", f"steps differ {{{counts}}} (step: ranks): not applied")


def _nobody_offers(answers: list[Answer]) -> tuple[Reason, ...]:
    """Return that what is asked for is offered by no rank, where each says whether it does."""
    offers = [answer.facts["offers"] for answer in answers if "offers" in answer.facts]
    return ours("no_preview", "no rank offers a preview") if offers and not any(offers) else ()


def apart(answers: list[Answer]) -> tuple[Reason, ...]:
    """Return where every rank is."""
    return tuple(
        Reason(answer.rank, "ranks_apart", f"step {answer.step}, revision {answer.config_revision}")
        for answer in answers
    )
