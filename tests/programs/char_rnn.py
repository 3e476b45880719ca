"""A recurrent net reads characters, predicts the next one, and writes by drawing from it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "how much wood would a woodchuck chuck if a woodchuck could chuck wood? " * 6
vocabulary = sorted(set(TEXT))
index = {c: i for i, c in enumerate(vocabulary)}
codes = torch.tensor([index[c] for c in TEXT])


class CharRNN(nn.Module):
    def __init__(self, vocab, embed, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed)
        self.rnn = nn.RNN(embed, hidden, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, h=None):
        y, h = self.rnn(self.embedding(x), h)
        return self.out(y), h


def generate(model, start, length, temperature):
    model.eval()
    x, h, text = torch.tensor([[index[c] for c in start]]), None, start
    with torch.inference_mode():
        for _ in range(length):
            logits, h = model(x, h)
            weights = F.softmax(logits[0, -1] / temperature, dim=-1)
            x = torch.multinomial(weights, 1).unsqueeze(0)
            text += vocabulary[x.item()]
    return text


torch.manual_seed(1234)
model = CharRNN(len(vocabulary), 12, 32)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for step in range(40):
    model.train()
    starts = torch.randint(0, len(codes) - 26, (16,))
    batch = torch.stack([codes[s : s + 26] for s in starts])
    logits, _ = model(batch[:, :-1])
    loss = F.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
    optimizer.step()
    losses.append(loss.item())
    if step % 10 == 9:
        print(f"{step + 1} {loss.item():.4f}")
print(repr(generate(model, "wo", 40, 0.8)))
draws = torch.multinomial(torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]]), 8, replacement=True)
print(draws.tolist(), torch.bincount(draws.flatten(), minlength=3).tolist())
assert losses[-1] < 0.6 * losses[0]
