"""Who may publish: one run per target, one machine per node id (ST-2, ST-22, ST-23)."""

import secrets
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Files
from paritrace.store import records
from paritrace.store.documents import canonical, limited, read_canonical
from paritrace.store.layout import CHECKPOINT, OLD_ARCHIVE, RUN_MARK, OwnerName, StagedRank
from paritrace.store.records import Owner, RunMark, StoreGap
from paritrace.store.targets import Target
from paritrace.store.throttle import Throttle

_TOKEN_BYTES = 16
Document = TypeVar("Document", bound=Struct)


class Ownership:
    """The claim of one node of one run to publish to one target."""

    def __init__(self, place: StagedRank, target: Target, *, throttle: Throttle, files: Files = LOCAL) -> None:
        self._place = place
        self._target = target
        self._throttle = throttle
        self._files = files

    def token(self, process: ProcessIdentity) -> str:
        """Return this node's token, having made sure of run and node on the target.

        The token is made at the node's first start; the file with it is published before any bundle, and never changed.

        Raises:
            EvidenceError: Refused: `foreign_run`, `old_layout`, `duplicate_node`; `checkpoint_lost` when the target
                knows an owner and the staging directory holds no token.
            HostError: Refused: `target_gone` when it is empty and was published to before.
        """
        self._require_run()
        name = str(OwnerName(self._place.node_id))
        theirs = self._published(name, Owner, records.OWNER_FORMAT)
        data = self._files.read_if_present(self._place.owner)
        if data is None:
            if theirs is not None:
                raise self._token_lost(theirs)
            data = self._made(process)
        ours = read_canonical(data, Owner, format_name=records.OWNER_FORMAT, name=str(self._place.owner))
        if theirs is None:
            self._put(name, self._place.owner, data)
            theirs = self._published(name, Owner, records.OWNER_FORMAT)
        if theirs is not None and theirs.token != ours.token:
            raise self._duplicate(theirs, process)
        return ours.token

    def _require_run(self) -> None:
        mark = RunMark(format=records.RUN_FORMAT, version=records.VERSION, run_id=self._place.run_id)
        found = self._published(RUN_MARK, RunMark, records.RUN_FORMAT)
        if found is None:
            self._require_nothing_published()
            self._require_no_archive()
            self._target.probe()
            staged = self._place.node_state / "run.json"
            self._files.write_once(staged, canonical(mark))
            self._put(RUN_MARK, staged, canonical(mark))
            found = self._published(RUN_MARK, RunMark, records.RUN_FORMAT)
        if found is not None and found.run_id != self._place.run_id:
            raise EvidenceError(
                f"{self._target.label} holds run {found.run_id}, not {self._place.run_id}",
                code="foreign_run",
                fix="give this run a target of its own: one target holds one run",
            )

    def _require_nothing_published(self) -> None:
        """A disk that was mounted there and is not any more leaves an empty folder: nothing is written into that."""
        state = self._place.node_state
        folders = self._files.list(state) if self._files.exists(state) else ()
        if any(self._files.exists(folder / CHECKPOINT) for folder in folders):
            raise HostError(
                f"{self._target.label} holds nothing of run {self._place.run_id}, which was published from here",
                code="target_gone",
                fix="mount it again, or check the name of the store; what is staged is published once it is back",
            )

    def _require_no_archive(self) -> None:
        old = next(iter(self._target.list(OLD_ARCHIVE)), None)
        if old is not None:
            raise EvidenceError(
                f"{self._target.label} holds {old.name}, an archive of an older layout",
                code="old_layout",
                fix="publish to a new directory; the archive itself can be read by every command",
            )

    def _made(self, process: ProcessIdentity) -> bytes:
        """Write the node's token; of two ranks that start together one wins, and both read what it wrote."""
        owner = Owner(
            format=records.OWNER_FORMAT,
            version=records.VERSION,
            run_id=self._place.run_id,
            node_id=self._place.node_id,
            token=secrets.token_hex(_TOKEN_BYTES),
            host=process.host,
            boot_id=process.boot_id if isinstance(process.boot_id, str) else Gap(StoreGap.NOT_COLLECTED),
        )
        try:
            self._files.create(self._place.owner, (canonical(owner),))
        except HostError as error:
            if error.code != "already_there":
                raise
        return self._files.read(self._place.owner)

    def _put(self, name: str, source: Path, data: bytes) -> None:
        """Publish where nothing is; who was first is read afterwards."""
        try:
            self._target.put_if_absent(name, source, sha256=sha256_hex(data), throttle=self._throttle)
        except EvidenceError as error:
            if error.code != "target_conflict":
                raise

    def _published(self, name: str, kind: type[Document], format_name: str) -> Document | None:
        if not any(entry.name == name for entry in self._target.list(name)):
            return None
        data = limited(self._target.read(name), name=name)
        return read_canonical(data, kind, format_name=format_name, name=f"{self._target.label}: {name}")

    def _token_lost(self, theirs: Owner) -> EvidenceError:
        return EvidenceError(
            f"{self._target.label} knows node {theirs.node_id} of {theirs.host}, and {self._place.owner} is missing",
            code="checkpoint_lost",
            fix="put the staging directory back; on another machine choose another node id, or a new run id and target",
        )

    def _duplicate(self, theirs: Owner, process: ProcessIdentity) -> EvidenceError:
        return EvidenceError(
            f"node id {theirs.node_id} belongs to another start or machine ({theirs.host}) than this ({process.host})",
            code="duplicate_node",
            fix="give every node an id of its own: --node-id, or PARITRACE_NODE_ID",
        )
