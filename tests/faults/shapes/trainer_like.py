"""A Trainer with callbacks, a scheduler, clipping, evaluation between steps and checkpoints in memory."""
import copy

import torch
from torch import nn

torch.manual_seed(1)


class Trainer:
    def __init__(self, model, data, callbacks=()):
        self.model, self.data, self.callbacks = model, data, list(callbacks)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))

    def training_step(self, batch):
        self.model.train()
        loss = self.compute_loss(batch)
        loss.backward()
        return loss.detach()

    def compute_loss(self, batch):
        x, y = batch["x"], batch["y"]
        return nn.functional.cross_entropy(self.model(x), y)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return sum(self.compute_loss(batch).item() for batch in self.data)

    def train(self):
        for step, batch in enumerate(self.data):
            loss = self.training_step(batch)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad(set_to_none=step % 2 == 0)
            state = copy.deepcopy(self.optimizer.state_dict())
            print(step, loss.item().hex(), norm.item().hex(), self.evaluate().hex(), len(state["state"]))


model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 3))
data = [{"x": torch.randn(4, 6), "y": torch.randint(3, (4,))} for _ in range(4)]
Trainer(model, data).train()
