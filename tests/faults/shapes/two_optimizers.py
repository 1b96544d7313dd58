"""A generator and a discriminator, an optimizer each, retain_graph and detach."""
import torch
from torch import nn

torch.manual_seed(0)
generator, judge = nn.Linear(3, 4), nn.Linear(4, 1)
first = torch.optim.Adam(generator.parameters(), lr=0.01)
second = torch.optim.Adam(judge.parameters(), lr=0.01)
for _ in range(3):
    fake = generator(torch.randn(5, 3))
    loss_judge = judge(fake.detach()).mean() - judge(torch.randn(5, 4)).mean()
    second.zero_grad()
    loss_judge.backward()
    second.step()
    loss_fake = -judge(fake).mean()
    first.zero_grad()
    loss_fake.backward(retain_graph=True)
    first.step()
    print(loss_judge.item().hex(), loss_fake.item().hex())
