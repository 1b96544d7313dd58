"""The compiled pass is kept as machine code: damaged code is not run, and numba is loaded to compile alone (PF-10)."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.evidence import codec
from paritrace.evidence.calls import Slot
from paritrace.evidence.kernels import available
from paritrace.testing.strategies import A_CALL, HEADER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="numba, the extra `fast`, is not installed"),
]
TIMEOUT_SECONDS = 240  # compiling takes 4 s on a quiet machine
PROGRAM = """
import sys
from pathlib import Path
from paritrace.evidence.line_blocks import Tables, whole
block = Path(sys.argv[1]).read_bytes()
found = Tables().apart(whole(block))
print(None if found is None else len(found.calls), "numba" in sys.modules)
"""


@pytest.fixture
def block(tmp_path: Path) -> Path:
    """The lines of a header and of a call."""
    place = tmp_path / "block"
    call = replace(A_CALL, outputs=(Slot(5, 6, "0f" * 8),))
    place.write_bytes(codec.encode_mark(HEADER) + codec.encode_row(call))
    return place


def taken_apart(block: Path, *, cache: Path, home: Path) -> str:
    """How many calls a fresh process finds, and whether it had to load numba."""
    done = subprocess.run(
        [sys.executable, "-X", f"pycache_prefix={cache}", "-c", PROGRAM, str(block)],
        env={"PYTHONPATH": ":".join(sys.path), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    return done.stdout.strip()


def test_pf10_the_pass_is_compiled_once_and_then_loaded_without_numba(tmp_path: Path, block: Path) -> None:
    places = {"cache": tmp_path / "cache", "home": tmp_path / "home"}
    assert taken_apart(block, **places) == "1 True"
    (kept,) = places["cache"].rglob("*.code")
    assert taken_apart(block, **places) == "1 False"
    data = kept.read_bytes()
    kept.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert taken_apart(block, **places) == "1 True"
    assert kept.read_bytes() == data


def test_pf10_the_pass_is_kept_in_the_home_folder_where_nothing_can_stand_beside_the_source(
    tmp_path: Path, block: Path
) -> None:
    in_the_way = tmp_path / "cache"
    in_the_way.write_bytes(b"a file, and no folder")
    places = {"cache": in_the_way, "home": tmp_path / "home"}
    assert taken_apart(block, **places) == "1 True"
    assert list((tmp_path / "home" / ".cache" / "paritrace").iterdir())
    assert taken_apart(block, **places) == "1 False"
