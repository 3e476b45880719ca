"""A mixture of Gaussians by expectation and maximization, in the terms of linear algebra."""

import itertools
import math

import torch
from torch.distributions import Categorical, MultivariateNormal

torch.manual_seed(1)
true_means = torch.tensor([[0.0, 0.0], [4.0, 1.0], [-2.0, 4.0]], dtype=torch.float64)
spread = torch.tensor(
    [[[1.0, 0.0], [0.6, 0.5]], [[0.5, 0.0], [0.0, 1.0]], [[0.8, 0.0], [-0.4, 0.4]]]
).double()
labels = Categorical(probs=torch.tensor([0.5, 0.3, 0.2])).sample((300,))
noise = torch.randn(300, 2, dtype=torch.float64)
x = true_means[labels] + torch.einsum("nij,nj->ni", spread[labels], noise)


def log_density(x, means, covariances):
    factor = torch.linalg.cholesky(covariances)
    difference = (x[:, None] - means).permute(1, 2, 0)
    whitened = torch.linalg.solve_triangular(factor, difference, upper=False)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * whitened.square().sum(1).T - log_det - math.log(2 * math.pi)


means = x[torch.randperm(len(x))[:3]].clone()
covariances = torch.eye(2).double().expand(3, 2, 2) * x.var()
weights = torch.full((3,), 1 / 3, dtype=torch.float64)
likelihoods = []
for step in range(25):
    joint = log_density(x, means, covariances) + weights.log()
    total = torch.logsumexp(joint, 1, keepdim=True)
    r = (joint - total).exp()
    counts = r.sum(0)
    weights, means = counts / len(x), (r.T @ x) / counts[:, None]
    centred = x[:, None] - means
    covariances = torch.einsum("nk,nki,nkj->kij", r, centred, centred) / counts[:, None, None]
    covariances += 1e-6 * torch.eye(2)
    likelihoods.append(total.mean().item())
    if step % 5 == 0:
        print(f"{step} {likelihoods[-1]:.6f}")
order = torch.argsort(means[:, 0])
print(weights[order], means[order], sep="\n")
values, vectors = torch.linalg.eigh(covariances[order])
print(values, torch.linalg.det(covariances[order]), torch.linalg.norm(vectors, dim=1).sum().item())
agree = MultivariateNormal(means[0], covariances[0]).log_prob(x)
print(torch.allclose(agree, log_density(x, means, covariances)[:, 0]))
print(torch.linalg.lstsq(x[:, :1], x[:, 1:]).solution, torch.linalg.svdvals(x))
assert all(b >= a - 1e-9 for a, b in itertools.pairwise(likelihoods))
