"""An LSTM of two layers continues a sine wave."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 21)
        self.lstm2 = nn.LSTMCell(21, 21)
        self.linear = nn.Linear(21, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 21, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 21, dtype=torch.double)
        h_t2, c_t2 = h_t.clone(), c_t.clone()
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


np.random.seed(0)
torch.manual_seed(0)
t = np.arange(31) + np.random.randint(-20, 20, (9, 1))
data = np.sin(t / 5.0).astype("float64")
input, target = torch.from_numpy(data[3:, :-1]), torch.from_numpy(data[3:, 1:])
test_input, test_target = torch.from_numpy(data[:3, :-1]), torch.from_numpy(data[:3, 1:])
seq = Sequence().double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.5, max_iter=4)
losses = []
for i in range(3):
    print("STEP: ", i)

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        losses.append(loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        pred = seq(test_input, future=5)
        print("test loss:", round(criterion(pred[:, :-5], test_target).item(), 6))
print("future", pred[0, -5:].numpy().round(4).tolist(), "evaluations", len(losses))

torch.manual_seed(1)
stacked = nn.LSTM(1, 8, num_layers=2, batch_first=True, dropout=0.3, bidirectional=True)
output, (h, c) = stacked(input.float()[..., None])
output.pow(2).mean().backward()
print(tuple(output.shape), tuple(h.shape), output.sum().item(), c[-1, 0])
print(f"gradient {stacked.weight_hh_l1_reverse.grad.norm():.6f}")
assert losses[-1] < 0.5 * losses[0]
