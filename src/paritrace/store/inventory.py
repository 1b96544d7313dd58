"""What the names on a target say: which bundles form a chain, which are missing, doubled or foreign; pure (ST-11)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from paritrace.store.layout import (
    BUNDLES,
    RUN_MARK,
    BundleName,
    NodeName,
    OwnerName,
    RankKey,
    ReceiptName,
    RunMarkName,
    parsed,
    rank_prefix,
)
from paritrace.store.problems import Problem, ProblemKind


class Inventory(Struct, frozen=True):
    """The parsed names of a target. `bundles` holds every bundle of a rank, in order of sequence and digest."""

    bundles: dict[RankKey, tuple[BundleName, ...]]
    receipts: dict[RankKey, tuple[ReceiptName, ...]]
    owners: tuple[OwnerName, ...]
    nodes: tuple[NodeName, ...]
    has_run_mark: bool
    problems: tuple[Problem, ...]

    @property
    def ranks(self) -> tuple[RankKey, ...]:
        return tuple(sorted(set(self.bundles) | set(self.receipts)))

    @property
    def is_empty(self) -> bool:
        return not (self.bundles or self.receipts or self.owners or self.has_run_mark)


def inventory_of(names: Iterable[str]) -> Inventory:
    """Sort the names of a target."""
    bundles: defaultdict[RankKey, list[BundleName]] = defaultdict(list)
    receipts: defaultdict[RankKey, list[ReceiptName]] = defaultdict(list)
    owners: list[OwnerName] = []
    nodes: list[NodeName] = []
    problems: list[Problem] = []
    has_run_mark = False
    for name in sorted(set(names)):
        match parsed(name):
            case BundleName() as found:
                bundles[found.key].append(found)
            case ReceiptName() as found:
                receipts[found.key].append(found)
            case OwnerName() as found:
                owners.append(found)
            case NodeName() as found:
                nodes.append(found)
            case RunMarkName():
                has_run_mark = True
            case None:
                problems.append(Problem(name, ProblemKind.FOREIGN_FILE, detail="paritrace gives no such name"))
    return Inventory(
        bundles={key: tuple(sorted(found)) for key, found in bundles.items()},
        receipts={key: tuple(sorted(found)) for key, found in receipts.items()},
        owners=tuple(owners),
        nodes=tuple(nodes),
        has_run_mark=has_run_mark,
        problems=(*problems, *_missing_marks(bundles, owners, has_run_mark)),
    )


def sequence_problems(key: RankKey, names: tuple[BundleName, ...]) -> Iterator[Problem]:
    """Yield every gap and every conflict in the numbers of a rank's bundles."""
    found: defaultdict[int, list[BundleName]] = defaultdict(list)
    for name in names:
        found[name.sequence].append(name)
    due = 1
    for sequence in sorted(found):
        if sequence > due:
            which = str(due) if sequence == due + 1 else f"{due} to {sequence - 1}"
            yield Problem(
                f"{rank_prefix(key)}{due:08d}", ProblemKind.MISSING_BUNDLE, detail=f"bundle {which} is missing"
            )
        if len(found[sequence]) > 1:
            digests = ", ".join(name.sha256 for name in found[sequence])
            detail = f"sequence {sequence} was published with several digests: {digests}"
            yield Problem(str(found[sequence][0]), ProblemKind.CONFLICTING_SEQUENCE, detail=detail)
        due = sequence + 1


def contiguous(names: tuple[BundleName, ...]) -> tuple[BundleName, ...]:
    """Return the bundles up to the first gap or conflict."""
    chain: list[BundleName] = []
    for number, name in enumerate(names, start=1):
        doubled = number < len(names) and names[number].sequence == name.sequence
        if name.sequence != number or doubled:
            break
        chain.append(name)
    return tuple(chain)


def _missing_marks(
    bundles: dict[RankKey, list[BundleName]], owners: list[OwnerName], has_run_mark: bool
) -> Iterator[Problem]:
    if bundles and not has_run_mark:
        yield Problem(RUN_MARK, ProblemKind.DAMAGED_DOCUMENT, detail="the mark of the run is missing")
    known = {owner.node_id for owner in owners}
    for node_id in sorted({key.node_id for key in bundles} - known):
        detail = f"the owner of node {node_id} is missing"
        yield Problem(f"{BUNDLES}/{node_id}/owner.json", ProblemKind.DAMAGED_DOCUMENT, detail=detail)
