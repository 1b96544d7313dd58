"""One run as a fold sees it: its ranks of one incarnation, with names read alike on both sides."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paritrace.compare.folds_dims import Dims
from paritrace.compare.folds_layout import Axis, Part, axes_of, part_of
from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSide:
    """`axes`: those of each rank. `seen`: which ranks recorded any state at a step and moment."""

    name: str  # "baseline" | "candidate"
    ranks: tuple[Recorded, ...]
    world_size: int
    settings: Settings
    axes: dict[int, dict[str, Axis]] = field(default_factory=dict[int, dict[str, Axis]])
    seen: dict[tuple[int, str], set[int]] = field(default_factory=dict[tuple[int, str], set[int]])

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(recorded.session.rank for recorded in self.ranks)

    def num_absent(self, step: int, moment: str) -> int:
        """Ranks of the world that recorded nothing of this moment: without a session, or cut off before it."""
        return max(0, self.world_size - len(self.seen.get((step, moment), ())))

    def is_cut_off(self, step: int) -> bool:
        """Whether some rank is missing, or did not end a step that another rank did."""
        ended = [any(mark.step == step for mark in recorded.steps) for recorded in self.ranks]
        return len(self.ranks) < self.world_size or (any(ended) and not all(ended))

    def spelled(self, name: str, recorded: Recorded) -> str:
        """The name under which this side's tensor is looked for on the other."""
        return self.settings.seen_from(self.name, recorded.session.rank).spelled(name)

    def dims_of(self, name: str) -> Dims | None:
        return self.settings.dims_of(name, side=self.name)

    def part(self, recorded: Recorded, kind: int) -> Part:
        return part_of(recorded, kind, self.axes[recorded.session.rank])


def fold_side(name: str, loaded: Sequence[Recorded], *, incarnation: int, settings: Settings) -> FoldSide:
    """The ranks of one incarnation, in the order of their numbers."""
    ranks = sorted(
        (recorded for recorded in loaded if recorded.session.incarnation == incarnation),
        key=lambda recorded: recorded.session.rank,
    )
    seen: dict[tuple[int, str], set[int]] = {}
    for recorded in ranks:
        for state in recorded.states:
            seen.setdefault((state.step, state.moment), set()).add(recorded.session.rank)
    return FoldSide(
        name=name,
        ranks=tuple(ranks),
        world_size=max((recorded.session.row.world_size for recorded in ranks), default=0),
        settings=settings,
        axes={recorded.session.rank: axes_of(ranks, recorded.session.rank) for recorded in ranks},
        seen=seen,
    )


def common_incarnation(baseline: Sequence[Recorded], candidate: Sequence[Recorded]) -> tuple[int, int] | None:
    """The first incarnation that both runs have; where each run has one alone, nothing else could be meant."""
    ours, theirs = ({recorded.session.incarnation for recorded in side} for side in (baseline, candidate))
    if len(ours) == len(theirs) == 1:
        return min(ours), min(theirs)
    first = min(ours & theirs, default=None)
    return None if first is None else (first, first)
