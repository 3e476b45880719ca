"""Actor and critic share a trunk and find the way through a small grid."""

from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value", "entropy"])
MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])


class Grid:
    """Four fields by four: from one corner to the other, a step costs, the goal pays."""

    def reset(self):
        self.at, self.steps = torch.zeros(2, dtype=torch.long), 0
        return self.observe()

    def observe(self):
        return F.one_hot(self.at, 4).flatten().float()

    def step(self, action):
        self.at = (self.at + MOVES[action]).clamp(0, 3)
        self.steps += 1
        found = bool((self.at == 3).all())
        return self.observe(), 1.0 if found else -0.05, found or self.steps >= 40


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.action_head, self.value_head = nn.Linear(32, 4), nn.Linear(32, 1)

    def forward(self, x):
        x = self.trunk(x)
        return Categorical(logits=self.action_head(x)), self.value_head(x)


torch.manual_seed(0)
env, model = Grid(), ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
lengths = []
for episode in range(40):
    state, done, saved, rewards = env.reset(), False, [], []
    while not done:
        policy, value = model(state)
        action = policy.sample()
        saved.append(SavedAction(policy.log_prob(action), value, policy.entropy()))
        state, reward, done = env.step(action)
        rewards.append(reward)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    values = torch.cat([s.value for s in saved])
    advantage = returns - values.detach()
    policy_loss = -(torch.stack([s.log_prob for s in saved]) * advantage).sum()
    entropy = torch.stack([s.entropy for s in saved]).sum()
    loss = policy_loss + F.smooth_l1_loss(values, returns, reduction="sum") - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
    if episode % 8 == 7:
        print(episode, lengths[-8:], f"{loss.item():.4f} {entropy.item():.4f}")
assert sum(lengths[-10:]) < sum(lengths[:10])
