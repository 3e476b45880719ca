"""Sentences of several lengths, packed, go through a GRU of two directions to a class."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader


class Words(torch.utils.data.Dataset):
    """Does the sum of the numbers of a sentence exceed ten for each of its words?"""

    def __init__(self, count):
        lengths = torch.randint(2, 9, (count,)).tolist()
        self.items = [torch.randint(1, 20, (n,)) for n in lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        words = self.items[i]
        return words, int(words.sum() > 10 * len(words))


def collate(batch):
    batch = sorted(batch, key=lambda item: -len(item[0]))
    words, labels = zip(*batch, strict=True)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), lengths, torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.gru = nn.GRU(8, 12, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True)
        output, h = self.gru(packed)
        output, sizes = pad_packed_sequence(output, batch_first=True)
        assert torch.equal(sizes, lengths)
        pooled = output.sum(1) / lengths[:, None]
        return self.head(self.norm(pooled + torch.cat((h[-2], h[-1]), dim=1)))


torch.manual_seed(17)
data = Words(128)
loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=collate)
model = Classifier()
print({name: tuple(p.shape) for name, p in model.gru.named_parameters() if "l1" in name})
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(4):
    for x, lengths, y in loader:
        loss = nn.functional.cross_entropy(model(x, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch} {loss.item():.5f} {tuple(x.shape)} {lengths[:5].tolist()}")
print("padding's gradient", model.embed.weight.grad[0].abs().sum().item())
assert sum(losses[-4:]) < sum(losses[:4])
