"""A sequence is written backwards: GRU encoder, additive attention, GRU decoder."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS, VOCABULARY, LENGTH = 0, 12, 5


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoded, hidden, target, forced):
        word, outputs = torch.empty(len(encoded), 1, dtype=torch.long).fill_(SOS), []
        for i in range(LENGTH):
            context, _ = self.attention(hidden.permute(1, 0, 2), encoded)
            joined = torch.cat((self.embedding(word), context), dim=2)
            output, hidden = self.gru(joined, hidden)
            outputs.append(self.out(output))
            word = target[:, i : i + 1] if forced else outputs[-1].topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1)


random.seed(4)
torch.manual_seed(4)
encoder, decoder = EncoderRNN(VOCABULARY, 24), AttnDecoderRNN(24, VOCABULARY)
optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
losses = []
for step in range(25):
    source = torch.randint(1, VOCABULARY, (32, LENGTH))
    target = source.flip(1)
    for optimizer in optimizers:
        optimizer.zero_grad()
    encoded, hidden = encoder(source)
    output = decoder(encoded, hidden, target, forced=random.random() < 0.7)
    loss = nn.NLLLoss()(output.view(-1, VOCABULARY), target.reshape(-1))
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    losses.append(loss.item())
    if step % 5 == 0:
        print(f"{step} {loss.item():.4f} {(output.argmax(-1) == target).sum().item()}")
assert losses[-1] < losses[0]
