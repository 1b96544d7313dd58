"""Published JSON Schemas are those of the code (EV-1)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from paritrace.cli.entry import paritrace
from paritrace.cli.schema import FORMATS, schema_text

SCHEMAS = Path(__file__).parents[2] / "schemas"


@pytest.mark.parametrize("name", FORMATS)
def test_the_committed_schema_has_not_drifted(name: str) -> None:
    path = SCHEMAS / f"{name}.json"
    assert path.read_text(encoding="utf-8") == schema_text(name), f"paritrace schema {name} > schemas/{name}.json"


def test_no_schema_is_left_over() -> None:
    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == sorted(FORMATS)


def test_the_command_prints_what_is_committed() -> None:
    printed = CliRunner().invoke(paritrace, ["schema", "run"], catch_exceptions=False)
    assert json.loads(printed.output) == json.loads((SCHEMAS / "run.json").read_text(encoding="utf-8"))


def test_without_a_name_the_formats_are_listed() -> None:
    listed = CliRunner().invoke(paritrace, ["schema", "--json"], catch_exceptions=False)
    assert set(json.loads(listed.output)) == set(FORMATS)
    text = CliRunner().invoke(paritrace, ["schema"], catch_exceptions=False).output
    assert [line.split()[0] for line in text.splitlines()] == list(FORMATS)


def test_array_rows_are_in_the_schema_of_calls() -> None:
    schema = json.loads(schema_text("calls"))
    row = schema["$defs"]["Call"]
    assert row["type"] == "array"
    assert row["prefixItems"][0] == {"const": "c"} or row["prefixItems"][0] == {"enum": ["c"]}
    assert len(row["prefixItems"]) == 18
    named = {choice["$ref"].rsplit("/", 1)[1] for choice in schema["anyOf"]}
    assert {"JournalHeader", "Call", "Detail", "State", "EndMark"} <= named


def test_an_unknown_name_is_refused() -> None:
    refused = CliRunner().invoke(paritrace, ["schema", "nothing"])
    assert refused.exit_code == 2
    assert "'nothing' is not one of" in refused.output
