"""A store back as a run: whole, or refused with everything that is wrong; a prefix when asked for (ST-11, ST-13)."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.store.records import is_loss
from paritrace.store.restoring import restore
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.verifying import StoreVerdict, verify_store
from tests.store.places import QUICK, Place


def restored(store: Path, destination: Path, *, partial: bool = False, files: Files = QUICK) -> dict[str, bytes]:
    restore(DirectoryTarget(store), destination, partial=partial, files=files)
    return tree(destination)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "restore.json"
    }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three bundles and a receipt: a journal that grows, and a whole file."""
    place = Place(tmp_path)
    place.write("t/x.bin", bytes(range(256)) * 300)
    for number in range(3):
        place.append("a.jsonl", b'{"n":%d}\n' % number * 400)
        place.once()
    place.final()
    return place


def test_a_restored_run_is_the_staged_one(tmp_path: Path, place: Place) -> None:
    assert restored(place.store, tmp_path / "back") == {
        "rank-0/a.jsonl": (place.originals / "a.jsonl").read_bytes(),
        "rank-0/t/x.bin": (place.originals / "t/x.bin").read_bytes(),
    }
    told = json.loads((tmp_path / "back" / "restore.json").read_text())
    (rank,) = told["ranks"]
    assert (rank["bundles"], rank["expected"], rank["records"], told["problems"]) == (3, 3, 1200, [])
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "staging-n0", "store"]


