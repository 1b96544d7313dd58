"""Going through a whole store: every object read once and checked, every problem listed (ST-11, ST-13)."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.store import records
from paritrace.store.aside import Buffer
from paritrace.store.bundle_reading import BundleReader
from paritrace.store.bundle_writing import without_checksum
from paritrace.store.chain import Chain
from paritrace.store.documents import limited, read_canonical
from paritrace.store.inventory import Inventory, contiguous, inventory_of, sequence_problems
from paritrace.store.layout import BUNDLES, COMPRESSED, RUN_MARK, BundleName, NodeName, RankKey, ReceiptName, parsed
from paritrace.store.problems import Problem, ProblemKind
from paritrace.store.records import Manifest, NodeFacts, Owner, Receipt, Remark, RunMark, Segment, StoreGap, about
from paritrace.store.targets import Target

Document = TypeVar("Document", bound=Struct)


class Writer(Protocol):
    """Takes the segments of bundles that are being read."""

    def begin(self, chain: Chain, manifest: Manifest, /) -> None:
        """A bundle begins; an error ends the whole reading."""
        ...

    def take(self, chain: Chain, segment: Segment, chunks: Iterator[Buffer], /) -> None: ...


class NoWriter:
    """Reads the bytes and keeps nothing."""

    def begin(self, chain: Chain, manifest: Manifest, /) -> None:
        """Nothing is to be prepared."""

    def take(self, chain: Chain, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        for _ in chunks:
            pass


class RankFacts(Struct, frozen=True):
    """What is whole of one rank. `expected`: bundles by the last receipt; a gap where no final sync said it."""

    node_id: str
    rank: int
    bundles: int
    expected: int | Gap[StoreGap]
    head: str | None
    records: int
    payload_bytes: int
    overdue_bytes: int
    remarks: tuple[Remark, ...]

    @property
    def is_complete(self) -> bool:
        return self.expected == self.bundles


class StoreFacts(Struct, frozen=True):
    """Everything that was found. `nodes`: what each node says of itself, by its file's name."""

    run_id: str | Gap[StoreGap]
    ranks: tuple[RankFacts, ...]
    nodes: tuple[NodeFacts, ...]
    problems: tuple[Problem, ...]


