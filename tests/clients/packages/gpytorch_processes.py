"""gpytorch: Gaussian processes, exact and variational."""

from __future__ import annotations

import tempfile
from pathlib import Path

import gpytorch
import torch

from tests.clients.networks import compile_by, ramp
from tests.clients.stages import Client, stage


def points():
    return torch.linspace(0, 1, 12)


def targets():
    return torch.sin(points() * 6) + 0.1 * ramp(12)


class Process(gpytorch.models.ExactGP):
    """Matérn's kernel, scaled."""

    def __init__(self, likelihood):
        super().__init__(points(), targets(), likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5))

    def forward(self, where):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(where), self.covar_module(where))


class Variational(gpytorch.models.ApproximateGP):
    """Inducing points that are learned."""

    def __init__(self):
        where = torch.linspace(0, 1, 5)[:, None]
        distribution = gpytorch.variational.CholeskyVariationalDistribution(5)
        super().__init__(gpytorch.variational.VariationalStrategy(self, where, distribution))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, where):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(where), self.covar_module(where))


class Exact(Client):
    name = "ExactGP"

    @stage
    def build(self):
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.model = Process(self.likelihood)
        return [name for name, _ in self.model.named_parameters()]

    def loss(self):
        return -gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)(self.model(points()), targets())

    @stage
    def loss_and_backward(self):
        self.model.train()
        loss = self.loss()
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in self.model.parameters())]

    @stage
    def step(self):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    def predict(self, model, likelihood):
        model.eval()
        likelihood.eval()
        with torch.no_grad():
            found = likelihood(model(torch.linspace(0, 1.2, 7)))
            return [found.mean, found.variance, *found.confidence_region()]

    @stage
    def forward(self):
        return self.predict(self.model, self.likelihood)

    @stage
    def fast_variances(self):
        self.model.train()
        with gpytorch.settings.fast_pred_var():
            return self.predict(self.model, self.likelihood)

    @stage
    def sample(self):
        self.model.eval()
        with torch.no_grad():
            return list(self.model(torch.linspace(0, 1.2, 7)).sample(torch.Size([64])).shape)

    @stage
    def compile(self):
        kernel = self.model.covar_module
        return compile_by(lambda where: kernel(where, where).to_dense())(points()[:, None]).detach()

    @stage
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.save(self.model.state_dict(), Path(folder) / "a.pt")
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
            model = Process(likelihood)
            model.load_state_dict(torch.load(Path(folder) / "a.pt"))
        return self.predict(model, likelihood)


class Approximate(Client):
    name = "ApproximateGP"

    @stage
    def build(self):
        # In float64, as the kernel at five points so close to each other is nearly singular.
        self.model, self.likelihood = Variational().double(), gpytorch.likelihoods.GaussianLikelihood().double()
        return [name for name, _ in self.model.named_parameters()]

    @stage
    def step(self):
        parameters = [*self.model.parameters(), *self.likelihood.parameters()]
        bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=12)
        optimizer = torch.optim.SGD(parameters, lr=0.05)  # Adam makes steps of gradients that are noise about 0
        losses = []
        self.model.variational_strategy.variational_params_initialized.fill_(1)  # otherwise drawn
        for _ in range(4):
            optimizer.zero_grad()
            loss = -bound(self.model(points().double()[:, None]), targets().double())
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    @stage
    def forward(self):
        self.model.eval()
        with torch.no_grad():
            found = self.model(points().double()[:, None])
            return [found.mean, found.variance]


class Kernels(Client):
    name = "kernels"

    @stage
    def dense(self):
        kernels = gpytorch.kernels
        kinds = [kernels.RBFKernel(), kernels.MaternKernel(1.5), kernels.PeriodicKernel(), kernels.LinearKernel()]
        kinds += [kernels.RQKernel(), kernels.CosineKernel(), kernels.PolynomialKernel(2), kernels.RBFKernel(ard_num_dims=2)]
        return [kind(ramp(4, 2), ramp(3, 2)).to_dense().detach() for kind in kinds]

    @stage
    def composed(self):
        kernels = gpytorch.kernels
        both = kernels.RBFKernel() + kernels.LinearKernel() * kernels.MaternKernel(0.5)
        return both(ramp(4, 2)).to_dense().detach()

    @stage
    def solve(self):
        covariance = gpytorch.kernels.RBFKernel()(ramp(6, 2) * 3).add_jitter(0.1)
        return [covariance.solve(ramp(6, 1)).detach(), covariance.logdet().detach()]

    @stage
    def conjugate_gradients(self):
        where = torch.linspace(0, 3, 30)[:, None]
        covariance = gpytorch.kernels.RBFKernel()(where).add_jitter(0.5)
        with gpytorch.settings.max_cholesky_size(1), gpytorch.settings.cg_tolerance(1e-4):
            return covariance.solve(torch.sin(where)).detach()

    @stage
    def multitask(self):
        kernel = gpytorch.kernels.MultitaskKernel(gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1)
        kernel.task_covar_module.covar_factor.data = ramp(2, 1)
        return kernel(ramp(3, 1)).to_dense().detach()
