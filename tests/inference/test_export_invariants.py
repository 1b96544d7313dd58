"""What an Nsight Systems export says against itself (IN-11, IN-26; B-21)."""

import gzip
from collections.abc import Mapping
from pathlib import Path

from paritrace.inference.export_invariants import export_invariants
from paritrace.inference.trace_invariants import Held, TraceInvariant
from paritrace.inference.trace_reading import read_export
from tests.inference.importers.test_nsys import DATA, KERNEL, RUNTIME, Rows, export, kernel, launch


def found(path: Path) -> dict[str, TraceInvariant]:
    read = read_export(path)
    return {one.id: one for one in export_invariants(read.facts, read.account)}


def of(folder: Path, tables: Mapping[str, Rows]) -> dict[str, TraceInvariant]:
    return found(export(folder, tables))


def test_a_real_export_without_every_launch(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(gzip.decompress((DATA / "nsysai_h100_2gpu_1s.sqlite.gz").read_bytes()))
    checked = found(path)
    assert {one.id for one in checked.values() if one.status is Held.FAIL} == {"device.has_launch"}
    assert checked["device.has_launch"].facts == ("2,276 of 4,368 pieces of device work",)


def test_launches_are_those_of_the_same_process(tmp_path: Path) -> None:
    other = kernel(globalPid=(1 << 48) | (99 << 24))
    assert of(tmp_path, {KERNEL: [other], RUNTIME: [launch()]})["device.has_launch"].status is Held.FAIL
    assert of(tmp_path, {KERNEL: [kernel()], RUNTIME: [launch()]})["device.has_launch"].status is Held.PASS
    assert of(tmp_path, {KERNEL: [kernel()]})["device.has_launch"].status is Held.NOT_CHECKABLE


def test_kernels_that_nobody_recorded_are_not_none(tmp_path: Path) -> None:
    absent = of(tmp_path, {RUNTIME: [launch()]})["device.has_launch"]
    assert (absent.status, absent.reason) == (
        Held.NOT_CHECKABLE,
        "kernels: not recorded (the export has no such table)",
    )
    assert of(tmp_path, {KERNEL: [], RUNTIME: [launch()]})["device.has_launch"].status is Held.NOT_APPLICABLE


def test_tables_ids_times_and_streams(tmp_path: Path) -> None:
    rows = [kernel(0), kernel(8, start=105, end=120), kernel(9, start=200, end=None)]
    checked = of(tmp_path, {KERNEL: rows, "CUPTI_ACTIVITY_KIND_MEMCPY": [{"begin": 1}]})
    failed = {one.id: one.facts for one in checked.values() if one.status is Held.FAIL}
    assert failed == {
        "trace.tables": ("copies: not read (table CUPTI_ACTIVITY_KIND_MEMCPY lacks start, end)",),
        "device.ids": ("1 of 3 pieces of device work",),
        "times.known": ("1 of 3 pieces of device work",),
        "device.in_turn": ("1 of 3 pieces of device work",),
    }
    assert checked["device.in_turn"].names == ("device 0 stream 7",)


def test_losses_are_told_none_or_unknown(tmp_path: Path) -> None:
    def lossless(text: str) -> Held:
        return of(tmp_path, {KERNEL: [kernel()], "DIAGNOSTIC_EVENT": [{"text": text, "severity": 3}]})[
            "trace.no_loss"
        ].status

    assert lossless("12 events were dropped") is Held.FAIL
    assert lossless("0 events were dropped") is Held.PASS
    assert lossless("Profiling has started.") is Held.NOT_CHECKABLE