class Checker:
    """Reads a store. `chains` holds what each rank's whole bundles add up to, once `check` has returned."""

    def __init__(self, target: Target, *, writer: Writer | None = None) -> None:
        self.chains: dict[RankKey, Chain] = {}
        self._target = target
        self._writer = NoWriter() if writer is None else writer
        self._aside = writer is None
        self._problems: list[Problem] = []

    def check(self, *, upto: dict[RankKey, int] | None = None) -> StoreFacts:
        """Read every bundle, receipt and mark.

        Args:
            upto: so many bundles of each rank are read, and no more; None for all.

        Raises:
            EvidenceError: Refused, code `not_a_store`.
            HostError: Refused, what the target says of a listing, or the writer of its disk.
        """
        inventory = self._listed()
        self._problems = [*inventory.problems]
        mark = self._document(RUN_MARK, RunMark, records.RUN_FORMAT) if inventory.has_run_mark else None
        tokens = {name.node_id: self._token(str(name)) for name in inventory.owners}
        ranks: list[RankFacts] = []
        for key in inventory.ranks:
            chain = Chain(key, run_id="" if mark is None else mark.run_id, token=tokens.get(key.node_id, ""))
            self.chains[key] = chain
            limit = None if upto is None else upto.get(key, 0)
            ranks.append(self._rank(chain, inventory, limit))
        nodes = [found for name in inventory.nodes if (found := self._node(name)) is not None]
        return StoreFacts(
            run_id=Gap(StoreGap.NOT_OBSERVABLE) if mark is None else mark.run_id,
            ranks=tuple(ranks),
            nodes=tuple(nodes),
            problems=tuple(dict.fromkeys(self._problems)),
        )

    def _listed(self) -> Inventory:
        """List the receipts first: what they count is there when the rest is listed."""
        receipts = [entry.name for entry in self._target.list(f"{BUNDLES}/")]
        receipts = [name for name in receipts if isinstance(parsed(name), ReceiptName)]
        others = [entry.name for entry in self._target.list(f"{BUNDLES}/")]
        others = [name for name in others if not isinstance(parsed(name), ReceiptName)]
        found = inventory_of([*receipts, *others])
        if found.is_empty:
            raise EvidenceError(
                f"{self._target.label} is not a store: it holds no bundles of paritrace",
                code="not_a_store",
                fix="name the target that `paritrace store sync --store` was given; if it is a mounted disk, mount it",
            )
        return found

    def _rank(self, chain: Chain, inventory: Inventory, limit: int | None) -> RankFacts:
        names = inventory.bundles.get(chain.key, ())
        if limit is None:
            self._problems += sequence_problems(chain.key, names)
        whole = len(contiguous(names)) if limit is None else limit
        good, previous, intact = 0, None, True
        for name in names[:limit]:
            found = self._bundle(chain, name, previous, intact=intact and good < whole)
            intact = intact and found
            good += intact
            previous = name
        expected = self._expected(chain.key, names, inventory.receipts.get(chain.key, ()))
        return self._facts(chain, names[:good], expected)

    def _bundle(self, chain: Chain, name: BundleName, previous: BundleName | None, *, intact: bool) -> bool:
        """Read one bundle; return whether it continues what is whole so far. One behind a gap is checked by itself."""
        sink = _ChainSink(chain, name, previous, self._writer) if intact else _AloneSink()
        reader = BundleReader(name, _marked(self._target.read(str(name))), aside=self._aside)
        problems = reader.problems
        try:
            reader.read(sink)
        except _OfTarget as trouble:
            problems = [*problems, _unreadable(str(name), trouble.error)]
        if problems and name.suffix == COMPRESSED and not any(problem.segment for problem in problems):
            problems = [*problems, *self._segments_at_fault(name)]
        self._problems += problems
        if reader.manifest is not None and intact and not problems:
            chain.advance(reader.manifest)
        return intact and not problems

    def _segments_at_fault(self, name: BundleName) -> list[Problem]:
        """Read a damaged bundle again, to say in which segments its bytes are others."""
        reader = BundleReader(name, without_checksum(_marked(self._target.read(str(name)))))
        with suppress(_OfTarget):
            reader.read(_AloneSink())
        return [problem for problem in reader.problems if problem.segment]

    def _expected(
        self, key: RankKey, names: tuple[BundleName, ...], receipts: tuple[ReceiptName, ...]
    ) -> int | Gap[StoreGap]:
        """Return how many bundles the last receipt counts, when it is the last word on the rank."""
        expected: int | Gap[StoreGap] = Gap(StoreGap.NO_RECEIPT)
        last = max((name.sequence for name in names), default=0)
        by_sequence = {name.sequence: name for name in names}
        for name in receipts:
            receipt = self._receipt(name)
            if receipt is None:
                continue
            if receipt.bundles > last:
                detail = f"{receipt.bundles} bundles were published, {last} are there"
                self._problems.append(Problem(str(name), ProblemKind.MISSING_TAIL, detail=detail))
            elif receipt.bundles and receipt.head != by_sequence.get(receipt.bundles, name).sha256:
                detail = f"it says that bundle {receipt.bundles} is {receipt.head}"
                self._problems.append(Problem(str(name), ProblemKind.CONFLICTING_RECEIPT, detail=detail))
            is_last_word = receipt.bundles >= last
            expected = receipt.bundles if is_last_word else Gap(StoreGap.NO_RECEIPT)
            self.chains[key].stated = receipt.remarks if is_last_word else ()
        return expected

    def _receipt(self, name: ReceiptName) -> Receipt | None:
        found = self._document(str(name), Receipt, records.RECEIPT_FORMAT, sha256=name.sha256)
        if found is None:
            return None
        if (found.node_id, found.rank, found.number) != (name.key.node_id, name.key.rank, name.number):
            detail = "its content is of another node, rank or number"
            self._problems.append(Problem(str(name), ProblemKind.WRONG_NAME, detail=detail))
            return None
        return found

    def _token(self, name: str) -> str:
        owner = self._document(name, Owner, records.OWNER_FORMAT)
        return "" if owner is None else owner.token

    def _node(self, name: NodeName) -> NodeFacts | None:
        return self._document(str(name), NodeFacts, records.NODE_FORMAT, sha256=name.sha256)

    def _document(self, name: str, kind: type[Document], format_name: str, *, sha256: str = "") -> Document | None:
        try:
            data = limited(self._target.read(name), name=name)
            found = read_canonical(data, kind, format_name=format_name, name=name)
        except EvidenceError as error:
            self._problems.append(Problem(name, ProblemKind.DAMAGED_DOCUMENT, detail=error.message))
            return None
        except HostError as error:
            self._problems.append(_unreadable(name, error))
            return None
        if sha256 and sha256_hex(data) != sha256:
            detail = f"its bytes have SHA-256 {sha256_hex(data)}"
            self._problems.append(Problem(name, ProblemKind.WRONG_DIGEST, detail=detail))
            return None
        return found

    def _facts(self, chain: Chain, whole: tuple[BundleName, ...], expected: int | Gap[StoreGap]) -> RankFacts:
        return RankFacts(
            node_id=chain.key.node_id,
            rank=chain.key.rank,
            bundles=len(whole),
            expected=expected,
            head=whole[-1].sha256 if whole else None,
            records=chain.records,
            payload_bytes=chain.payload_bytes,
            overdue_bytes=chain.overdue_bytes,
            remarks=tuple(sorted(set(chain.remarks) | set(chain.stated), key=about)),
        )


class _ChainSink:
    """Takes a bundle that continues what is whole so far."""

    def __init__(self, chain: Chain, name: BundleName, previous: BundleName | None, writer: Writer) -> None:
        self._chain = chain
        self._name = name
        self._previous = previous
        self._writer = writer

    def accept(self, manifest: Manifest, /) -> Iterator[Problem]:
        found = list(self._chain.problems(self._name, manifest, self._previous))
        yield from found
        if not found:
            self._writer.begin(self._chain, manifest)

    def take(self, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        self._writer.take(self._chain, segment, chunks)


class _AloneSink:
    """Takes a bundle behind a gap: it is checked by itself."""

    def accept(self, manifest: Manifest, /) -> Iterator[Problem]:
        return iter(())

    def take(self, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        for _ in chunks:
            pass


class _OfTarget(Exception):  # noqa: N818  # not an error of its own: it keeps those of the target apart from a writer's
    def __init__(self, error: HostError) -> None:
        super().__init__(error)
        self.error = error


def _marked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from chunks
    except HostError as error:
        raise _OfTarget(error) from error


def _unreadable(name: str, error: HostError) -> Problem:
    match error.code:
        case "not_visible_here" | "not_found" | "stale_handle":
            return Problem(name, ProblemKind.NOT_VISIBLE_HERE, detail=error.message)
        case "not_a_file" | "symlink_loop":
            return Problem(name, ProblemKind.DAMAGED_BUNDLE, detail="it is a link, folder or device, no plain file")
        case _:
            return Problem(name, ProblemKind.UNREADABLE, detail=f"{error.message} [{error.code}]")
