"""The trainings of the table: each runs a few steps and yields every tensor whose bits must not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

Tensors = Iterator[torch.Tensor]
Workload = Callable[[], Tensors]
STEPS = 3


def encoder(dropout: float = 0.1) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=dropout, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    forward: Callable[[torch.Tensor], torch.Tensor] | None = None,
    shape: tuple[int, ...] = (4, 6, 32),
    accumulate: int = 1,
) -> Tensors:
    """A plain loop; yields losses, gradients and, at the end, weights and optimizer state."""
    for _ in range(STEPS):
        for _ in range(accumulate):
            batch = torch.randn(shape, dtype=next(model.parameters()).dtype)
            loss = (forward or model)(batch).float().square().mean() / accumulate
            loss.backward()
            yield loss.detach()
        yield from (p.grad.clone() for p in model.parameters() if p.grad is not None)
        optimizer.step()
        optimizer.zero_grad()
    yield from (p.detach() for p in model.parameters())
    yield from (buffer for buffer in model.buffers())
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def float32() -> Tensors:
    model = encoder()
    yield from train(model, torch.optim.AdamW(model.parameters()))


def float64() -> Tensors:
    model = encoder().double()
    yield from train(model, torch.optim.AdamW(model.parameters()))


def pure_bfloat16() -> Tensors:
    model = encoder().bfloat16()
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def bfloat16_autocast() -> Tensors:
    model = encoder()

    def forward(batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out: torch.Tensor = model(batch)
            return out

    yield from train(model, torch.optim.AdamW(model.parameters()), forward=forward)


def checkpoint_of(*, reentrant: bool) -> Tensors:
    model = encoder()

    def forward(batch: torch.Tensor) -> torch.Tensor:
        hidden = batch.requires_grad_()
        for layer in model.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=reentrant)
        return hidden

    yield from train(model, torch.optim.AdamW(model.parameters()), forward=forward)


def checkpoint_reentrant() -> Tensors:
    yield from checkpoint_of(reentrant=True)


def checkpoint_non_reentrant() -> Tensors:
    yield from checkpoint_of(reentrant=False)


def gradient_accumulation() -> Tensors:
    model = encoder()
    yield from train(model, torch.optim.AdamW(model.parameters()), accumulate=3)


def adamw_foreach() -> Tensors:
    model = encoder()
    yield from train(model, torch.optim.AdamW(model.parameters(), foreach=True))


def adamw_fused() -> Tensors:
    model = encoder()
    yield from train(model, torch.optim.AdamW(model.parameters(), fused=True))


def adamw_for_loop() -> Tensors:
    model = encoder()
    yield from train(model, torch.optim.AdamW(model.parameters(), foreach=False))


def grad_scaler_and_clipping() -> Tensors:
    model = encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(4, 6, 32)).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        yield nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield loss.detach()
    yield from (p.detach() for p in model.parameters())


def eval_fast_path() -> Tensors:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    mask = torch.zeros(4, 6, dtype=torch.bool)
    mask[1, 4:] = True
    with torch.inference_mode():
        yield model(torch.randn(4, 6, 32)).clone()
        yield model(torch.randn(4, 6, 32), src_key_padding_mask=mask).clone()


def sdpa_of(*backends: nn.attention.SDPBackend) -> Tensors:
    projection = nn.Linear(16, 48)
    optimizer = torch.optim.SGD(projection.parameters(), lr=0.1)

    def forward(batch: torch.Tensor) -> torch.Tensor:
        q, k, v = projection(batch).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        with nn.attention.sdpa_kernel(list(backends)):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    yield from train(projection, optimizer, forward=forward, shape=(2, 64, 16))


def sdpa_math() -> Tensors:
    yield from sdpa_of(nn.attention.SDPBackend.MATH)


def sdpa_flash() -> Tensors:
    yield from sdpa_of(nn.attention.SDPBackend.FLASH_ATTENTION, nn.attention.SDPBackend.MATH)


def in_place_activations() -> Tensors:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.act, self.second = nn.Linear(32, 32), nn.ReLU(inplace=True), nn.Linear(32, 32)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.second(self.act(self.first(batch)))
            out += batch
            return out

    model = nn.Sequential(Block(), Block())
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1))


def convolution_and_batch_norm() -> Tensors:
    model: Any = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3))
    model = model.to(memory_format=torch.channels_last)
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), shape=(2, 3, 12, 12))


def lstm() -> Tensors:
    model = nn.LSTM(32, 16, num_layers=2, dropout=0.2, batch_first=True)
    yield from train(model, torch.optim.Adam(model.parameters()), forward=lambda batch: model(batch)[0])


def sparse_embedding() -> Tensors:
    table = nn.Embedding(50, 8, sparse=True)
    optimizer: Any = torch.optim.SparseAdam(table.parameters())
    for _ in range(STEPS):
        loss = table(torch.randint(0, 50, (6,))).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()
    yield table.weight.detach()


def custom_function() -> Tensors:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2 + x.sin()

        @staticmethod
        def backward(_ctx: object, *grads: torch.Tensor) -> torch.Tensor:
            return grads[0] * 2

    model = nn.Linear(32, 32)
    apply: Callable[[torch.Tensor], torch.Tensor] = Double.apply
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1), forward=lambda batch: apply(model(batch)))


def double_backward() -> Tensors:
    model = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        batch = torch.randn(4, 32, requires_grad=True)
        (slope,) = torch.autograd.grad(model(batch).sum(), batch, create_graph=True)
        loss: Any = (slope.norm(dim=-1) - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()
    yield from (p.detach() for p in model.parameters())


def lbfgs_closure() -> Tensors:
    model = nn.Linear(8, 1)
    optimizer: Any = torch.optim.LBFGS(model.parameters(), max_iter=5)
    batch = torch.randn(16, 8)

    def closure() -> float:
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(-1, keepdim=True)).square().mean()
        loss.backward()
        return float(loss.detach())

    for _ in range(STEPS):
        optimizer.step(closure)
    yield from (p.detach() for p in model.parameters())


def two_optimizers() -> Tensors:
    model = encoder()
    parameters = list(model.parameters())
    first, second = torch.optim.SGD(parameters[::2], lr=0.1), torch.optim.AdamW(parameters[1::2])
    for _ in range(STEPS):
        loss = model(torch.randn(4, 6, 32)).square().mean()
        loss.backward()
        for optimizer in (first, second):
            optimizer.step()
            optimizer.zero_grad()
        yield loss.detach()
    yield from (p.detach() for p in model.parameters())


def tied_weights() -> Tensors:
    table, head = nn.Embedding(40, 16), nn.Linear(16, 40, bias=False)
    head.weight = table.weight
    model = nn.ModuleList([table, head])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        tokens = torch.randint(0, 40, (4, 5))
        loss: Any = functional.cross_entropy(head(table(tokens)).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()
    yield table.weight.detach()


def data_loader_workers() -> Tensors:
    data = TensorDataset(torch.randn(12, 32))
    model = nn.Linear(32, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in DataLoader(data, batch_size=4, num_workers=2, shuffle=True):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()
    yield model.weight.detach()


def functorch_transforms() -> Tensors:
    model = nn.Linear(8, 3)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.func.functional_call(model, weights, (row,))
        return out.square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, torch.randn(5, 8))
    yield from per_sample.values()


def compiled_model() -> Tensors:
    model = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    compiled = torch.compile(model)
    yield from train(model, torch.optim.AdamW(model.parameters()), forward=compiled)


def compiled_function() -> Tensors:
    model = nn.Linear(32, 32)

    @torch.compile
    def loss(batch: torch.Tensor) -> torch.Tensor:
        return torch.softmax(model(batch) * 1.7, -1).sin()

    yield from train(model, torch.optim.AdamW(model.parameters()), forward=loss)


WORKLOADS: dict[str, Workload] = {
    "float32, dropout, AdamW": float32,
    "float64": float64,
    "bfloat16 weights": pure_bfloat16,
    "bfloat16 autocast": bfloat16_autocast,
    "checkpointing, reentrant": checkpoint_reentrant,
    "checkpointing, non-reentrant": checkpoint_non_reentrant,
    "gradient accumulation": gradient_accumulation,
    "AdamW foreach": adamw_foreach,
    "AdamW fused": adamw_fused,
    "AdamW for-loop": adamw_for_loop,
    "grad scaler, clipping": grad_scaler_and_clipping,
    "eval fast path": eval_fast_path,
    "SDPA math": sdpa_math,
    "SDPA flash": sdpa_flash,
    "in-place activations": in_place_activations,
    "convolution, batch norm, channels last": convolution_and_batch_norm,
    "LSTM": lstm,
    "sparse embedding": sparse_embedding,
    "custom autograd.Function": custom_function,
    "double backward": double_backward,
    "LBFGS with closure": lbfgs_closure,
    "two optimizers": two_optimizers,
    "tied weights": tied_weights,
    "data loader workers": data_loader_workers,
    "functorch vmap and grad": functorch_transforms,
    "compiled model": compiled_model,
    "compiled function": compiled_function,
}
