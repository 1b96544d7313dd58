"""What a review did to a comparison, in one line of the screen and in full for explain (CP-14, P9)."""

from collections import Counter

from paritrace.compare.alignment import Decision, ReviewedPair, ReviewedSlots
from paritrace.compare.result import Comparison
from paritrace.reports.behind import Behind
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section

WORDS = {
    Decision.CONFIRM: "confirmed",
    Decision.REPLACE: "replaced",
    Decision.REJECT: "rejected",
    Decision.UNDETERMINED: "kept undetermined",
}


def section(comparison: Comparison, /) -> Section:
    """Returns who reviewed how many pairs; nothing of a comparison as it was made."""
    review = comparison.review
    if review is None:
        return Section(anchor="review", lines=())
    counts = Counter(pair.decision for pair in review.pairs)
    told = [f"{counts[decision]:,} {word}" for decision, word in WORDS.items() if counts[decision]]
    told += [f"{len(review.slots):,} selected tensors compared"] if review.slots else []
    if review.withdrawn:
        told.append(f"withdrawn: {', '.join(review.withdrawn)}")
    return Section(anchor="review", lines=(shorten(f"by {review.reviewer}: {', '.join(told)}", width=CONTENT),))


def review(comparison: Comparison, _part: str) -> Behind:
    """Every decision with its reason, and every comparison of selected tensors."""
    found = comparison.review
    if found is None:
        return Behind("Nobody has reviewed the pairs of this comparison: all are unreviewed.")
    facts = [f"source: manifest sha256 {found.source_sha256}", f"map: sha256 {found.map_sha256}"]
    facts += [f"reason: {found.reason}"] if found.reason else []
    facts += [_pair(pair) for pair in found.pairs] + [_slots(slots) for slots in found.slots]
    if found.withdrawn:
        facts.append(f"withdrawn with pairs that were dissolved: {', '.join(found.withdrawn)}")
    return Behind(f"Reviewed by {found.reviewer}.", facts=tuple(facts))


def _pair(pair: ReviewedPair) -> str:
    ids = " with ".join(
        f"{side}:{record}"
        for side, record in (("baseline", pair.baseline), ("candidate", pair.candidate))
        if record is not None
    )
    lost = f"; without a partner now: {', '.join(f'{side}:{record}' for side, record in pair.displaced)}"
    return (
        f"rank {pair.rank}: {ids} {WORDS[pair.decision]}, {pair.status}{lost if pair.displaced else ''} ({pair.reason})"
    )


def _slots(slots: ReviewedSlots) -> str:
    sides = " against ".join(" + ".join(map(str, refs)) or "nothing" for refs in (slots.baseline, slots.candidate))
    why = f" ({slots.why})" if slots.why else ""
    return "; ".join([f"{slots.relation.value}: {sides}: {slots.agreement}{why}", *slots.facts, slots.reason])
