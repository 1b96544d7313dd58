"""A small training for level `callsite`: exceptions, generators, buffers, starred arguments; it prints results."""

import sys
from collections.abc import Iterator

import torch
from callsite_model import Net
from torch.nn import functional


def say(*numbers: float) -> None:
    sys.stdout.write(" ".join(number.hex() for number in numbers) + "\n")
    sys.stdout.flush()


def risky(x: torch.Tensor) -> torch.Tensor | None:
    try:
        return functional.linear(x, torch.ones(3, 3))
    except RuntimeError:
        return None


def batches(number: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(number):
        yield torch.randn(5, 8), torch.randint(0, 4, (5,))


def loss_of(out: torch.Tensor, *more: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    return functional.cross_entropy(out, *more, reduction=reduction)


def main(num_steps: int) -> None:
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches(num_steps):
        optimizer.zero_grad()
        risky(x)
        loss = loss_of(net(x), *[y], reduction="mean")
        loss.backward()
        optimizer.step()
        say(loss.item(), *(part.sum().item() for part in torch.chunk(x, 2)))
    say(sum(p.double().sum().item() for p in net.parameters()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
