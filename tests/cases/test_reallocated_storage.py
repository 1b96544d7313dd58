"""A storage freed and allocated again holds nothing that anybody wrote: two FSDP2 runs differed by it (CA-35)."""

from pathlib import Path

import pytest

from paritrace.evidence.gaps import CaptureGap, Gap
from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch

whole = torch.ones(1000)
storage = whole.untyped_storage()
before = torch.UntypedStorage.__dict__.get("resize_")
storage.resize_(0)  # as FSDP2 frees what it has gathered
storage.resize_(4000)  # and allocates it for the next time
unwritten = whole.view(10, 100)
whole.copy_(torch.arange(1000.0))
written = whole.view(20, 50)
storage.resize_(8000)  # what it held stays
kept = whole.view(40, 25)
print(kept.sum().item(), before is None)
"""


@pytest.mark.slow
def test_memory_given_anew_is_uninitialised(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    captured = run_captured(script, tmp_path / "run", levels=("op",))
    assert bare.status == captured.status == 0, captured.stderr
    assert captured.stdout == bare.stdout.replace("True", "False")  # ours stands before torch's while it is captured
    run = recorded(tmp_path / "run")
    unwritten, written, kept = (call for call in run.calls if run.function(call) == "aten.view.default")
    for slot in (*unwritten.inputs, *unwritten.outputs):
        assert slot.bits == Gap(CaptureGap.UNINITIALISED)
    assert all(isinstance(slot.bits, str) for call in (written, kept) for slot in (*call.inputs, *call.outputs))
    assert written.outputs[0].bits == kept.outputs[0].bits
    assert not run.gaps
