"""A Transformer encoder with a causal mask learns to continue sequences of numbers."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.1):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.linear = nn.Linear(d_model, ntoken)
        self.d_model = d_model
        self.init_weights()

    def init_weights(self):
        self.embedding.weight.data.uniform_(-0.1, 0.1)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-0.1, 0.1)

    def forward(self, src):
        mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        x = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        return self.linear(self.encoder(x, mask, is_causal=True))


torch.manual_seed(1111)
model = TransformerModel(ntoken=11, d_model=16, nhead=2, d_hid=32, nlayers=2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.9)
losses = []
for step in range(15):
    start, stride = torch.randint(11, (1, 20)), torch.randint(1, 4, (1, 20))
    line = (start + stride * torch.arange(13).unsqueeze(1)) % 11
    loss = criterion(model(line[:-1]).view(-1, 11), line[1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    if step % 3 == 2:
        print(f"{step} lr {scheduler.get_last_lr()[0]:.3f} ppl {math.exp(loss.item()):.3f}")
model.eval()
with torch.no_grad():
    print("eval", criterion(model(line[:-1]).view(-1, 11), line[1:].reshape(-1)))
assert losses[-1] < losses[0]
