"""Text classification: a bag of embeddings for each text, texts joined by their offsets."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.dataset import random_split

SPORT = ["the team won the match", "a late goal in the game", "players run and score a goal"]
MARKET = ["the bank raised its rates", "shares fell and prices rose", "the market sold its shares"]


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class, mode):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, mode=mode, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


corpus = [(label, line) for label, lines in enumerate([SPORT, MARKET]) for line in lines] * 8
vocabulary = {w: i for i, w in enumerate(sorted({w for _, line in corpus for w in line.split()}))}


def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, line in batch:
        labels.append(label)
        texts.append(torch.tensor([vocabulary[w] for w in line.split()], dtype=torch.int64))
        offsets.append(texts[-1].size(0))
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    return torch.tensor(labels, dtype=torch.int64), torch.cat(texts), offsets


for mode in ("mean", "sum", "max"):
    torch.manual_seed(8)
    train, valid = random_split(corpus, [40, len(corpus) - 40])
    model = TextClassificationModel(len(vocabulary), 8, 2, mode)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    losses = []
    for _ in range(4):
        for label, text, offsets in DataLoader(train, 8, shuffle=True, collate_fn=collate_batch):
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(model(text, offsets), label)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    label, text, offsets = next(iter(DataLoader(valid, 8, collate_fn=collate_batch)))
    correct = (model(text, offsets).argmax(1) == label).sum().item()
    print(mode, f"{losses[0]:.5f} {losses[-1]:.5f}", correct, offsets.tolist())
    assert losses[-1] < losses[0]
