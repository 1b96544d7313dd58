"""Reading a run that is staged, published, restored or in an old archive, as a run directory is read (ST-12, ST-25)."""

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.compare.coverage import side_coverage
from paritrace.compare.settings import Settings
from paritrace.errors import EvidenceError, HostError, ParitraceError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.runs.keeping_restored import keep_restored
from paritrace.runs.pack import pack
from paritrace.runs.reading import open_run
from paritrace.runs.record_reading import read_records
from paritrace.runs.record_rows import register_record
from paritrace.runs.staged import STAGING_FAILED, TROUBLE, Staged, claim_staged
from paritrace.runs.verify import Finding, verify
from paritrace.store.layout import StagedRank
from paritrace.store.restoring import restore
from paritrace.store.syncing import Host, Syncer
from paritrace.store.targets import Target, open_target
from paritrace.store.throttle import Throttle
from paritrace.testing.tables import RunTable
from tests.runs.recording import shell

PROCESS = ProcessIdentity("host", Gap(RunGap.NO_BOOT_ID), Gap(RunGap.NO_PID_NAMESPACE), 1, 1)


class Published:
    """A run of two ranks, staged on one node each and published to one directory."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.run_id = ""
        self.places = [self._rank(folder, rank) for rank in (0, 1)]

    def _rank(self, folder: Path, rank: int) -> StagedRank:
        place = StagedRank(folder / f"staging-{rank}", "run-of-two", f"node-{rank}", rank)
        table = RunTable()
        table.end_step()
        place.originals.parent.mkdir(parents=True)
        table.write(place.originals, rank=rank, world_size=2, run_id="run-of-two")
        return place

    def target(self) -> Target:
        return open_target(str(self.store))

    def syncer(self, place: StagedRank) -> Syncer:
        return Syncer(place, self.target(), host=Host(process=PROCESS), throttle=Throttle(None))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    made = Published(tmp_path)
    for place in made.places:
        made.syncer(place).final()
    monkeypatch.setattr(tempfile, "tempdir", str(made.scratch))
    yield made
    assert list(made.scratch.iterdir()) == [], "a private folder was left behind"


def require_both(path: Path) -> None:
    with open_run(path) as run:
        assert run.run_id == "run-of-two"
        assert [view.rank for view in run.sessions] == [0, 1]
        assert [one.complete for one in run.attendance] == [True]
        assert verify(run).verdict is Finding.INTACT
        assert TROUBLE not in run.envelope.metadata


def test_a_store_is_read_directly(published: Published) -> None:
    require_both(published.store)


def test_a_restored_directory_is_a_run(published: Published, tmp_path: Path) -> None:
    restore(published.target(), tmp_path / "restored")
    require_both(tmp_path / "restored")


def test_an_old_archive_is_read(published: Published, tmp_path: Path) -> None:
    restore(published.target(), tmp_path / "restored")
    (tmp_path / "old").mkdir()
    with tarfile.open(tmp_path / "old" / "sync.tar.gz", "w:gz") as archive:
        for rank in (0, 1):
            archive.add(tmp_path / "restored" / f"rank-{rank}", f"rank-{rank}")
    require_both(tmp_path / "old" / "sync.tar.gz")
    require_both(tmp_path / "old")


def test_a_run_says_where_its_ranks_are(published: Published, tmp_path: Path) -> None:
    """This node has rank 0 alone, so that the other one is read from the store."""
    staged = Staged("run-of-two", str(published.store), tmp_path / "staging-0", "node-0")
    claim_staged(tmp_path / "RUN", staged, title="")
    require_both(tmp_path / "RUN")
    require_both(tmp_path / "RUN" / "run.json")


def test_rr8_records_of_a_run_directory_are_those_of_the_run_its_ranks_make(
    published: Published, tmp_path: Path
) -> None:
    """The launcher's record lies in RUN, the ranks in staging and in the store: one run shows both."""
    staged = Staged("run-of-two", str(published.store), tmp_path / "staging-0", "node-0")
    claim_staged(tmp_path / "RUN", staged, title="")
    done = shell(tmp_path / "RUN", "exit 3")
    register_record(tmp_path / "RUN", done.record.path, live=False)
    with open_run(tmp_path / "RUN") as run:
        assert [view.rank for view in run.sessions] == [0, 1]
        (record,) = read_records(run.folder)
        assert record.end == done.end
        assert verify(run).verdict is Finding.INTACT
    packed = pack(tmp_path / "RUN", tmp_path / "packed.tar.zst")
    assert packed.left_out == ()
    with open_run(tmp_path / "packed.tar.zst") as run:
        (record,) = read_records(run.folder)
        assert record.end == done.end
    done.record.path.write_bytes(done.record.path.read_bytes().replace(b"command_failed", b"agent_failed"))
    with open_run(tmp_path / "RUN") as run:
        assert verify(run).verdict is not Finding.INTACT


def test_without_its_store_a_run_shows_the_ranks_that_are_here(published: Published, tmp_path: Path) -> None:
    staged = Staged("run-of-two", str(tmp_path / "gone"), tmp_path / "staging-0", "node-0")
    claim_staged(tmp_path / "RUN", staged, title="")
    with open_run(tmp_path / "RUN") as run:
        assert [view.rank for view in run.sessions] == [0]
        (ranks,) = run.attendance
        assert ranks.absent == (1,)


