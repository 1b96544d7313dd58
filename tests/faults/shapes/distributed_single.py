"""One rank of torch.distributed: DDP with accumulation, an asynchronous all-reduce."""
import os

import torch
import torch.distributed as dist
from torch import nn

os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(4):
    if step % 2 == 0:
        with model.no_sync():
            model(torch.randn(3, 4)).sum().backward()
    loss = model(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total = loss.detach().clone()
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    print(total.item().hex())
dist.destroy_process_group()
