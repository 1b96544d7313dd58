"""Manifests are read strictly, all that is wrong is told at once (AT-1)."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from paritrace import attempts
from paritrace.attempts.manifest import Evaluation, Manifest, Primary, Request, VerdictKind
from paritrace.errors import RequestError
from tests.attempts.written import UNIT_TESTS, WHOLE, attempt, manifest

YAML = """\
format: paritrace-attempts
version: "1.0"
configurations:
  - {id: alpha, attempts_complete: true}
attempts:
  - attempt_id: one
    configuration_id: alpha
    task_id: t1
    task_revision: "4040"
    evaluations:
      - {evaluator: {id: unit-tests}, verdict: pass}
"""


def written(folder: Path, of: Manifest | bytes, name: str = "m.json") -> Path:
    path = folder / name
    path.write_bytes(of if isinstance(of, bytes) else msgspec.json.encode(of))
    return path


def refused(path: Path) -> tuple[str, ...]:
    with pytest.raises(RequestError) as error:
        attempts.load(path)
    assert error.value.code == "bad_attempts_manifest"
    return error.value.details


def test_at_1_json_and_yaml_are_one_format(tmp_path: Path) -> None:
    from_yaml = attempts.load(written(tmp_path, YAML.encode(), "m.yaml"))
    (one,) = from_yaml.attempts()
    assert (one.attempt_id, one.task_revision, one.evaluations[0].verdict) == ("one", "4040", VerdictKind.PASS)
    again = written(tmp_path, msgspec.json.encode(replace(from_yaml.head, attempts=(one,))))
    assert list(attempts.load(again).attempts()) == [one]


HEAD = b'{"format": "paritrace-attempts", "version": "1.0", "configurations": [], "attempts": %s}'


@pytest.mark.parametrize(
    "junk",
    [b'[{"x": "\xff"}]', b'[{"x": %s}]' % (b"9" * 6000), b'[{"x": 1e999}]', b'[{"x": NaN}]', b"{}", b"[[[]"],
)
def test_at_1_what_json_does_not_allow_is_refused_at_any_depth(tmp_path: Path, junk: bytes) -> None:
    assert refused(written(tmp_path, HEAD % junk))
    assert refused(written(tmp_path, junk[1:-1] or b"\xff"))
    assert refused(written(tmp_path, b'{"format": "\xff"}'))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("verdict: pass", "verdict: passed"),
        ("task_id: t1", "task: t1"),
        ("{id: alpha", "{id: beta"),
        ('task_revision: "4040"', "task_revision: 4040"),
        ("attempts_complete: true", "attempts_complete: maybe"),
    ],
)
def test_at_1_what_is_unknown_or_of_another_type_is_refused(tmp_path: Path, change: str, told: str) -> None:
    assert refused(written(tmp_path, YAML.replace(change, told).encode(), "m.yml"))


def test_at_1_a_date_in_yaml_is_the_text_that_stands_there(tmp_path: Path) -> None:
    read = attempts.load(written(tmp_path, YAML.replace("task_id: t1", "task_id: 2026-11-30 1:00").encode(), "m.yaml"))
    assert [one.task_id for one in read.attempts()] == ["2026-11-30 1:00"]


def test_at_1_yaml_that_hides_something_is_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
    for text in (bomb, YAML + "format: other\n", "a: [", "!!python/object:os.system {}"):
        with pytest.raises(RequestError) as error:
            attempts.load(written(tmp_path, text.encode(), "m.yaml"))
        assert error.value.code == "bad_attempts_manifest"


def test_at_1_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    scored = Evaluation(UNIT_TESTS, VerdictKind.SCORE)
    listed = [
        attempt("a-t1-1", configuration_id="b", evaluations=(scored,)),
        attempt("a-t1-2", requests=(Request("r"), Request("r"), Request("q", result="s", accounting=WHOLE))),
        attempt("a-t1-3", retry_of="nobody"),
    ]
    of = manifest([attempt("a-t0-1")], primary=Primary("a", "a"), score_ranges={"x": (1.0, 0.0)})
    of = replace(of, attempts=tuple(listed))
    told = "\n".join(refused(written(tmp_path, of)))
    for part in (
        "there is no configuration b",
        "attempts[0] (a-t1-1).evaluations[0]",
        "request r is listed 2 times",
        "request q has files and an accounting of its own",
        "there is no source s",
        "there is no attempt nobody",
        "primary: names one configuration twice",
        "score_ranges.x",
    ):
        assert part in told


def test_at_1_one_file_stands_for_one_request(tmp_path: Path) -> None:
    from paritrace.attempts.origins import Source

    requests = (Request("r1", result="s"), Request("r2", result="s"))
    of = manifest([attempt("a-t1-1", accounting=None, requests=requests)], sources=(Source("s", "s.json", "0" * 64),))
    assert any("stands for two requests" in one for one in refused(written(tmp_path, of)))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"format": "paritrace-attempts", "version": "2.0", "attempts": []}']
)
def test_at_1_another_format_or_version_is_refused(tmp_path: Path, data: bytes) -> None:
    refused(written(tmp_path, data))


def test_at_1_hundreds_of_problems_end_in_and_more(tmp_path: Path) -> None:
    listed = [attempt(f"a-t{number}-1", configuration_id="nobody") for number in range(100)]
    told = refused(written(tmp_path, replace(manifest([attempt("a-t0-1")]), attempts=tuple(listed))))
    assert len(told) == 51
    assert told[-1] == "and more"


def test_at_1_the_published_schema_takes_what_the_reader_takes() -> None:
    from paritrace.cli.schema import schema_text

    schema = msgspec.json.decode(schema_text("attempts-manifest"))
    assert schema["$defs"]["Attempt"]["additionalProperties"] is False
    assert schema["$defs"]["Manifest"]["required"] == ["format", "version", "configurations", "attempts"]
