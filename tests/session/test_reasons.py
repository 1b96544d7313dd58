"""Every code of a reason that the machines give is explained (SE-7)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MACHINES = [path for of in ("coordinator", "rank") for path in (ROOT / "src/paritrace/session").glob(f"{of}_*.py")]
GIVEN = re.compile(r'(?:ours\(|Reason\([^,"]+, |fail_stop\(turn, |_refuse\(turn, [^"]+, )"([a-z_]+)"')


def test_se7_every_reason_of_the_machines_stands_in_the_document_of_the_format() -> None:
    text = (ROOT / "docs/formats/session.md").read_text(encoding="utf-8")
    codes = {code for path in MACHINES for code in GIVEN.findall(path.read_text(encoding="utf-8"))}
    assert {"running", "ranks_apart", "not_capable", "digests_differ"} <= codes
    assert sorted(code for code in codes if f"`{code}`" not in text) == []
