"""A further kind of evidence: scheduler iterations in a few lines, without touching the engine (one engine)."""

from collections.abc import Sequence
from dataclasses import dataclass

from paritrace.correspondence.kinds import EvidenceKind, Field, sections
from paritrace.correspondence.records import Records, Scopes
from paritrace.correspondence.vocabulary import Unpaired


@dataclass(frozen=True)
class Iteration:
    """One iteration of a toy scheduler: the requests it served, and how long it took."""

    requests: tuple[str, ...]
    tokens: int | None
    policy: str = "fcfs"


Trace = Sequence[Iteration]


class SchedulerIterations:
    """Pairs iterations by the policy that made them, anchored by the requests they served."""

    name = "scheduler iterations"

    def records(self, source: Trace) -> Records | None:
        if not source:
            return None
        nothing = [-1] * len(source)
        return Records(
            streams=["scheduler"] * len(source),
            layers=[0] * len(source),
            scopes=[0] * len(source),
            entries=[False] * len(source),
            keys=[iteration.policy for iteration in source],
            inputs=[iteration.requests for iteration in source],
            links=nothing,
            replays=[False] * len(source),
            labels=[""] * len(source),
            tree=Scopes(parents=[0], names=[""], facts=[""]),
            anchor_inputs=lambda i: source[i].requests or None,
        )

    def fields(self, a: Trace, i: int, b: Trace, j: int) -> Sequence[Field]:
        ours, theirs = a[i].tokens, b[j].tokens
        if ours is None or theirs is None:
            return [Field("tokens", None, "not collected")]
        return [Field("tokens", ours == theirs)]


KIND: EvidenceKind[Trace] = SchedulerIterations()


def test_the_toy_kind_gets_pairs_agreement_and_reasons() -> None:
    a = [Iteration(("r1",), 10), Iteration(("r1", "r2"), 20), Iteration(("r3",), None)]
    b = [Iteration(("r1",), 10), Iteration((), 1), Iteration(("r1", "r2"), 21), Iteration(("r3",), 5)]
    (section,) = sections([KIND], a, b)
    assert section.pairs == ((0, 0), (1, 2), (2, 3))
    assert section.equal == 1
    assert section.different == ((1, 2, ("tokens",)),)
    assert section.not_comparable == 1
    assert section.unpaired_b == {Unpaired.UNEQUAL_BETWEEN_ANCHORS: 1}


def test_a_kind_that_one_side_lacks_has_no_section() -> None:
    assert sections([KIND], [], [Iteration(("r1",), 1)]) == ()