def test_ranks_that_were_not_published_to_the_end_are_told(published: Published, tmp_path: Path) -> None:
    for receipt in published.store.rglob("receipt-*"):
        receipt.unlink()
    with open_run(published.store) as run:
        assert "rank 0: no receipt of a final sync" in run.envelope.metadata[TROUBLE]
        assert "rank 1: no receipt of a final sync" in run.envelope.metadata[TROUBLE]


@pytest.mark.parametrize("what", ["RUN", "store", "staging-0/run-of-two"])
def test_a_run_is_packed_with_its_ranks_wherever_they_are(published: Published, tmp_path: Path, what: str) -> None:
    claim_staged(
        tmp_path / "RUN", Staged("run-of-two", str(published.store), tmp_path / "staging-0", "node-0"), title=""
    )
    for number in (1, 2):
        packed = pack(tmp_path / what, tmp_path / f"{number}.tar.zst")
        assert packed.left_out == ()
    assert (tmp_path / "1.tar.zst").read_bytes() == (tmp_path / "2.tar.zst").read_bytes()
    with open_run(tmp_path / "1.tar.zst") as run, open_run(tmp_path / what) as same:
        assert [view.rank for view in run.sessions] == [view.rank for view in same.sessions]
        assert list(run.records("rank-0")) == list(same.records("rank-0")) != []
        assert verify(run).verdict is verify(same).verdict


def test_st22_a_rank_with_another_store_is_missing_with_that_as_a_reason(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.syncer(made.places[0]).final()
    with open_run(made.store) as run:
        told = run.envelope.metadata[TROUBLE]
        assert told == "rank 1: nothing in this store; it may have been given another one, or its node was lost"
        assert run.attendance[0].absent == (1,)


def test_a_damaged_store_is_refused_and_leaves_nothing(published: Published) -> None:
    next(published.store.rglob("0000000*")).unlink()
    with pytest.raises(EvidenceError) as caught:
        open_run(published.store)
    assert caught.value.code == "damaged_store"
    assert caught.value.details


def test_st25_a_restored_store_that_is_kept_is_used_again_after_a_look_at_every_file(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keep_restored() as kept:
        require_both(published.store)
        (place,) = kept
        assert place.parent == published.scratch
        assert place.name.startswith("paritrace-restored-run-of-two-")
        monkeypatch.setattr("paritrace.store.kept_restores.restore_into", None)  # not restored a second time
        require_both(published.store)
        assert kept == [place, place]
        changed = next(place.rglob("calls.jsonl"))
        changed.write_bytes(changed.read_bytes() + b"\n")
        with pytest.raises(EvidenceError) as caught:
            open_run(published.store)
        assert caught.value.code == "kept_restored_changed"
    assert [one.name for one in published.scratch.iterdir()] == [place.name]
    shutil.rmtree(place)


def test_st25_another_state_of_the_store_is_another_folder(published: Published) -> None:
    with keep_restored() as kept:
        require_both(published.store)
        next(published.store.rglob("receipt-*")).unlink()
        with open_run(published.store) as run:
            assert "no receipt of a final sync" in run.envelope.metadata[TROUBLE]
    first, second = kept
    assert first != second
    for place in kept:
        shutil.rmtree(place)


def test_st25_a_damaged_store_leaves_no_folder_that_stays(published: Published) -> None:
    next(published.store.rglob("0000000*")).unlink()
    with keep_restored() as kept, pytest.raises(EvidenceError):
        open_run(published.store)
    assert kept == []


def test_a_claimed_run_directory_is_not_claimed_twice(tmp_path: Path) -> None:
    staged = Staged("r", "store", tmp_path / "staging", "node")
    claim_staged(tmp_path / "RUN", staged, title="")
    with pytest.raises(EvidenceError) as caught:
        claim_staged(tmp_path / "RUN", staged, title="")
    assert caught.value.code == "run_exists"


@pytest.mark.parametrize(
    "text", [pytest.param("s3://bucket/run", marks=pytest.mark.slow), "memory://none", "file:///none/such"]
)
def test_an_address_where_a_path_is_asked_for(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    if text.startswith("s3"):
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        pytest.importorskip("boto3")
    with pytest.raises(ParitraceError) as caught:
        open_run(Path(text))
    assert caught.value.code in ("not_a_store", "no_credentials")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_nothing_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as caught:
        open_run(tmp_path)
    assert caught.value.code == "not_a_run"
    with pytest.raises(HostError) as missing:
        open_run(tmp_path / "none")
    assert missing.value.code == "not_found"


def test_st17_a_rank_whose_last_sync_failed_is_a_counted_gap_until_one_went_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Published(tmp_path)
    place = made.places[0]
    staged = Staged("run-of-two", str(made.store), tmp_path / "staging-0", "node-0")
    claim_staged(tmp_path / "RUN", staged, title="")
    made.syncer(place).once()
    with monkeypatch.context() as broken:
        broken.setattr("paritrace.store.targets.directory.DirectoryTarget.list", _no_answer)
        with pytest.raises(HostError):
            made.syncer(place).final()
    with open_run(tmp_path / "RUN") as run:
        assert run.envelope.metadata[STAGING_FAILED] == "rank 0: io_error"
        found = side_coverage(run, (), Settings())
        assert (found.gaps, found.complete) == ({"staging_failed": 1}, False)
        assert "store: rank 0: io_error" in found.remarks
    made.syncer(place).final()
    with open_run(tmp_path / "RUN") as run:
        assert STAGING_FAILED not in run.envelope.metadata


def _no_answer(*_: object) -> None:
    raise HostError("the target does not answer", code="io_error", fix="wait")
