"""The fused path of an eval-mode TransformerEncoder, MultiheadAttention with weights, all SDPA back ends of the CPU."""
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
with torch.no_grad():
    print(encoder(torch.randn(2, 7, 16)).sum().item().hex())
attention = nn.MultiheadAttention(16, 4, batch_first=True)
x = torch.randn(2, 5, 16, requires_grad=True)
out, weights = attention(x, x, x, need_weights=True)
(out.sum() + weights.square().sum()).backward()
print(x.grad.sum().item().hex())
for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
    with sdpa_kernel(backend):
        q = torch.randn(2, 4, 6, 8, requires_grad=True)
        nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).square().sum().backward()
        print(backend, q.grad.sum().item().hex())
