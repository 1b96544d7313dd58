"""The serving example, driven through the recording proxy by OpenAI's own client: requests to iterations to work."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from paritrace.files import LOCAL
from paritrace.inference.account_report import account_artifact
from paritrace.inference.artifact import Events, place_of
from paritrace.inference.link_report import link_artifact
from paritrace.inference.records import Capabilities, ClockAlignment, Iteration
from paritrace.inference.serving_request import served_request
from paritrace.reports.formats import Cut
from paritrace.reports.inference.trace_file import in_words, write_trace_file

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "serving" / "serve.py"
ENDS_WITHIN_SECONDS = 120.0
MOST_UNCERTAIN_NS = 50_000_000  # about 10,000 ns where nothing else runs; a loaded machine may interrupt every reading
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
NAMES = ("first", "second", "third")


@contextmanager
def program(*arguments: str) -> Generator[str]:
    """The address that a program prints once it serves; it is told to end, and has to end well."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment) as started:
        assert started.stdout is not None
        try:
            found = ADDRESS.search(started.stdout.readline())
            assert found is not None
            yield found.group()
        finally:
            started.send_signal(signal.SIGTERM)
            started.stdout.read()
            assert started.wait(ENDS_WITHIN_SECONDS) == 0


def asked(address: str, name: str, *, tokens: int) -> tuple[str, int]:
    """Stream one chat completion under an id of the client; returns the text and the tokens that the usage tells."""
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=ENDS_WITHIN_SECONDS)
    text, usage = "", 0
    with client.chat.completions.create(
        model="random-bytes",
        messages=[{"role": "user", "content": f"hello from {name}"}],
        max_completion_tokens=tokens,
        stream=True,
        stream_options={"include_usage": True},
        extra_headers={"X-Request-Id": name},
    ) as stream:
        for chunk in stream:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage.completion_tokens if chunk.usage else usage
    return text, usage


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three requests at once, through the proxy, which records into the same run."""
    place = tmp_path_factory.mktemp("serving") / "run"
    with (
        program(str(EXAMPLE), "--run", str(place)) as server,
        program("-m", "paritrace", "infer", "proxy", "--upstream", server, "--run", str(place)) as proxy,
        ThreadPoolExecutor(len(NAMES)) as threads,
    ):
        answers = list(threads.map(lambda name: asked(proxy, name, tokens=4 + len(name)), NAMES))
    assert [usage for _, usage in answers] == [4 + len(name) for name in NAMES]
    assert all(len(text) == usage for text, usage in answers)
    return place


@pytest.mark.parametrize("name", NAMES)
def test_in16_a_request_is_joined_from_client_to_iterations_and_work(run: Path, name: str) -> None:
    found = served_request(run, name)
    parties = {one.source: one for one in found.requests}
    assert set(parties) == {"examples/serving", "paritrace infer proxy"}
    assert {one.output_tokens for one in found.requests} == {4 + len(name)}
    assert parties["paritrace infer proxy"].status == "successful"
    assert found.num_iterations == 4 + len(name)  # each gives it one token
    assert [one.role for one in found.iterations] == ["prefill"] + ["decode"] * (3 + len(name))
    assert all(one.other["cpu"] > 100 for one in found.iterations)  # some hundred operators each
    assert [one.name for one in found.stages if one.name != "in_flight"] == ["queue", "prefill", "decode"]


def test_in7_all_work_of_the_engine_is_linked_by_its_thread_and_its_ranges_names(run: Path) -> None:
    report = link_artifact(run)
    cpu = report.by_domain["cpu"]
    assert cpu.linked == cpu.activities > 0
    assert set(cpu.by_basis) == {"same_thread_range"}
    again = link_artifact(run)
    assert (again.written, again.already_present) == (0, cpu.activities)


def test_in9_no_device_time_is_claimed_where_no_device_was_profiled(run: Path) -> None:
    report = account_artifact(run)
    assert report.devices == ()
    assert report.num_iterations > 0


def test_in16_proxy_engine_and_trace_share_one_time_line_because_readings_align_them(run: Path) -> None:
    written = write_trace_file(run, run.parent / "run.pftrace", cut=Cut(), files=LOCAL)
    (clocks,) = written.time_lines
    assert len(clocks) == 2  # proxy and engine note the host's monotonic clock; the trace has its own
    (uncertainty_ns,) = written.uncertainties_ns
    assert 0 < uncertainty_ns < MOST_UNCERTAIN_NS
    assert f"2 clocks on one time line, aligned by records within {uncertainty_ns:,} ns" in "\n".join(in_words(written))
    alignments = [one for one in Events(place_of(run)) if isinstance(one, ClockAlignment)]
    (of_trace,) = [one for one in alignments if one.metadata.get("basis") == "clock readings"]
    iterations = [one for one in Events(place_of(run)) if isinstance(one, Iteration)]
    noted = {one.iteration_ref.id: one for one in iterations if one.anchor is None}
    ranges = {one.anchor.rpartition("/")[2]: one for one in iterations if one.anchor is not None}
    assert noted.keys() == ranges.keys()
    for name, one in ranges.items():  # the engine notes its times around the range
        assert one.start_ns is not None
        start_ns = noted[name].start_ns
        assert start_ns is not None
        assert one.start_ns + of_trace.offset_ns >= start_ns - of_trace.uncertainty_ns


def test_in5_engine_and_trace_are_appended_at_once_and_both_are_available(run: Path) -> None:
    found = {one.component: one for one in Events(place_of(run)) if isinstance(one, Capabilities)}
    assert found["engine_adapter"].available
    assert found["trace_collector"].available
    assert found["trace_collector"].metadata["complete"] is True
    assert len([one for one in Events(place_of(run)) if isinstance(one, Capabilities)]) == len(found)


def test_the_envelope_names_the_trace_and_the_artifact(run: Path) -> None:
    envelope = json.loads((run / "run.json").read_text())
    kinds = {one["kind"] for one in envelope["attachments"]}
    assert {"inference_jsonl", "profiler_trace"} <= kinds
