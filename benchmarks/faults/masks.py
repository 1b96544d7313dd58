"""Benign kernel changes of the placed workload: the same mathematics by other calls, on every layer (CP-18)."""

from benchmarks.faults.case import Edit
from benchmarks.faults.faults import edit

EAGER = """    scores = q_BHTD @ k_BHSD.transpose(-2, -1) * HEAD_WIDTH**-0.5
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v_BHSD
"""
# The mask is added, not boolean: a row of padding alone then stays a mean of all values, as the eager code makes it.
FUSED = """    added = torch.zeros(hidden.shape, dtype=q_BHTD.dtype).masked_fill(hidden, torch.finfo(q_BHTD.dtype).min)
    return F.scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=added)
"""
NORM = """        normed = wide * torch.rsqrt(variance + epsilon)
"""
OTHER_NORM = """        normed = wide / torch.sqrt(variance + epsilon)
"""
DOWN = "        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)\n"
SPLIT = '''class Split(nn.Linear):
    """The sum over the inputs in two halves."""

    def forward(self, x_BTW: Tensor) -> Tensor:
        first, second = x_BTW.chunk(2, dim=-1)
        left, right = self.weight.chunk(2, dim=1)
        return first @ left.t() + second @ right.t()


class MLP(nn.Module):
'''

MASKS: dict[str, tuple[Edit, ...]] = {
    "": (),
    "sdpa": (edit("model.py", EAGER, FUSED),),
    "other-norm": (edit("model.py", NORM, OTHER_NORM),),
    "split-down": (
        edit("model.py", "class MLP(nn.Module):\n", SPLIT),
        edit("model.py", DOWN, DOWN.replace("nn.Linear", "Split")),
    ),
}
