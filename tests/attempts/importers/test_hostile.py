"""Hostile and broken input: a clear refusal, the rest, and always a manifest that loads (AT-16)."""

import json
import os
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.attempts import api
from paritrace.attempts.importers.importing import import_attempts
from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.importers.trajectories import trajectories
from paritrace.attempts.loading import parse
from paritrace.errors import EvidenceError
from paritrace.evidence.codec import encode_document
from tests.attempts.importers.evidence import (
    ALPHA,
    DATA,
    inspect_log,
    inspect_sample,
    manifest_of,
    refused_of,
    verdicts,
    written,
)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([1e154, 1e308, -1e200]),
    st.just("x" * 3000),
    st.just([]),
    st.just({}),
    st.just({"gap": "x"}),
    st.lists(st.integers(), max_size=2),
)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places_of(child, (*path, key)))]


def changed(document: Any, path: tuple[Any, ...], junk: Any) -> Any:
    document = deepcopy(document)
    if not path:
        return junk
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    return document


USAGE = {"m": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
EVENTS = [
    {"event": "model", "uuid": "e1", "output": {"usage": USAGE["m"], "choices": [{"message": {"content": "hi"}}]}},
    {"event": "tool", "function": "bash", "arguments": {"command": "ls"}, "result": "a", "completed": "2026"},
]
LOG = inspect_log(
    [inspect_sample("s1", events=EVENTS, model_usage=USAGE), inspect_sample("s2", error={"message": "E()"})]
)
TRIAL = json.loads((ALPHA / "double-2__vxTSgwT" / "result.json").read_text())
RESULT = json.loads((DATA / "nemo_fabric" / "result-ok.json").read_text())
BENCH = {
    "n_resolved": 1,
    "results": [
        {"trial_name": "a.1", "task_id": "a", "is_resolved": True, "total_input_tokens": 5, "failure_mode": "x"}
    ],
}
REPORT = {"total_instances": 1, "submitted_ids": ["a"], "resolved_ids": ["a"], "failure_reasons": {"a": "b"}}


def loads(tool: str, folder: Path) -> None:
    """What was written loads and is summarised; or nothing was found, and that is said."""
    try:
        manifest = import_attempts(tool, [folder], base=folder).manifest
    except EvidenceError:
        return
    document = encode_document(manifest)
    loaded = parse(document, name=str(folder / "m.json"), digest=sha256(document).hexdigest())
    api.summarize(loaded, details=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_stands_in_an_inspect_log_the_manifest_loads(data: st.DataObject) -> None:
    document = changed(LOG, data.draw(st.sampled_from(places_of(LOG))), data.draw(JUNK))
    with TemporaryDirectory() as name:
        written(Path(name) / "log.json", document)
        loads("inspect", Path(name))
        list(trajectories(Path(name), Evidence(Path(name))))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_stands_in_a_harbor_trial_the_manifest_loads(data: st.DataObject) -> None:
    document = changed(TRIAL, data.draw(st.sampled_from(places_of(TRIAL))), data.draw(JUNK))
    with TemporaryDirectory() as name:
        job = Path(name)
        written(job / "result.json", {"id": "j", "stats": {"n_retries": 1}})
        written(job / "double-2__vxTSgwT" / "result.json", document)
        loads("harbor", job)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_stands_in_other_results_the_manifest_loads(data: st.DataObject) -> None:
    tool, name, plain = data.draw(
        st.sampled_from(
            [
                ("nemo-fabric", "r.json", RESULT),
                ("terminal-bench", "results.json", BENCH),
                ("swebench", "r.json", REPORT),
            ]
        )
    )
    document = changed(plain, data.draw(st.sampled_from(places_of(plain))), data.draw(JUNK))
    with TemporaryDirectory() as folder:
        written(Path(folder) / name, document)
        loads(tool, Path(folder))


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    written(tmp_path / "logs" / "log.json", inspect_log([inspect_sample("s1"), inspect_sample("s2")]))
    (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs")
    assert len(manifest_of("inspect", tmp_path / "logs", base=tmp_path).attempts) == 2
    assert refused_of("inspect", tmp_path / "logs", base=tmp_path) == [
        "logs/again: a symbolic link to a folder: what is there is read once, where it lies"
    ]


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_pipe_is_refused_and_never_waited_for(suffix: str, tmp_path: Path) -> None:
    written(tmp_path / "log.json", inspect_log([inspect_sample("s1"), inspect_sample("s2")]))
    os.mkfifo(tmp_path / f"pipe{suffix}")
    assert len(manifest_of("inspect", tmp_path, base=tmp_path).attempts) == 2
    (refusal,) = refused_of("inspect", tmp_path, base=tmp_path)
    assert "is not a regular file" in refusal


def test_an_endless_name_costs_its_attempt_and_the_list_is_no_longer_complete(tmp_path: Path) -> None:
    log = inspect_log([inspect_sample("s" * 5000), inspect_sample("s2")], dataset={"sample_ids": ["s" * 5000, "s2"]})
    manifest = manifest_of("inspect", written(tmp_path / "log.json", log), base=tmp_path)
    assert len(manifest.attempts) == 1
    assert not manifest.configurations[0].attempts_complete
    assert "no manifest can hold" in manifest.gaps[0].detail


def test_a_plan_beyond_belief_is_no_plan(tmp_path: Path) -> None:
    log = inspect_log([inspect_sample("s1")], config={"epochs": 10**12})
    manifest = manifest_of("inspect", written(tmp_path / "log.json", log), base=tmp_path)
    assert verdicts(manifest) == {"pass": 1}
    assert not manifest.configurations[0].attempts_complete


def test_what_is_nested_too_deep_is_refused_by_name(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    text = json.dumps(inspect_log([inspect_sample("s1"), inspect_sample("s2", metadata="DEEP")]))
    log.write_text(text.replace('"DEEP"', "[" * 100_000 + "]" * 100_000))
    with pytest.raises(EvidenceError) as refused:
        manifest_of("inspect", log, base=tmp_path)
    assert refused.value.details == ("log.json, line 1: not readable as JSON: RecursionError",)
