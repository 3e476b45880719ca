"""Deep Q-learning with a replay memory and a target net that follows slowly."""

import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)


def walk(position, action):
    """Go left or right on a line; at 1 lies a reward, at -1 a punishment, and both end it."""
    position = position + (0.25 if action else -0.25)
    return position, float(position >= 1) - float(position <= -1), abs(position) >= 1


random.seed(6)
torch.manual_seed(6)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
policy_net = nn.Sequential(
    nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2)
)
target_net = nn.Sequential(
    nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2)
)
print(target_net.load_state_dict(policy_net.state_dict()))
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
memory, steps, losses = ReplayMemory(500), 0, []
for _episode in range(20):
    position, done = 0.0, False
    while not done:
        state = torch.tensor([[position]], dtype=torch.float32, device=device)
        if random.random() > 0.1 + 0.9 * math.exp(-steps / 60):
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
        steps += 1
        position, reward, done = walk(position, action.item())
        following = None if done else torch.tensor([[position]])
        memory.push(state, action, following, torch.tensor([reward]))
        if len(memory.memory) < 16:
            continue
        batch = Transition(*zip(*memory.sample(16), strict=True))
        non_final = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
        q = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(16, device=device)
        with torch.no_grad():
            following = torch.cat([s for s in batch.next_state if s is not None])
            next_values[non_final] = target_net(following).max(1).values
        loss = nn.SmoothL1Loss()(q, (torch.cat(batch.reward) + 0.9 * next_values).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        losses.append(loss.item())
        target = target_net.state_dict()
        for key, value in policy_net.state_dict().items():
            target[key] = value * 0.05 + target[key] * 0.95
        target_net.load_state_dict(target)
print(steps, "steps, losses", [round(v, 6) for v in losses[::20]])
values = policy_net(torch.linspace(-0.75, 0.75, 7)[:, None]).detach()
print(values)
assert (values[4:, 1] > values[4:, 0]).all()
