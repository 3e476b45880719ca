"""REINFORCE balances a pole on a cart; the cart's physics are written out here."""

import math
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    """A pole on a cart that is pushed left or right: Barto, Sutton and Anderson (1983)."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)

    def reset(self):
        self.state = self.random.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        _, v, angle, spin = self.state
        push = (10 if action else -10) + 0.05 * spin**2 * math.sin(angle)
        mass = 0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        turn = (9.8 * math.sin(angle) - math.cos(angle) * push / 1.1) / mass
        speed = (push - 0.05 * turn * math.cos(angle)) / 1.1
        self.state = self.state + 0.02 * np.array([v, speed, spin, turn])
        return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(32, 2)

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)


env = CartPole(543)
torch.manual_seed(543)
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=2e-2)
eps = np.finfo(np.float32).eps.item()
lengths = []
for episode in range(50):
    state, rewards, log_probs = env.reset(), [], []
    for _ in range(200):
        m = Categorical(policy(torch.from_numpy(state).float().unsqueeze(0)))
        action = m.sample()
        log_probs.append(m.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    total, returns = 0, deque()
    for r in rewards[::-1]:
        total = r + 0.99 * total
        returns.appendleft(total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_loss = torch.cat([-p * r for p, r in zip(log_probs, returns, strict=True)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
    if episode % 10 == 9:
        print(f"Episode {episode}\tLast reward: {lengths[-1]}\tloss {policy_loss.item():.4f}")
assert sum(lengths[-10:]) > sum(lengths[:10])
