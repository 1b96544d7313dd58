"""Coroutines, async code, generators, exec and a lambda model."""
import asyncio

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)


async def step(x):
    await asyncio.sleep(0)
    return model(x).sum()


async def main():
    for value in await asyncio.gather(*(step(torch.randn(2, 4)) for _ in range(3))):
        value.backward()
        print(value.item().hex())


asyncio.run(main())
exec("print(model(torch.ones(1, 4)).item().hex())")
print(sum(model(row).item() for row in torch.ones(3, 4)).hex())
