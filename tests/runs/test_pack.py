"""A packed run: deterministic, opened like a directory, refused when it is not whole, never escaping (EV-16, P4)."""

import gc
import io
import random
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from paritrace.errors import EvidenceError, HostError, Outcome, ParitraceError
from paritrace.files import Files, Primitives
from paritrace.runs.archive import INVENTORY_NAME
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack, peek_envelope
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from tests.runs.making import another_process, capture, request, write_records


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    capture(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def archive(tmp_path: Path, run_dir: Path) -> Path:
    pack(run_dir, tmp_path / "run.tar.zst")
    return tmp_path / "run.tar.zst"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def test_an_archive_reads_like_its_directory(run_dir: Path, archive: Path) -> None:
    plain = open_run(run_dir)
    with open_run(archive) as packed:
        assert packed.digest == plain.digest
        assert packed.envelope == plain.envelope
        assert list(packed.records("rank-0")) == list(plain.records("rank-0"))
        assert verify(packed).verdict is Finding.INTACT


def test_equal_runs_give_equal_bytes(tmp_path: Path, run_dir: Path, archive: Path) -> None:
    for path in run_dir.rglob("*"):
        path.touch()
        if path.is_file():
            path.chmod(0o600)
    pack(run_dir, tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == archive.read_bytes()


def test_any_tar_program_opens_it(archive: Path, run_dir: Path) -> None:
    data = zstandard.ZstdDecompressor().decompressobj().decompress(archive.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
        assert names[0] == "run.json"
        assert names[-1] == INVENTORY_NAME
        member = tar.extractfile("sessions/rank-0/calls.jsonl")
        assert member is not None
        assert member.read() == (run_dir / "sessions" / "rank-0" / "calls.jsonl").read_bytes()
        assert {(info.uid, info.gid, info.mtime, info.mode) for info in tar.getmembers()} == {(0, 0, 0, 0o644)}


def test_what_was_unpacked_goes_away(archive: Path, scratch: Path) -> None:
    with open_run(archive, scratch=scratch) as run:
        assert run.folder.parent == scratch
        assert run.folder.stat().st_mode & 0o777 == 0o700
    assert list(scratch.iterdir()) == []
    run = open_run(archive, scratch=scratch)
    assert len(list(scratch.iterdir())) == 1
    del run
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_refused_archive_leaves_nothing_behind(archive: Path, scratch: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-10])
    with pytest.raises(EvidenceError):
        open_run(archive, scratch=scratch)
    assert list(scratch.iterdir()) == []


def test_every_cut_and_a_thousand_flips_are_refused_by_name(archive: Path, tmp_path: Path, scratch: Path) -> None:
    rng = random.Random(20_260_303)
    data = archive.read_bytes()
    bad = [data[:end] for end in range(0, len(data), 7)] + [data + b"\0", data + data]
    for _ in range(1000):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        bad.append(bytes(flipped))
    same = 0
    for content in bad:
        path = tmp_path / "bad.tar.zst"
        path.write_bytes(content)
        try:
            with open_run(path, scratch=scratch) as run:
                same += 1  # a flip in a part of the frame that carries no content
                assert verify(run).verdict is Finding.INTACT
        except (EvidenceError, HostError) as error:
            code = error.code
        else:
            continue
        assert code in ("bad_archive", "disk_full")
    assert same < len(bad) / 100
    assert list(scratch.iterdir()) == []


def test_an_existing_output_is_not_overwritten(run_dir: Path, archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(HostError) as caught:
        pack(run_dir, archive)
    assert (caught.value.code, caught.value.outcome) == ("already_there", Outcome.REFUSED)
    assert archive.read_bytes() == before


def test_a_running_run_is_not_packed(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request())
    with pytest.raises(EvidenceError) as caught:
        pack(tmp_path / "run", tmp_path / "out.tar.zst")
    assert caught.value.code == "run_is_running"
    assert not (tmp_path / "out.tar.zst").exists()


def test_a_killed_run_is_packed(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    write_records(session, session.open_journal())
    pack(tmp_path / "run", tmp_path / "out.tar.zst")
    with open_run(tmp_path / "out.tar.zst") as run:
        assert run.sessions[0].seen.words == "interrupted; cause unknown"


def test_a_folder_that_is_no_run_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as caught:
        pack(tmp_path, tmp_path / "out.tar.zst")
    assert caught.value.code == "not_a_run"


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"{}")
    session = begin_session(tmp_path / "run", request(process=another_process()))
    outside = session.attach_reference(Reference(AttachmentKind.OTHER, "t", path="../trace.json"))
    (tmp_path / "run" / "link").symlink_to("../trace.json")
    packed = pack(tmp_path / "run", tmp_path / "out.tar.zst")
    assert (packed.left_out, packed.referenced) == (("link",), (outside,))


def test_long_and_odd_names_survive(tmp_path: Path, run_dir: Path) -> None:
    folder = run_dir / "comparisons" / ("deep" * 30) / ("x" * 120)
    folder.mkdir(parents=True)
    (folder / "ünï cödé\n.txt").write_bytes(b"content")
    pack(run_dir, tmp_path / "out.tar.zst")
    with open_run(tmp_path / "out.tar.zst") as run:
        assert (run.folder / folder.relative_to(run_dir) / "ünï cödé\n.txt").read_bytes() == b"content"


class _Growing(Primitives):
    """A journal that grows between the look at its size and the reading of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def before(self, operation: str, path: str) -> None:
        if operation == "open_read" and path == str(self._path):
            self._path.write_bytes(self._path.read_bytes()[:-5])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, run_dir: Path) -> None:
    files = Files(_Growing(run_dir / "sessions" / "rank-0" / "calls.jsonl"))
    with pytest.raises(EvidenceError) as caught:
        pack(run_dir, tmp_path / "out.tar.zst", files=files)
    assert caught.value.code == "changed_while_read"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


# --- archives made by somebody else ------------------------------------------------------------------------------


def forged(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))
    return path


def link(name: str, kind: bytes, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize(
    "info",
    [
        tarfile.TarInfo("../escaped"),
        tarfile.TarInfo("a/../../escaped"),
        tarfile.TarInfo("/tmp/escaped"),
        tarfile.TarInfo("./run.json"),
        tarfile.TarInfo("a//b"),
        tarfile.TarInfo("."),
        link("x", tarfile.SYMTYPE, "/etc/passwd"),
        link("x", tarfile.LNKTYPE, "run.json"),
        link("x", tarfile.FIFOTYPE, ""),
        link("x", tarfile.CHRTYPE, ""),
        link("x", tarfile.DIRTYPE, ""),
    ],
    ids=lambda info: f"{info.name}-{info.type!r}",
)
def test_a_member_that_is_not_a_plain_file_inside_the_run_is_refused(
    tmp_path: Path, scratch: Path, info: tarfile.TarInfo
) -> None:
    path = forged(tmp_path / "forged.tar.zst", [(info, b"")])
    with pytest.raises(EvidenceError) as caught:
        open_run(path, scratch=scratch)
    assert caught.value.code == "bad_archive"
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forged.tar.zst", "scratch"]


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path / "forged.tar.zst", [(tarfile.TarInfo("readme"), b"hello")])
    with pytest.raises(EvidenceError) as caught:
        peek_envelope(path)
    assert caught.value.code == "bad_archive"
    with pytest.raises(EvidenceError):
        open_run(path)


def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path, scratch: Path) -> None:
    """Half a terabyte of zeros in a small file: neither memory nor disk is filled."""
    raw = io.BytesIO()
    info = tarfile.TarInfo("run.json")
    info.size = 1 << 39
    raw.write(info.tobuf(tarfile.GNU_FORMAT))
    compressor = zstandard.ZstdCompressor().compressobj()
    path = tmp_path / "bomb.tar.zst"
    with path.open("wb") as file:
        file.write(compressor.compress(raw.getvalue()))
        for _ in range(64):
            file.write(compressor.compress(bytes(1 << 22)))
        file.write(compressor.flush())
    assert path.stat().st_size < 1 << 16
    tracemalloc.start()
    try:
        with pytest.raises(HostError) as caught:
            open_run(path, scratch=scratch)
        with pytest.raises(EvidenceError):
            peek_envelope(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == "disk_full"
    assert peak < 64 << 20
    assert list(scratch.iterdir()) == []


def test_an_end_that_hides_a_bomb_is_read_in_bounded_memory(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "bomb.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(bytes(256 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(EvidenceError) as caught:
            open_run(path, scratch=scratch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == "bad_archive"
    assert peak < 64 << 20


def test_a_member_after_the_inventory_and_a_foreign_inventory_are_refused(
    tmp_path: Path, run_dir: Path, archive: Path
) -> None:
    data = zstandard.ZstdDecompressor().decompressobj().decompress(archive.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = [(info, tar.extractfile(info).read()) for info in tar.getmembers()]  # type: ignore[union-attr]
    late = forged(tmp_path / "late.tar.zst", [*members, (tarfile.TarInfo("late"), b"x")])
    other = [(info, content.replace(b"paritrace-pack", b"another-pack")) for info, content in members]
    changed = [(info, content.replace(b"hello", b"hullo")) for info, content in members]
    cases = {
        late: "a member after its inventory",
        forged(tmp_path / "other.tar.zst", other): "its inventory has format 'another-pack'",
        forged(tmp_path / "changed.tar.zst", changed): "is not what the inventory says",
        forged(tmp_path / "none.tar.zst", members[:-1]): "it has no inventory",
        forged(tmp_path / "twice.tar.zst", [members[0], *members]): "File exists",
    }
    for path, why in cases.items():
        with pytest.raises(ParitraceError) as caught:
            open_run(path)
        assert why in caught.value.message


def test_what_follows_the_end_is_refused(tmp_path: Path, archive: Path) -> None:
    data = zstandard.ZstdDecompressor().decompressobj().decompress(archive.read_bytes())
    cases = {
        "padding": (data + bytes(10240), True),
        "much padding": (data + bytes(8 << 20), False),
        "something": (data + bytes(10240) + b"x", False),
        "something at once": (data + b"x", False),
    }
    for name, (content, whole) in cases.items():
        path = tmp_path / f"{name}.tar.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(content))
        if whole:
            with open_run(path) as run:
                assert verify(run).verdict is Finding.INTACT
        else:
            with pytest.raises(EvidenceError):
                open_run(path)


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path / "forged.tar.zst", [(tarfile.TarInfo("x/" * 3000 + "y"), b"")])
    with pytest.raises(EvidenceError, match="name is too long"):
        open_run(path)


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "forged.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"run.json".ljust(512, b"\1") + bytes(1024)))
    with pytest.raises(EvidenceError, match="damaged tar header"):
        open_run(path)


class _Full(Primitives):
    def free_bytes(self, path: Path) -> int:
        return 1000


def test_too_little_space_is_refused_before_it_runs_out(archive: Path, scratch: Path) -> None:
    with pytest.raises(HostError) as caught:
        open_run(archive, files=Files(_Full()), scratch=scratch)
    assert caught.value.code == "disk_full"
    assert list(scratch.iterdir()) == []


def test_the_envelope_is_read_without_the_rest(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    session.attach_copy(AttachmentKind.OTHER, "noise", random.Random(1).randbytes(3 << 20), "application/octet-stream")
    session.flush()
    archive = tmp_path / "run.tar.zst"
    pack(tmp_path / "run", archive)
    assert peek_envelope(archive).envelope == open_run(tmp_path / "run").envelope
    archive.write_bytes(archive.read_bytes()[: 1 << 20])
    assert peek_envelope(archive).envelope.run_id == "run-1"


@pytest.mark.slow
def test_the_systems_tar_opens_it(archive: Path, scratch: Path) -> None:
    done = subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(scratch)], check=False, timeout=60)
    if done.returncode:
        pytest.skip("this machine's tar has no zstd")
    assert verify(open_run(scratch)).verdict is Finding.INTACT