def test_older_versions_lie_beside_the_ranks(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for data in (b"one", b"two"):
        place.write("x.bin", data)
        place.write("a.jsonl", data + b"\n").touch()
        place.once()
        (place.originals / "a.jsonl").rename(place.originals / "a.jsonl.1")
    place.final()
    assert restored(place.store, tmp_path / "back") == {
        "rank-0/x.bin": b"two",
        "rank-0/a.jsonl.1": b"two\n",
        ".paritrace-versions/n0/rank-0/a.jsonl.v1": b"one\n",
        ".paritrace-versions/n0/rank-0/x.bin.v1": b"one",
    }


def test_a_file_that_became_a_folder(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("x", b"file").touch()
    place.once()
    (place.originals / "x").unlink()
    place.write("x/y", b"inside")
    place.final()
    assert restored(place.store, tmp_path / "back") == {
        "rank-0/x/y": b"inside",
        ".paritrace-versions/n0/rank-0/x.v1": b"file",
    }


def test_empty_folders_come_back_and_are_no_loss(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    for name in ("empty", "deep/below", "filled"):
        (place.originals / name).mkdir(parents=True)
    assert place.once().tails == ()  # they may be filled yet
    place.write("filled/x", b"x")
    place.final()
    restore(place.target(), tmp_path / "back", files=QUICK)
    back = tmp_path / "back" / "rank-0"
    assert sorted(path.relative_to(back).as_posix() for path in back.rglob("*") if path.is_dir()) == [
        *("deep", "deep/below", "empty", "filled")
    ]
    (rank,) = verify_store(place.target()).ranks
    assert [(one.path, is_loss(one)) for one in rank.remarks] == [("deep/below", False), ("empty", False)]


def test_a_program_can_be_run_again_and_nothing_else_of_the_modes_is_kept(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, mode in {"run.sh": 0o700, "data.bin": 0o666, "a.jsonl": 0o755}.items():
        place.write(name, b"x\n").chmod(mode)
    place.final()
    umask = os.umask(0o027)
    try:
        restore(place.target(), tmp_path / "back", files=QUICK)
    finally:
        os.umask(umask)
    back = tmp_path / "back" / "rank-0"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in back.iterdir()}
    assert modes == {"run.sh": 0o750, "data.bin": 0o640, "a.jsonl": 0o640}


def test_ranks_and_nodes_together(tmp_path: Path) -> None:
    for node, rank in (("n0", 0), ("n0", 1), ("n1", 2)):
        one = Place(tmp_path, node=node, rank=rank)
        one.write("a.jsonl", b"%d\n" % rank)
        one.final()
    found = restored(tmp_path / "store", tmp_path / "back")
    assert found == {f"rank-{rank}/a.jsonl": b"%d\n" % rank for rank in range(3)}


def test_one_rank_on_two_nodes(tmp_path: Path) -> None:
    """A rank that was started again on another node: its paths are joined, and the same path twice is refused."""
    places = [Place(tmp_path, node=node) for node in ("n0", "n1")]
    for place in places:
        place.write(f"{place.staged.node_id}.jsonl", b"1\n")
        place.final()
    assert set(restored(tmp_path / "store", tmp_path / "back")) == {"rank-0/n0.jsonl", "rank-0/n1.jsonl"}
    for place in places:
        place.write("same.jsonl", b"1\n")
        place.final()
    with pytest.raises(EvidenceError, match="1 problem") as caught:
        restored(tmp_path / "store", tmp_path / "again")
    assert "path_on_two_nodes: 'rank-0/same.jsonl'" in caught.value.details[0]


@pytest.mark.parametrize("kind", ["file", "folder", "link", "full"])
def test_a_destination_that_exists_is_refused(tmp_path: Path, place: Place, kind: str) -> None:
    back = tmp_path / "back"
    match kind:
        case "file":
            back.write_bytes(b"mine")
        case "link":
            back.symlink_to("nowhere")
        case _:
            back.mkdir()
            if kind == "full":
                (back / "mine").write_bytes(b"mine")
    before = tree(tmp_path)
    with pytest.raises(HostError) as caught:
        restore(place.target(), back, files=QUICK)
    assert caught.value.code == "already_there"
    assert tree(tmp_path) == before


def test_a_destination_made_meanwhile_is_not_replaced(tmp_path: Path, place: Place) -> None:
    class Racing(Files):
        def sync_all(self, folder: Path) -> None:
            (tmp_path / "back").mkdir()

    with pytest.raises(HostError) as caught:
        restore(place.target(), tmp_path / "back", files=Racing())
    assert caught.value.code == "already_there"
    assert list((tmp_path / "back").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def bundle(store: Path, number: int) -> Path:
    (found,) = (store / ".paritrace-bundles" / "n0" / "rank-0").glob(f"{number:08d}-*")
    return found


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swap(store: Path) -> None:
    first, second = bundle(store, 1), bundle(store, 2)
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def link(store: Path) -> None:
    path = bundle(store, 2)
    path.rename(store / "aside")
    path.symlink_to(store / "aside")


def folder(store: Path) -> None:
    path = bundle(store, 2)
    path.unlink()
    path.mkdir()
    (path / "inside").write_bytes(b"x")


def renumber(store: Path) -> None:
    path = bundle(store, 3)
    path.rename(path.with_name(path.name.replace("00000003", "00000004")))


def double(store: Path) -> None:
    path = bundle(store, 2)
    path.with_name(f"00000002-{'0' * 64}.tar").write_bytes(b"x")


DAMAGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "one bit": (lambda store: flip(bundle(store, 2)), {"wrong_digest"}),
    "cut off": (lambda store: bundle(store, 1).write_bytes(bundle(store, 1).read_bytes()[:-9]), {"wrong_digest"}),
    "empty": (lambda store: bundle(store, 1).write_bytes(b""), {"damaged_bundle", "wrong_digest"}),
    "removed": (lambda store: bundle(store, 2).unlink(), {"missing_bundle"}),
    "tail removed": (lambda store: bundle(store, 3).unlink(), {"missing_tail"}),
    "swapped": (swap, {"wrong_name", "wrong_digest"}),
    "renumbered": (renumber, {"missing_bundle", "wrong_name"}),
    "doubled": (double, {"conflicting_sequence"}),
    "a link": (link, {"damaged_bundle"}),
    "a folder": (folder, {"missing_bundle", "foreign_file"}),
    "a foreign file": (lambda store: (bundle(store, 1).parent / "notes.txt").write_text("x"), {"foreign_file"}),
    "owner": (lambda store: (store / ".paritrace-bundles/n0/owner.json").write_text("{}"), {"damaged_document"}),
    "no owner": (lambda store: (store / ".paritrace-bundles/n0/owner.json").unlink(), {"damaged_document"}),
    "run mark": (lambda store: (store / ".paritrace-bundles/run.json").unlink(), {"damaged_document"}),
    "receipt": (
        lambda store: flip(next(bundle(store, 1).parent.glob("receipt-*"))),
        {"damaged_document", "wrong_digest"},
    ),
}


@pytest.mark.parametrize("name", list(DAMAGES))
def test_damage_is_named_and_nothing_is_written(tmp_path: Path, place: Place, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(place.store)
    found = verify_store(place.target())
    assert found.verdict is StoreVerdict.DAMAGED
    assert {problem.kind.value for problem in found.problems} & expected
    assert all(problem.name.startswith(".paritrace-bundles/") for problem in found.problems)
    before = tree(tmp_path)
    with pytest.raises(EvidenceError) as caught:
        restore(place.target(), tmp_path / "back", files=QUICK)
    assert (caught.value.code, caught.value.exit_status) == ("damaged_store", 2)
    assert len(caught.value.details) == len(found.problems)
    assert tree(tmp_path) == before


def test_a_changed_bit_names_bundle_and_segment(tmp_path: Path) -> None:
    """Bytes that do not compress lie open in the bundle, so the file inside it can be named."""
    place = Place(tmp_path)
    noise = b"".join(b"%x" % (number * 2654435761 % 2**32) for number in range(40_000))
    place.write("a.bin", bytes.fromhex(noise.decode()[: len(noise) // 2 * 2]))
    place.write("b.bin", bytes(range(256)))
    place.final()
    assert bundle(place.store, 1).suffix == ".tar"
    flip(bundle(place.store, 1))
    kinds = {(problem.kind.value, problem.segment) for problem in verify_store(place.target()).problems}
    assert kinds == {("wrong_segment", "a.bin"), ("wrong_digest", "")}


@pytest.mark.parametrize("from_end", [6, 40, 4000])
def test_st11_a_changed_bit_of_a_compressed_bundle_names_the_segment(tmp_path: Path, from_end: int) -> None:
    place = Place(tmp_path)
    place.write("first.txt", b"first")
    place.write("second.txt", b"".join(b"line %d of some text\n" % (number * number) for number in range(20_000)))
    place.final()
    (name,) = place.bundles()
    path = place.store / str(name)
    data = bytearray(path.read_bytes())
    data[-from_end] ^= 1
    path.write_bytes(data)
    problems = verify_store(place.target()).problems
    assert {(problem.name, problem.segment) for problem in problems} == {(str(name), ""), (str(name), "second.txt")}


def test_st11_a_flipped_bit_of_a_frame_is_told_wherever_it_is(tmp_path: Path) -> None:
    """A frame of one block: the library gives out nothing of it when its own check fails."""
    place = Place(tmp_path)
    place.append("a.jsonl", b"".join(b'{"n":%d}\n' % number for number in range(100)))
    place.final()
    (name,) = place.bundles()
    path = place.store / str(name)
    whole = path.read_bytes()
    named: set[str] = set()
    for at in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        found = verify_store(place.target())
        assert found.verdict is StoreVerdict.DAMAGED
        named |= {problem.segment for problem in found.problems}
    assert "a.jsonl" in named


def test_several_problems_are_listed_at_once(tmp_path: Path, place: Place) -> None:
    flip(bundle(place.store, 1))
    bundle(place.store, 2).unlink()
    (place.store / ".paritrace-bundles" / "x").write_bytes(b"")
    found = {problem.kind.value for problem in verify_store(place.target()).problems}
    assert found >= {"wrong_digest", "missing_bundle", "foreign_file"}


@pytest.mark.parametrize(("number", "records"), [(1, 0), (2, 400), (3, 800)])
def test_partial_takes_the_verified_prefix_and_says_what_is_missing(
    tmp_path: Path, place: Place, number: int, records: int
) -> None:
    flip(bundle(place.store, number))
    found = restored(place.store, tmp_path / "back", partial=True)
    assert found.get("rank-0/a.jsonl", b"") == (place.originals / "a.jsonl").read_bytes()[: 8 * records]
    told = json.loads((tmp_path / "back" / "restore.json").read_text())
    (rank,) = told["ranks"]
    assert (rank["bundles"], rank["expected"], rank["records"]) == (number - 1, 3, records)
    assert {problem["kind"] for problem in told["problems"]} >= {"wrong_digest"}


def test_without_a_receipt_the_end_is_not_checked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    assert verify_store(place.target()).verdict is StoreVerdict.NOT_CHECKED
    restored(place.store, tmp_path / "back")
    told = json.loads((tmp_path / "back" / "restore.json").read_text())
    assert told["ranks"][0]["expected"] == {"gap": "no_receipt"}


def test_a_bundle_of_another_run_is_named(tmp_path: Path, place: Place) -> None:
    other = Place(tmp_path / "other")
    other.staged = type(other.staged)(other.staged.staging, "another", "n0", 0)
    other.originals.mkdir(parents=True)
    other.write("a.jsonl", b"1\n")
    other.once()
    for path in (place.store / ".paritrace-bundles" / "n0" / "rank-0").iterdir():
        path.unlink()
    shutil.copy(bundle(other.store, 1), place.store / ".paritrace-bundles" / "n0" / "rank-0")
    found = {problem.kind.value for problem in verify_store(place.target()).problems}
    assert found == {"foreign_run", "another_owner"}


def test_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as caught:
        verify_store(DirectoryTarget(tmp_path / "nothing"))
    assert caught.value.code == "not_a_store"


def test_a_destination_that_is_too_small_is_found_before_it_is_full(tmp_path: Path, place: Place) -> None:
    class Small(Files):
        def free_bytes(self, path: Path) -> int:
            return 1000

    with pytest.raises(HostError) as caught:
        restore(place.target(), tmp_path / "back", files=Small())
    assert caught.value.code == "disk_full"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["staging-n0", "store"]
