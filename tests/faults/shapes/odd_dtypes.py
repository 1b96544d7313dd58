"""complex, float64, float16, bool, uint8, int8, float8 and zero-size tensors through modules."""
import torch
from torch import nn


class Mix(nn.Module):
    def forward(self, x, flag, empty):
        spectrum = torch.fft.rfft(x)
        y = torch.fft.irfft(spectrum * torch.complex(torch.tensor(0.5), torch.tensor(0.25)), n=x.shape[-1])
        small = (y * 10).to(torch.int8).to(x.dtype)
        eighth = y.to(torch.float8_e4m3fn).to(x.dtype)
        return torch.where(flag, y, small) + eighth + empty.sum()


torch.manual_seed(0)
mix = Mix()
layer = nn.Linear(8, 8, dtype=torch.float64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(2):
    x = layer(torch.randn(3, 8, dtype=torch.float64))
    out = mix(x, x > 0, torch.empty(0, 4, dtype=torch.float64))
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
print((torch.ones(2, dtype=torch.uint8) << 1).tolist(), torch.zeros((), dtype=torch.bfloat16).item())
print(torch.view_as_real(torch.randn(2, dtype=torch.complex64)).sum().item().hex(), torch.randn(3).conj().is_conj())
print(torch.randn(2, dtype=torch.complex64).conj().imag.is_neg())
