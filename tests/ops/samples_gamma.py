"""Sample calls of the operators behind gamma, beta and Dirichlet distributions."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from tests.ops.samples import group, positive


@group
def _gamma_samples():
    for shape in ((3, 4), (0, 2), ()):
        concentration = positive(*shape)
        yield "_standard_gamma", concentration
        yield "_standard_gamma_grad", concentration, positive(*shape)
    yield "_standard_gamma", positive(4, 3).t()


@group
def _dirichlet_samples():
    concentration = positive(3, 4)
    yield "_sample_dirichlet", concentration
    drawn = rl.from_numpy(np.random.default_rng(5).dirichlet(np.ones(4), 3))
    yield "_dirichlet_grad", drawn, concentration, concentration.sum(-1, keepdim=True).expand(3, 4)
