"""LSTM, GRU, RNN cells, packed sequences, hidden state carried over steps."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
lstm, cell, head = nn.LSTM(3, 5, num_layers=2, batch_first=True, dropout=0.1), nn.GRUCell(5, 5), nn.Linear(5, 1)
parameters = [*lstm.parameters(), *cell.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)
state = torch.zeros(4, 5)
for _ in range(2):
    packed = pack_padded_sequence(torch.randn(4, 6, 3), torch.tensor([6, 5, 3, 1]), batch_first=True)
    out, (hidden, _) = lstm(packed)
    padded, lengths = pad_packed_sequence(out, batch_first=True)
    state = cell(hidden[-1], state.detach())
    loss = head(state).square().mean() + padded.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex(), lengths.tolist())
