"""gpytorch's Gaussian processes: exact ones of five kernels, and a variational one of classes."""

import gpytorch
import torch
from gpytorch import kernels, likelihoods, means, mlls, variational
from gpytorch.distributions import MultivariateNormal


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean, self.covariance = means.ConstantMean(), kernels.ScaleKernel(kernel)

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.covariance(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = variational.CholeskyVariationalDistribution(len(points))
        super().__init__(variational.VariationalStrategy(self, points, distribution))
        self.mean, self.covariance = means.ConstantMean(), kernels.RBFKernel()

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.covariance(x))


def fit(name, model, likelihood, objective, x, y):
    model.train(), likelihood.train()
    parameters = {*model.parameters(), *likelihood.parameters()}
    optimizer = torch.optim.Adam(sorted(parameters, key=lambda p: p.numel()), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(f"{loss:.3f}")
    model.eval(), likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.linspace(0, 1, 5)[:, None]))
    print(name, losses, f"{found.mean.sum():.3f} {found.variance.sum():.3f}")


torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
x = torch.linspace(0, 1, 30)[:, None]
y = torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(30)
prior = gpytorch.priors.GammaPrior(3.0, 6.0)
for kernel in (
    *(kernels.RBFKernel(lengthscale_prior=prior), kernels.MaternKernel(nu=2.5)),
    *(kernels.PeriodicKernel(), kernels.RQKernel(), kernels.PolynomialKernel(2)),
):
    likelihood = likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood, kernel)
    objective = mlls.ExactMarginalLogLikelihood(likelihood, model)
    fit(type(kernel).__name__, model, likelihood, objective, x, y)
model, likelihood = Sparse(x[::4]), likelihoods.BernoulliLikelihood()
fit("classes", model, likelihood, mlls.VariationalELBO(likelihood, model, 30), x, (y > 0).double())
