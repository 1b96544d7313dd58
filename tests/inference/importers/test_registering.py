"""Every reader's file is registered where it lies, with its digest, however it was named (IN-10, EV-15)."""

import gzip
import os
from pathlib import Path

import pytest

from paritrace.errors import Outcome, RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL
from paritrace.inference.appending import append_import, init
from paritrace.inference.importers.choosing import reader_of
from paritrace.inference.importers.metrics import AFTER
from paritrace.inference.importers.table import READERS
from paritrace.inference.importing import Asked, Reader, Scope, SourceKind
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import Availability

DATA = Path(__file__).parents[2] / "data" / "inference"
FILES = {
    "kineto": "kineto/hta_critical_path_cuda_event_sync_event_sync_trace.json.gz",
    "nsys": "nsys/nsysai_mock.sqlite.gz",
    "vllm-log": None,
    "prometheus": "vllm/q05_c08_metrics_pre.txt",
    "otlp": "vllm/q05_spans_sample.jsonl",
    "openai-sse": "openai_sse/openai_python_173417d55340.sse",
    "vllm-bench": "vllm_bench/nvaction_serving_llama8B_2025-03.json",
    "aiperf": "aiperf/profile_export_docs_example.jsonl",
    "inference-perf": "inference_perf/vllm_stage_0_lifecycle_metrics.json",
    "stormlog": None,
}


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.name)
def test_a_file_that_is_named_from_here_is_registered_with_its_digest(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row's path is read from the run's folder: a name that holds from here alone would be lost."""
    monkeypatch.chdir(tmp_path)
    name = FILES[reader.name]
    data = b"" if name is None else (DATA / name).read_bytes()
    data = gzip.decompress(data) if reader.name == "nsys" else data
    Path("source").write_bytes(data)
    init(Path("run"), run_id="run")
    options = {AFTER: "source"} if reader.name == "prometheus" else {}
    asked = Asked(path=Path("source"), scope=Scope("run", "inference"), options=options)
    append_import(Path("run"), reader.open(asked), component="x", run_id="run", session="inference")
    envelope = read_envelope(Path("run"), files=LOCAL)
    assert envelope is not None
    (row,) = (one for one in envelope.attachments if one.title == "source")
    assert (row.path, row.sha256) == ("../source", sha256_hex(data))
    assert row.availability is Availability.AVAILABLE


def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """A row of the envelope is JSON, and holds no such name."""
    path = tmp_path / os.fsdecode(b"\xff.json")
    path.write_text("[]")
    with pytest.raises(RequestError) as refused:
        reader_of(SourceKind.TRACE, path, named=None)
    assert (refused.value.code, refused.value.outcome) == ("bad_attachment", Outcome.REFUSED)
