"""Default dtype float64, default device meta for a while, one thread less, deterministic fill off."""
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = model(torch.randn(2, 4)).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
torch.set_default_device("meta")
shell = torch.nn.Linear(3, 3)
print(shell(torch.randn(2, 3)).device)
torch.set_default_device(None)
with torch.device("meta"):
    print(torch.nn.Linear(3, 3)(torch.ones(1, 3)).shape)
