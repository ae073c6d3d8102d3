"""torchdiffeq: solvers, their gradients and events."""

from __future__ import annotations

import torch
import torchdiffeq

from tests.clients.networks import compile_by, made_weights, ramp
from tests.clients.stages import Client, stage

SOLVERS = "dopri8 dopri5 bosh3 fehlberg2 adaptive_heun euler midpoint heun3 rk4 explicit_adams implicit_adams".split()


class Field(torch.nn.Module):
    """A field that depends on time, with the weights that every process gives it."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        self.load_state_dict(made_weights(self))

    def forward(self, time, state):
        return self.layers(state) * torch.cos(time)


def times():
    return torch.linspace(0, 1, 4)


class Solvers(Client):
    name = "odeint"

    def solve(self, method):
        with torch.no_grad():
            return torchdiffeq.odeint(Field(), ramp(3, 2), times(), method=method, rtol=1e-5, atol=1e-6)


def _of_solver(method):
    def solve(self):
        return self.solve(method)

    return stage(solve)


for _method in SOLVERS:
    setattr(Solvers, _method, _of_solver(_method))


class Gradients(Client):
    name = "gradients"

    def gradients(self, solve, **options):
        field, start = Field(), ramp(3, 2).requires_grad_()
        (solve(field, start, times(), method="rk4", **options)[-1] ** 2).sum().backward()
        return [start.grad, *(p.grad for p in field.parameters())]

    @stage
    def backward(self):
        return self.gradients(torchdiffeq.odeint)

    @stage
    def adjoint(self):
        return self.gradients(torchdiffeq.odeint_adjoint)

    @stage
    def step(self):
        field = Field()
        optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = (torchdiffeq.odeint_adjoint(field, ramp(3, 2), times())[-1] ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    @stage
    def event(self):
        def fall(time, state):
            return state[1], torch.full_like(state[1], -9.8)

        start = (torch.tensor([10.0]), torch.tensor([0.0]))
        return torchdiffeq.odeint_event(fall, start, torch.tensor(0.0), event_fn=lambda time, state: state[0].sum())[0]

    @stage
    def compile(self):
        with torch.no_grad():
            return torchdiffeq.odeint(compile_by(Field()), ramp(3, 2), times(), method="rk4")

    @stage
    def backwards_in_time(self):
        with torch.no_grad():
            return torchdiffeq.odeint(Field(), ramp(3, 2), times().flip(0))

    @stage
    def double(self):
        with torch.no_grad():
            return torchdiffeq.odeint(Field().double(), ramp(3, 2).double(), times().double())
