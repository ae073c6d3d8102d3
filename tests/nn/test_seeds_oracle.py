"""The same seed gives the same numbers as in PyTorch: starting values, dropouts, random layers and parametrizations."""

from __future__ import annotations

import pytest

from tests.nn.oracle import same

pytestmark = pytest.mark.oracle

INITS = [
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {"a": 0.1}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("orthogonal_", {}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"mean": 3.0, "std": 0.5}),
    ("uniform_", {"a": 2, "b": 3}),
    ("normal_", {"mean": 1.0}),
]


@pytest.mark.parametrize(("name", "options"), INITS)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (40, 30), (4, 3, 3)])
def test_starting_values(name, options, shape):
    same(lambda torch: getattr(torch.nn.init, name)(torch.empty(*shape), **options), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "args"),
    [("sparse_", (10, 4), (0.3,)), ("eye_", (3, 4), ()), ("dirac_", (6, 2, 3), (2,)), ("constant_", (2, 2), (3.0,))],
)
def test_structured_starting_values(name, shape, args):
    same(lambda torch: getattr(torch.nn.init, name)(torch.empty(*shape), *args))


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_dropouts(name):
    shape = (7, 9, 8, 4, 2)[: 2 + int(name[7]) if name[-2:-1].isdigit() else 3]
    same(lambda torch: getattr(torch.nn.functional, name)(torch.ones(*shape), 0.4, True))


CALLS = {
    "rrelu": lambda torch: torch.nn.functional.rrelu(torch.randn(5, 5), training=True),
    "gumbel_softmax": lambda torch: torch.nn.functional.gumbel_softmax(torch.randn(5, 5), tau=0.5),
    "attention": lambda torch: torch.nn.MultiheadAttention(8, 2, dropout=0.3)(*[torch.ones(3, 2, 8)] * 3)[0],
    "encoder": lambda torch: torch.nn.TransformerEncoderLayer(8, 2, 16)(torch.ones(3, 2, 8)),
    "lstm": lambda torch: torch.nn.LSTM(3, 4, 3, dropout=0.4, bidirectional=True, proj_size=2)(torch.ones(2, 5, 3))[0],
    "fractional": lambda torch: torch.nn.FractionalMaxPool2d(2, 3)(torch.randn(2, 3, 8, 8)),
    "orthogonal": lambda torch: torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 5)).weight,
}


@pytest.mark.parametrize("name", CALLS)
def test_random_layers(name):
    same(CALLS[name], rtol=1e-4, atol=1e-5)
