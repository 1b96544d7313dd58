"""One run as a fold sees it: its ranks of one incarnation, with names read alike on both sides."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paritrace.compare.folds_dims import Dims
from paritrace.compare.folds_layout import Axis, Part, axes_of, part_of
from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSide:
    """`num_absent`: ranks of the world without a session among those loaded."""

    name: str  # "baseline" | "candidate"
    ranks: tuple[Recorded, ...]
    world_size: int
    settings: Settings
    axes: dict[int, dict[str, Axis]] = field(default_factory=dict[int, dict[str, Axis]])

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(recorded.session.rank for recorded in self.ranks)

    @property
    def num_absent(self) -> int:
        return max(0, self.world_size - len(self.ranks))

    def spelled(self, name: str, recorded: Recorded) -> str:
        """The name under which this side's tensor is looked for on the other."""
        return self.settings.folded_name(name, side=self.name, rank=recorded.session.rank)

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
    return FoldSide(
        name=name,
        ranks=tuple(ranks),
        world_size=max((recorded.session.row.world_size for recorded in ranks), default=0),
        settings=settings,
        axes={recorded.session.rank: axes_of(ranks, recorded.session.rank) for recorded in ranks},
    )


def common_incarnation(baseline: Sequence[Recorded], candidate: Sequence[Recorded]) -> int | None:
    """The first incarnation that both runs have; where each run has one alone, nothing else could be meant."""
    ours, theirs = ({recorded.session.incarnation for recorded in side} for side in (baseline, candidate))
    return min(ours & theirs, default=None)
