"""From any figure to files and lines (AT-17, P9)."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace import attempts
from paritrace.attempts.assessing import assess
from paritrace.attempts.explaining import Place, figures_of
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.json_lines import lines_of_pointers
from paritrace.attempts.manifest import Configuration
from paritrace.attempts.origins import Origin, Source
from paritrace.errors import RequestError
from tests.attempts.written import FAIL, WHOLE, attempt, loaded, manifest

values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda one: st.lists(one) | st.dictionaries(st.text(max_size=4), one),
    max_leaves=12,
)


def test_at_17_explain_leads_to_file_and_line(tmp_path: Path) -> None:
    text = json.dumps({"samples": [{"id": 1, "usage": {"input": 100}}, {"id": 2}]}, indent=1)
    (tmp_path / "log.json").write_text(text)
    digest = sha256(text.encode()).hexdigest()
    at = Origin("log", pointer="/samples/0/usage")
    one = attempt("a-t1-1", accounting=replace(WHOLE, origin=at), origin=Origin("log", line=7))
    read = loaded(manifest([one], sources=(Source("log", "log.json", digest),)), folder=tmp_path)
    found = attempts.explain(read, "a.tokens.input_tokens")
    (evidence,) = found.evidence
    assert evidence.said == "100"
    assert evidence.places == (
        Place("log", "log.json", digest, 5, "/samples/0/usage", ""),
        Place("log", "log.json", digest, 7, "", ""),
    )
    assert text.splitlines()[4].strip().startswith('"usage"')


def test_at_17_every_figure_is_explained_by_the_attempts_behind_it() -> None:
    listed = [attempt("a.b-t1-1"), attempt("a.b-t2-1", FAIL), attempt("a.b-t3-1", None, present=False, accounting=None)]
    of = manifest(listed, configurations=(Configuration("a.b", True, gaps=(Noted(AttemptGap.RETRY_DESTROYED, 6),)),))
    read = loaded(of)
    summary = attempts.summarize(read)
    for figure in figures_of(assess(read)):
        attempts.explain(read, figure)
    for state, count in summary.configurations[0].evaluators[0].states.items():
        assert len(attempts.explain(read, f"a.b.states.{state}").evidence) == count
    assert [one.attempt_id for one in attempts.explain(read, "a.b.gaps.retry_destroyed").evidence] == [""]
    assert attempts.explain(read, "a.b.states.evaluator_error").evidence == ()


@pytest.mark.parametrize("figure", ["nothing", "a.nothing", "b.costs", "a", "a.tokens.nothing"])
def test_at_17_a_figure_that_is_none_is_answered_with_those_there_are(figure: str) -> None:
    with pytest.raises(RequestError) as refused:
        attempts.explain(loaded(manifest([attempt("a-t1-1")])), figure)
    assert refused.value.code == "no_such_figure"
    assert "a.tokens.input_tokens" in refused.value.fix


@given(values, st.sampled_from([None, 1]))
def test_p_9_a_pointer_leads_to_the_line_where_its_value_begins(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    pointers = dict(_pointers(value))
    lines = lines_of_pointers(text, [*pointers, "/no/such"])
    assert set(lines) == set(pointers)
    for pointer, inside in pointers.items():
        line = text.split("\n")[lines[pointer] - 1]
        begins = json.dumps(inside)[0] if not isinstance(inside, str | int) else json.dumps(inside)
        assert begins in line


def _pointers(value: object, before: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [(before, value)]
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inside in named:
        token = str(name).replace("~", "~0").replace("/", "~1")
        found += _pointers(inside, f"{before}/{token}")
    return found


def test_p_9_what_is_no_json_leads_nowhere() -> None:
    assert lines_of_pointers("{torn", ["", "/a"]) == {}
    assert lines_of_pointers("", [""]) == {}
