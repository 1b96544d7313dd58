"""N-16: capture does not change the path that an eval-mode TransformerEncoder takes (CA-14)."""

from pathlib import Path

import pytest

from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
x = torch.randn(3, 9, 16)
with torch.no_grad():
    print(encoder(x).view(torch.int32).tolist())
with torch.inference_mode():
    print(encoder(x * 2).view(torch.int32).tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("module",), ("op",), ("module", "op")], ids="+".join)
def test_the_fast_path_is_taken_with_the_same_bits(tmp_path: Path, levels: tuple[str, ...]) -> None:
    script = write_script(tmp_path / "eval.py", SCRIPT)
    captured = run_captured(script, tmp_path / "run", levels=levels)
    assert captured.status == 0, captured.stderr
    assert captured.stdout == run_bare(script).stdout
    if "op" in levels:
        journal = recorded(tmp_path / "run")
        functions = {journal.function(call) for call in journal.calls}
        assert any("_transformer_encoder_layer_fwd" in name for name in functions), functions
