"""`paritrace compare` of a manifest of attempts says which command compares it (AT-22)."""

from pathlib import Path

import pytest

from paritrace.cli.compare_attempts import refuse_manifests
from paritrace.errors import RequestError


@pytest.mark.parametrize(
    "text",
    [
        '{"format":"paritrace-attempts","version":"1.0"}',
        '{ "format" : "paritrace-attempts" }',
        "format: paritrace-attempts\n",
    ],
)
def test_at_22_a_manifest_is_answered_with_the_command_for_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "my m.json"
    path.write_text(text)
    with pytest.raises(RequestError) as refused:
        refuse_manifests(tmp_path, path)
    assert refused.value.code == "attempts_manifest_given"
    assert refused.value.fix.startswith(f"paritrace attempts compare '{path}'")


@pytest.mark.parametrize("text", ["", '{"format":"paritrace-attempts-summary"}', "{}", '{"x": "paritrace-attempts"}'])
def test_what_is_no_manifest_goes_on(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    refuse_manifests(path, tmp_path, tmp_path / "absent")
