"""`paritrace check FILE` on a profiler's trace (IN-26)."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from paritrace.cli.entry import paritrace
from paritrace.cli.output import ExitStatus
from tests.inference.importers.kineto_reading import DATA, kernel, launch, written

TRACE = DATA / "hta_critical_path_cuda_event_sync_event_sync_trace.json.gz"


def check(*arguments: str) -> Result:
    return CliRunner().invoke(paritrace, ["check", *arguments], catch_exceptions=False, standalone_mode=False)


def test_the_document_is_that_of_a_check() -> None:
    document = json.loads(check(str(TRACE), "--json").output)
    assert document["format"] == "paritrace-check"
    assert document["run"]["run_id"] == TRACE.name
    assert document["counts"] == {"pass": 12, "fail": 0, "not_checkable": 2, "not_applicable": 0}


def test_a_failure_leads_the_screen_in_its_own_words(tmp_path: Path) -> None:
    said = check(str(written(tmp_path, [launch(7), kernel("gemm", correlation=9)]))).output
    assert "device work without a launch record" in said
    assert "gemm" in said


@pytest.mark.parametrize(("kernels", "status"), [(1, ExitStatus.DIFFERENCE), (0, ExitStatus.UNDETERMINED)])
def test_the_exit_status_is_asked_for(tmp_path: Path, kernels: int, status: ExitStatus) -> None:
    path = str(written(tmp_path, [launch(7), *[kernel(correlation=7)], *[kernel(correlation=9, ts=120)] * kernels]))
    assert check(path).return_value == ExitStatus.DONE
    assert check(path, "--exit-code").return_value == status


def test_every_format_of_a_check_shows_one(tmp_path: Path) -> None:
    check(str(TRACE), "-o", str(tmp_path / "out"))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"check.txt", "check.json", "check.md", "check.html", "check.junit.xml"} <= names
    assert "calls of the runtime are taken for launches by their names" in (tmp_path / "out" / "check.md").read_text()
    one = check(str(TRACE), "-o", str(tmp_path / "one.md"))
    assert one.return_value == ExitStatus.DONE
    assert (tmp_path / "one.md").read_bytes() == (tmp_path / "out" / "check.md").read_bytes()


def test_an_export_of_nsight_systems_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(gzip.decompress((DATA.parent / "nsys" / "nsysai_mock.sqlite.gz").read_bytes()))
    document = json.loads(check(str(path), "--json").output)
    assert document["counts"] == {"pass": 7, "fail": 0, "not_checkable": 1, "not_applicable": 0}
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"anything")
    assert "nsys export" in check(str(report)).output


def test_names_of_a_trace_do_no_harm_on_a_screen(tmp_path: Path) -> None:
    said = check(str(written(tmp_path, [launch(7), kernel("\x1b[31m\u202eevil<script>", correlation=9)]))).output
    assert "\x1b" not in said
    assert "\u202e" not in said
