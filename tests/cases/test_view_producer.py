"""The producer of a view is the call that made the view, also where autograd marks the tensor in between (CA-27).

Found by the planted fault `rope-interleaved`: the product that reads `x[..., 0::2]` was said to read the tensor under
the view, and the difference was blamed on the outside.
"""

from pathlib import Path

import pytest

from tests.cases.captures import recorded, run_captured, write_script

SCRIPT = """
import torch

model = torch.nn.Linear(4, 4, bias=False)
x = model(torch.ones(2, 4))
(x[..., 0::2] * 2).sum().backward()
"""


@pytest.mark.slow
def test_the_reader_of_a_view_names_the_view(tmp_path: Path) -> None:
    done = run_captured(write_script(tmp_path / "train.py", SCRIPT), tmp_path / "run", levels=("op",))
    assert done.status == 0, done.stderr
    journal = recorded(tmp_path / "run")
    calls = journal.by_id()
    product = next(call for call in journal.calls if journal.function(call) == "aten.mul.Tensor")
    source = product.inputs[0].source
    assert isinstance(source, tuple)
    assert journal.function(calls[source[0]]) == "aten.slice.Tensor"
