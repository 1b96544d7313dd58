"""Sparse gradients, sparse tensors and EmbeddingBag."""
import torch
from torch import nn

torch.manual_seed(0)
embedding, bag = nn.Embedding(20, 4, sparse=True), nn.EmbeddingBag(20, 4, sparse=True, mode="sum")
optimizer = torch.optim.SparseAdam([*embedding.parameters(), *bag.parameters()], lr=0.1)
for _ in range(2):
    ids = torch.randint(20, (3, 5))
    loss = embedding(ids).square().mean() + bag(ids).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
matrix = torch.eye(3).to_sparse()
print((matrix @ torch.ones(3, 1)).sum().item(), matrix.to_sparse_csr().values().tolist())
