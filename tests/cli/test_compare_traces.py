"""`paritrace compare FILE FILE` on two profilers' traces (IN-18)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator, ValidationError

from paritrace.cli.entry import paritrace
from paritrace.cli.output import ExitStatus
from paritrace.errors import RequestError
from tests.conftest import Golden
from tests.inference.importers.kineto_reading import kernel, written


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(paritrace, ["compare", *arguments], catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def traces(tmp_path: Path) -> tuple[str, str]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    names = ("gemm", "relu", "gemm2")
    base = written(tmp_path / "a", [kernel(name, ts=100 + 20 * place) for place, name in enumerate(names)])
    other = ("gemm", "fused", "gemm2")
    cand = written(tmp_path / "b", [kernel(name, ts=100 + 20 * place) for place, name in enumerate(other)])
    return str(base), str(cand)


def test_the_screen_says_where_device_work_first_parts(traces: tuple[str, str]) -> None:
    said = compare(*traces).output
    assert "Device work first parts on device 0 stream only, after 1 alike piece" in said
    assert "- relu" in said
    assert "+ fused" in said


def test_the_document_names_both_files_and_the_exit_status_is_asked_for(traces: tuple[str, str]) -> None:
    document = json.loads(compare(*traces, "--json").output)
    assert (document["format"], document["kernels"]["pairs"]) == ("paritrace-trace-comparison", 2)
    assert document["baseline"]["path"] == traces[0]
    assert compare(*traces).return_value == ExitStatus.DONE
    assert compare(*traces, "--exit-code").return_value == ExitStatus.DIFFERENCE
    assert compare(traces[0], traces[0], "--exit-code").return_value == ExitStatus.DONE


def test_in18_the_document_is_that_of_its_schema_and_of_its_golden_file(
    traces: tuple[str, str], golden: Golden, tmp_path: Path
) -> None:
    cut = tmp_path / "b" / "trace.json"
    cut.write_text(cut.read_text()[:-2])
    told = compare(*traces, "--json").output
    schema = json.loads(CliRunner().invoke(paritrace, ["schema", "trace-comparison"], standalone_mode=False).output)
    document = json.loads(told)
    Draft202012Validator(schema).validate(document)
    with pytest.raises(ValidationError):
        Draft202012Validator(schema).validate(document | {"kernels": {}})
    named = json.dumps(document, indent=2).replace(str(tmp_path), "FOLDER")
    golden("inference/trace-comparison.json", named + "\n")


def test_a_trace_that_ends_early_leaves_it_undetermined(traces: tuple[str, str], tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(Path(traces[0]).read_text()[:-2])
    found = compare(traces[0], str(cut), "--exit-code")
    assert found.return_value == ExitStatus.UNDETERMINED
    assert "candidate: read up to byte" in found.output


def test_a_file_takes_the_format_of_its_suffix(traces: tuple[str, str], tmp_path: Path) -> None:
    compare(*traces, "-o", str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text())["kernels"]["num_partings"] == 1
    compare(*traces, "-o", str(tmp_path / "out.txt"))
    assert "first parts" in (tmp_path / "out.txt").read_text()


def test_options_of_runs_and_other_formats_are_refused(traces: tuple[str, str]) -> None:
    with pytest.raises(RequestError, match="traces, for which --ranks means nothing"):
        compare(*traces, "--ranks", "0")
    with pytest.raises(RequestError, match="one of text, json"):
        compare(*traces, "--format", "html")
