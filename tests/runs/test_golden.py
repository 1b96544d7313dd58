"""The formats as bytes: a change of any of them is seen, meant and read before it is made (EV-1, EV-23)."""

import hashlib
from pathlib import Path

import pytest

from paritrace.cli.runs_text import catalog_text, summary_text, verification_text
from paritrace.evidence.ids import ProcessIdentity
from paritrace.runs.archive import INVENTORY_NAME, ArchiveStream
from paritrace.runs.attaching import Reference
from paritrace.runs.catalog import catalog
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack
from paritrace.runs.reading import open_run
from paritrace.runs.showing import summarise
from paritrace.runs.verify import verify
from paritrace.testing.clocks import ManualClock
from tests.conftest import Golden
from tests.runs.making import SOURCE, finish, request, write_records

PROCESS = ProcessIdentity(host="node-7", boot_id="b00t", pid_namespace="pid:[4026531836]", pid=4242, start_ticks=99)


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole run whose every byte is known: fixed identity, fixed clock, relative paths."""
    monkeypatch.chdir(tmp_path)
    clock = ManualClock()
    session = begin_session(Path("run"), request(process=PROCESS), clock=clock)
    with session.open_journal() as journal:
        lines = write_records(session, journal)
        session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
        session.attach_reference(Reference(AttachmentKind.REPORT, "report", url="https://example.org/report"))
        clock.move(1_500_000_000)
        finish(session, journal, lines=lines)
    return Path("run")


@pytest.mark.parametrize("name", ["run.json", "sessions/rank-0/calls.jsonl", "sessions/rank-0/receipt.json"])
def test_the_files_of_a_run(run_dir: Path, golden: Golden, name: str) -> None:
    golden(f"runs/{Path(name).name}", (run_dir / name).read_text(encoding="utf-8"))


def test_the_archive_of_a_run(run_dir: Path, golden: Golden) -> None:
    pack(run_dir, Path("run.tar.zst"))
    stream = ArchiveStream([Path("run.tar.zst").read_bytes()], name="run.tar.zst")
    members = {name: b"".join(stream.body(num_bytes)) for name, num_bytes in stream.members()}
    golden("runs/pack.json", members[INVENTORY_NAME].decode())
    assert members["run.json"] == (run_dir / "run.json").read_bytes()


def test_what_people_read(run_dir: Path, golden: Golden) -> None:
    run = open_run(run_dir)
    golden("runs/ls.txt", catalog_text(catalog(Path())) + "\n")
    golden("runs/show.txt", summary_text(summarise(run)) + "\n")
    golden("runs/verify.txt", verification_text(verify(run)) + "\n")
    assert run.digest == hashlib.sha256((run_dir / "run.json").read_bytes()).hexdigest()
