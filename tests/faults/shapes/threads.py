"""Two threads run forward and backward at the same time, and a thread pool calls the model."""
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
models = [nn.Linear(4, 4) for _ in range(2)]
data = torch.randn(2, 3, 4)
results = [0.0, 0.0]


def work(index):
    for _ in range(5):
        loss = models[index](data[index]).square().mean()
        loss.backward()
    results[index] = loss.item()


workers = [threading.Thread(target=work, args=(index,)) for index in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print([value.hex() for value in results])
with ThreadPoolExecutor(2) as pool:
    print([value.hex() for value in pool.map(lambda m: m(data[0]).sum().item(), models)])
