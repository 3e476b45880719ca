"""Word embeddings by skip-gram with negative samples."""

from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
lines = (
    "the king rules the land and the queen rules the land",
    "the dog chases the cat and the cat chases the mouse",
    "the king and the queen sit while the dog and the cat run",
)
text = [word for line in lines for word in line.split()]
counts = Counter(text)
words = sorted(counts)
word_to_ix = {word: i for i, word in enumerate(words)}
pairs = torch.tensor(
    [
        (word_to_ix[text[i]], word_to_ix[text[j]])
        for i in range(len(text))
        for j in range(max(0, i - 2), min(len(text), i + 3))
        if i != j
    ]
)


class SkipGram(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.center = nn.Embedding(vocab_size, dim, max_norm=2.0)
        self.context = nn.Embedding(vocab_size, dim)
        nn.init.trunc_normal_(self.center.weight, std=0.3)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, context, noise):
        v = self.center(center)
        positive = F.logsigmoid((self.context(context) * v).sum(1))
        scores = torch.einsum("bkd,bd->bk", self.context(noise), v)
        return -(positive + F.logsigmoid(-scores).sum(1)).mean()


unigram = torch.tensor([counts[w] for w in words], dtype=torch.float) ** 0.75
unigram /= unigram.sum()
model = SkipGram(len(words), 6)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
losses = []
for epoch in range(6):
    total = 0.0
    for index in torch.randperm(len(pairs)).split(32):
        center, context = pairs[index].unbind(1)
        noise = torch.multinomial(unigram, 3 * len(index), replacement=True).view(-1, 3)
        model.zero_grad()
        loss = model(center, context, noise)
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total)
    print(f"{epoch} {total:.4f}")
vectors = model.center.weight.detach()
similar = F.cosine_similarity(vectors[word_to_ix["king"]], vectors, dim=1)
value, best = similar.topk(4)
print("king", [words[i] for i in best], value)
print(torch.cdist(vectors[:2], vectors[2:5]))
assert losses[-1] < losses[0]
