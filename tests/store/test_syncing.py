"""A rank's sync: only whole new records travel, whole files once, and nothing twice (ST-3 to ST-8a, ST-18 to ST-21)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.store.bundle_writing import compressed, tar_of
from paritrace.store.records import Remark, RemarkKind
from paritrace.store.sources import TAIL_BYTES
from paritrace.store.targets import is_transient
from paritrace.store.targets.memory import MemoryTarget
from paritrace.store.verifying import verify_store
from tests.store.places import Place
from tests.store.reading import contents, manifests, streams


def kinds(remarks: tuple[Remark, ...]) -> list[tuple[RemarkKind, str, int]]:
    return [(remark.kind, remark.path, remark.offset) for remark in remarks]


def test_an_incomplete_last_record_waits_for_its_newline(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n2\n3")
    first = place.once()
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n"}
    assert kinds(first.tails) == [(RemarkKind.INCOMPLETE_RECORD, "a.jsonl", 4)]
    assert place.once().published == ()
    place.append("a.jsonl", b"4\n5\n")
    place.once()
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n34\n5\n"}


def test_bundles_form_a_chain_and_name_their_content(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(3):
        place.append("a.jsonl", b"%d\n" % number)
        place.once()
    found = manifests(place)
    assert [manifest.sequence for manifest in found] == [1, 2, 3]
    assert [manifest.previous for manifest in found] == [None, *(name.sha256 for name in place.bundles()[:2])]
    (segment,) = found[2].segments
    assert (segment.offset, segment.length, segment.records) == (4, 2, 1)
    assert len({manifest.incarnation for manifest in found}) == 1


def test_a_bundle_opens_with_tar_and_its_name_is_its_digest(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("deep/ü x.jsonl", b'{"a":1}\n' * 20_000)
    place.write("noise.bin", bytes(range(256)) * 10)
    place.once()
    (name,) = place.bundles()
    told = subprocess.run(["tar", "--zstd", "-xf", str(place.store / str(name)), "-C", str(tmp_path)], check=False)
    assert told.returncode == 0
    assert (tmp_path / "00001" / "deep" / "ü x.jsonl").read_bytes() == b'{"a":1}\n' * 20_000
    assert json.loads((tmp_path / "manifest.json").read_text())["sequence"] == 1
    summed = subprocess.run(["sha256sum", str(place.store / str(name))], check=True, capture_output=True, text=True)
    assert summed.stdout.split()[0] == name.sha256
    assert (place.store / str(name)).stat().st_size < 10_000


@pytest.mark.parametrize("data", [b"1\n" * 1000, bytes(range(256)) * 1000])
def test_an_equal_manifest_and_equal_content_give_equal_bytes(tmp_path: Path, data: bytes) -> None:
    place = Place(tmp_path)
    place.write("a.bin", data)
    place.once()
    ((manifest, [(_, content)]),) = contents(place)
    (name,) = place.bundles()
    tar = list(tar_of(manifest, [[content]]))
    assert (place.store / str(name)).read_bytes() in (b"".join(tar), b"".join(compressed(tar)))


def test_a_whole_file_travels_once_and_again_when_it_changes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("t/x.bin", b"old")
    place.once()
    place.clock.move(10**12)
    assert place.once().published == ()
    path.touch()
    assert place.once().published == ()
    path.write_bytes(b"new")
    place.once()
    assert streams(place) == {("t/x.bin", 1): b"old", ("t/x.bin", 2): b"new"}
    path.unlink()
    assert place.once().published == ()
    path.write_bytes(b"back")
    place.once()
    assert streams(place)["t/x.bin", 3] == b"back"


def test_a_file_that_becomes_a_program_is_a_new_version_and_tar_knows(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("run.sh", b"#!/bin/sh\n")
    path.chmod(0o644)
    place.once()
    path.chmod(0o600)
    assert place.once().published == ()
    path.chmod(0o700)
    place.once()
    assert place.once().published == ()
    assert [manifest.segments[0].executable for manifest in manifests(place)] == [False, True]
    subprocess.run(["tar", "--zstd", "-xf", place.store / str(place.bundles()[-1])], cwd=tmp_path, check=True)
    assert os.access(tmp_path / "00001" / "run.sh", os.X_OK)


def test_a_rewrite_of_equal_size_and_mtime_is_seen(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("x.bin", b"aaaa")
    before = path.stat()
    place.once()
    path.write_bytes(b"bbbb")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    place.once()
    assert streams(place)["x.bin", 2] == b"bbbb"


def test_the_longest_waiting_goes_first_and_one_file_may_exceed_the_limit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"x" * 99 + b"\n")
    place.write("b.bin", b"y" * 5000)
    place.write("c.jsonl", (b"z" * 49 + b"\n") * 3)
    first = place.once(batch_bytes=120)
    assert (first.more, [segment.path for segment in manifests(place)[0].segments]) == (True, ["a.jsonl", "c.jsonl"])
    assert first.waiting_bytes == 5000 + 150
    place.append("a.jsonl", b"late\n")
    place.once(batch_bytes=120)
    assert [segment.path for segment in manifests(place)[1].segments] == ["b.bin"]
    place.final(batch_bytes=120)
    assert streams(place)["c.jsonl", 1] == (b"z" * 49 + b"\n") * 3
    assert streams(place)["b.bin", 1] == b"y" * 5000


def test_a_record_larger_than_a_bundle_stops_its_journal_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"ok\n" + b"x" * 200 + b"\nlost\n")
    place.write("b.jsonl", b"fine\n")
    place.once(batch_bytes=100)
    second = place.once(batch_bytes=100)
    assert kinds(second.remarks) == [(RemarkKind.RECORD_TOO_LARGE, "a.jsonl", 3)]
    place.append("b.jsonl", b"more\n")
    assert place.once(batch_bytes=100).remarks == ()
    assert streams(place) == {("a.jsonl", 1): b"ok\n", ("b.jsonl", 1): b"fine\nmore\n"}
    assert place.once(batch_bytes=100).published == ()


def test_a_journal_that_was_stopped_and_written_anew_goes_on(tmp_path: Path) -> None:
    """Found by the model: nothing of it was published, so its published prefix says nothing of the change."""
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"x" * 200 + b"\n")
    place.once(batch_bytes=100)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"y" * 40 + b"\n" + b"z" * 200)
    place.final(batch_bytes=100)
    assert streams(place) == {("a.jsonl", 1): b"y" * 40 + b"\n"}
    assert place.once(batch_bytes=100).published == ()


@pytest.mark.parametrize("size", [99, 100])
def test_a_record_that_just_fits_travels(tmp_path: Path, size: int) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"x" * (size - 1) + b"\n" + b"y" * 99)
    place.once(batch_bytes=100)
    assert streams(place)["a.jsonl", 1] == b"x" * (size - 1) + b"\n"


def test_truncated_and_regrown_past_the_offset_is_a_new_version(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"old\n" * 10)
    place.once()
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"new\n" * 20)
    report = place.once()
    assert kinds(report.remarks) == [(RemarkKind.REPLACED, "a.jsonl", 40)]
    assert streams(place) == {("a.jsonl", 1): b"old\n" * 10, ("a.jsonl", 2): b"new\n" * 20}


def test_a_change_in_the_middle_of_a_foreign_journal_is_found_at_the_end(tmp_path: Path) -> None:
    place = Place(tmp_path)
    lines = b"%05d\n" * 30_000 % tuple(range(30_000))
    path = place.write("a.jsonl", lines)
    place.once()
    with path.open("r+b") as file:
        file.seek(len(lines) // 2)
        file.write(b"#####\n")
    assert len(lines) > 2 * TAIL_BYTES
    assert place.once().published == ()
    report = place.final()
    assert kinds(report.remarks) == [(RemarkKind.REPLACED, "a.jsonl", len(lines))]
    assert streams(place)["a.jsonl", 2] == path.read_bytes()


def test_rotated_by_renaming_continues_under_the_new_name(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"1\n")
    place.once()
    path.rename(place.originals / "a.jsonl.1")
    place.append("a.jsonl.1", b"2\n")
    place.write("a.jsonl", b"3\n")
    place.once()
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n", ("a.jsonl", 2): b"3\n"}
    (place.originals / "a.jsonl.1").rename(place.originals / "a.jsonl.2")
    (place.originals / "a.jsonl").rename(place.originals / "a.jsonl.1")
    assert len(place.once().published) == 1
    assert place.once().published == ()
    moved = [(segment.path, segment.origin, segment.version) for segment in manifests(place)[-1].segments]
    assert moved == [("a.jsonl.1", "a.jsonl", 2), ("a.jsonl.2", "a.jsonl", 1)]


def test_copied_and_truncated_is_a_new_version(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"1\n2\n")
    place.once()
    place.write("a.jsonl.1", path.read_bytes())
    with path.open("r+b") as file:
        file.truncate(0)
    report = place.once()
    assert kinds(report.remarks) == [(RemarkKind.REPLACED, "a.jsonl", 4)]
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n", ("a.jsonl", 2): b"", ("a.jsonl.1", 1): b"1\n2\n"}


def test_what_vanished_before_it_was_published_is_named_with_its_range(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"1\n" + b"x" * 90 + b"\n")
    place.write("b.jsonl", b"y" * 90 + b"\n")
    place.once(batch_bytes=95)
    path.unlink()
    (place.originals / "b.jsonl").unlink()
    place.write("c.jsonl", b"z\n")
    reports = [place.once(batch_bytes=95) for _ in range(3)]
    lost = [remark for report in reports for remark in report.remarks]
    assert kinds(tuple(lost)) == [(RemarkKind.VANISHED, "b.jsonl", 0)]
    assert lost[0].length == 91
    place.append("c.jsonl", b"z\n")
    place.once()
    assert [remark for manifest in manifests(place) for remark in manifest.remarks] == lost


def test_the_part_of_a_journal_that_was_seen_and_never_published_is_a_loss(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"x" * 49 + b"\n" + b"y" * 79 + b"\n")
    place.once(batch_bytes=100)
    path.unlink()
    assert place.once().remarks == ()
    (lost,) = place.once().remarks
    assert (lost.kind, lost.path, lost.offset, lost.length) == (RemarkKind.VANISHED, "a.jsonl", 50, 80)
    assert place.once().remarks == ()


def test_links_pipes_and_placeholders_are_named_and_not_taken(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(".nfs000123", b"x")
    place.write(".paritrace-0123.tmp", b"half")
    (place.originals / "link.jsonl").symlink_to("/etc/passwd")
    (place.originals / "folder").symlink_to("/etc")
    os.mkfifo(place.originals / "pipe.jsonl")
    os.close(os.open(os.fsencode(place.originals) + b"/\xff.jsonl", os.O_CREAT | os.O_WRONLY))
    place.write("ok.jsonl", b"1\n")
    report = place.once()
    assert streams(place) == {("ok.jsonl", 1): b"1\n"}
    assert sorted((remark.kind.value, remark.path) for remark in report.remarks) == [
        ("name_not_utf8", "\\udcff.jsonl"),
        ("nfs_placeholder", ".nfs000123"),
        ("not_a_file", "folder"),
        ("not_a_file", "link.jsonl"),
        ("not_a_file", "pipe.jsonl"),
    ]


def test_a_staging_folder_that_vanishes_stops_loudly(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    place.originals.rename(tmp_path / "away")
    for sync in (place.once, place.final):
        with pytest.raises(HostError) as caught:
            sync()
        assert caught.value.code == "staging_gone"


def test_the_final_sync_drains_and_leaves_one_receipt(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"0123456789\n" * 50 + b"torn")
    report = place.final(batch_bytes=100)
    assert (report.bundles, report.final, report.more) == (6, True, False)
    assert streams(place)["a.jsonl", 1] == b"0123456789\n" * 50
    receipts = sorted((place.store / ".paritrace-bundles" / "n0" / "rank-0").glob("receipt-*"))
    (receipt,) = [json.loads(path.read_text()) for path in receipts]
    assert (receipt["bundles"], receipt["head"]) == (report.bundles, place.bundles()[-1].sha256)
    assert [(one["kind"], one["offset"], one["length"]) for one in receipt["remarks"]] == [
        ("incomplete_record", 550, 4)
    ]
    assert place.final().published == ()
    place.append("a.jsonl", b"!\n")
    assert len(place.final().published) == 2


@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "older", "token"])
def test_a_lost_checkpoint_stops_and_numbering_never_begins_anew(tmp_path: Path, damage: str) -> None:
    place = Place(tmp_path)
    checkpoint, owner = place.staged.checkpoint, place.staged.owner
    place.write("a.jsonl", b"1\n")
    place.once()
    older = checkpoint.read_bytes()
    place.append("a.jsonl", b"2\n")
    place.once()
    match damage:
        case "missing":
            checkpoint.unlink()
        case "empty":
            checkpoint.write_bytes(b"")
        case "torn":
            checkpoint.write_bytes(older[:-40])
        case "older":
            checkpoint.write_bytes(older)
        case _:
            owner.unlink()
    place.append("a.jsonl", b"3\n")
    with pytest.raises(EvidenceError) as caught:
        place.once()
    assert caught.value.code == "checkpoint_lost"
    assert "new run id" in caught.value.fix
    assert len(place.bundles()) == 2


def test_a_target_that_lost_its_bundles_is_not_begun_anew(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    (bundle,) = place.bundles()
    (place.store / str(bundle)).unlink()
    place.append("a.jsonl", b"2\n")
    with pytest.raises(EvidenceError) as caught:
        place.once()
    assert caught.value.code == "checkpoint_lost"
    assert place.bundles() == []


@pytest.mark.parametrize("is_folder", [False, True])
def test_st16_nothing_is_written_where_a_disk_was_mounted_and_all_is_published_when_it_is_back(
    tmp_path: Path, is_folder: bool
) -> None:
    place, other = Place(tmp_path), Place(tmp_path, rank=1)
    place.append("a.jsonl", b"1\n")
    other.append("a.jsonl", b"1\n")
    place.once()
    place.store.rename(tmp_path / "away")
    if is_folder:
        place.store.mkdir()
    place.append("a.jsonl", b"2\n")
    for rank in (place, other):
        with pytest.raises(HostError) as caught:
            rank.once()
        assert (caught.value.code, is_transient(caught.value)) == ("target_gone", True)
    assert list(place.store.rglob("*")) == []
    if is_folder:
        place.store.rmdir()
    (tmp_path / "away").rename(place.store)
    place.final()
    other.final()
    assert [(one.rank, one.records) for one in verify_store(place.target()).ranks] == [(0, 2), (1, 1)]


def test_a_wrong_target_can_be_changed_while_nothing_is_published(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.once()
    place.store.rename(tmp_path / "wrong")
    place.append("a.jsonl", b"1\n")
    assert place.once().bundles == 1


def test_what_a_killed_upload_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    folder = place.store / ".paritrace-bundles" / "n0" / "rank-0"
    for name in (".paritrace-0123.tmp", ".other", "notes.txt"):
        (folder / name).write_bytes(b"half")
    (place.store / ".paritrace-bundles" / ".paritrace-4567.tmp").write_bytes(b"of another node")
    (place.staged.pending / "bundle").write_bytes(b"of a kill before it was promised")
    place.once()
    assert {path.name for path in folder.iterdir()} == {
        place.bundles()[0].sha256.join(("00000001-", ".tar.zst")),
        ".other",
        "notes.txt",
    }
    assert (place.store / ".paritrace-bundles" / ".paritrace-4567.tmp").exists()
    assert list(place.staged.pending.iterdir()) == []


def test_two_machines_under_one_node_id_are_found_at_start(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "one", store=tmp_path / "store"), Place(tmp_path / "two", store=tmp_path / "store")
    second.host = "beta"
    for place in (first, second):
        place.write("a.jsonl", b"1\n")
    first.once()
    with pytest.raises(EvidenceError) as caught:
        second.once()
    assert caught.value.code == "checkpoint_lost"  # the target knows the node, and this staging has no token of it
    assert len(first.bundles()) == 1


def test_two_machines_that_start_together_are_told_apart_by_their_tokens(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "one", store=tmp_path / "a"), Place(tmp_path / "two", store=tmp_path / "b")
    for place in (first, second):
        place.write("a.jsonl", b"1\n")
        place.once()
    shutil.rmtree(tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(EvidenceError) as caught:
        second.once()
    assert caught.value.code == "duplicate_node"


def test_one_target_holds_one_run(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "one", store=tmp_path / "store"), Place(tmp_path / "two", store=tmp_path / "store")
    second.staged = type(second.staged)(second.staged.staging, "other", "n1", 0)
    second.originals.mkdir(parents=True)
    first.write("a.jsonl", b"1\n")
    second.write("a.jsonl", b"1\n")
    first.once()
    with pytest.raises(EvidenceError) as caught:
        second.once()
    assert caught.value.code == "foreign_run"


@pytest.mark.parametrize("name", ["sync.tar", "sync.tar.gz", "sync.tar.zst"])
def test_an_old_archive_in_the_target_is_refused(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.store.mkdir()
    (place.store / name).write_bytes(b"x")
    with pytest.raises(EvidenceError) as caught:
        place.once()
    assert caught.value.code == "old_layout"


def test_a_failed_upload_keeps_its_bundle_byte_for_byte(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    target = MemoryTarget("x", objects={})
    place.syncer(target=target).once()
    place.append("a.jsonl", b"2\n")
    no_space = HostError("full", code="disk_full", fix="free space")
    syncer = place.syncer(target=target)
    real = target.put_if_absent
    target.put_if_absent = lambda *_, **__: (_ for _ in ()).throw(no_space)  # type: ignore[method-assign]
    with pytest.raises(HostError, match="full"):
        syncer.once()
    kept = (place.staged.pending / "bundle").read_bytes()
    place.append("a.jsonl", b"3\n")
    target.put_if_absent = real  # type: ignore[method-assign]
    (name,) = syncer.once().published
    assert target.objects[name] == kept


def test_st4_a_folder_too_deep_to_look_into_is_named_and_stops_nothing_else(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.append("a.jsonl", b"1\n")
    above, name = os.open(place.originals, os.O_RDONLY), "d" * 200
    for _ in range(25):
        os.mkdir(name, dir_fd=above)
        below = os.open(name, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=above))
    os.close(above)
    (remark,) = place.final().remarks
    assert (remark.kind, set(remark.path)) == (RemarkKind.UNREADABLE, {"d", "/"})
    assert streams(place) == {("a.jsonl", 1): b"1\n"}
    assert place.final().published == ()
    shutil.rmtree(place.originals)
