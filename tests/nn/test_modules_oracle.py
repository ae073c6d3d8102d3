"""Every module against PyTorch's: printed form, parameters from the same seed, results and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.random import manual_seed
from tests.nn.oracle import arrays
from tests.nn.test_attention_oracle import copied, same

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

X = (3, 4, 5)
IMAGE = (2, 4, 6, 8)
VOLUME = (2, 4, 4, 5, 6)

# Name: how to build it, the shapes of its inputs.
MODULES = {
    "Identity": (lambda n: n.Identity(), X),
    "Linear": (lambda n: n.Linear(5, 7), X),
    "Linear_no_bias": (lambda n: n.Linear(5, 7, bias=False), X),
    "Bilinear": (lambda n: n.Bilinear(5, 6, 7), (3, 5), (3, 6)),
    "LayerNorm": (lambda n: n.LayerNorm((4, 5)), X),
    "LayerNorm_no_bias": (lambda n: n.LayerNorm(5, bias=False), X),
    "LayerNorm_plain": (lambda n: n.LayerNorm(5, elementwise_affine=False), X),
    "RMSNorm": (lambda n: n.RMSNorm(5), X),
    "GroupNorm": (lambda n: n.GroupNorm(2, 4), IMAGE),
    "LocalResponseNorm": (lambda n: n.LocalResponseNorm(2), IMAGE),
    "BatchNorm1d": (lambda n: n.BatchNorm1d(4), X),
    "BatchNorm1d_2d": (lambda n: n.BatchNorm1d(5, momentum=None), (3, 5)),
    "BatchNorm2d": (lambda n: n.BatchNorm2d(4), IMAGE),
    "BatchNorm2d_eval": (lambda n: n.BatchNorm2d(4).eval(), IMAGE),
    "BatchNorm2d_plain": (lambda n: n.BatchNorm2d(4, affine=False, track_running_stats=False), IMAGE),
    "BatchNorm3d": (lambda n: n.BatchNorm3d(4), VOLUME),
    "InstanceNorm1d": (lambda n: n.InstanceNorm1d(4), X),
    "InstanceNorm2d": (lambda n: n.InstanceNorm2d(4, affine=True, track_running_stats=True), IMAGE),
    "InstanceNorm2d_unbatched": (lambda n: n.InstanceNorm2d(4), (4, 6, 8)),
    "InstanceNorm3d": (lambda n: n.InstanceNorm3d(4), VOLUME),
    "Dropout_eval": (lambda n: n.Dropout(0.3).eval(), X),
    "Dropout1d_eval": (lambda n: n.Dropout1d(0.3).eval(), X),
    "Dropout2d_eval": (lambda n: n.Dropout2d(0.3).eval(), IMAGE),
    "Dropout3d_eval": (lambda n: n.Dropout3d(0.3).eval(), VOLUME),
    "AlphaDropout_eval": (lambda n: n.AlphaDropout(0.3).eval(), X),
    "ReLU": (lambda n: n.ReLU(), X),
    "ReLU_inplace": (lambda n: n.ReLU(inplace=True), X),
    "ReLU6": (lambda n: n.ReLU6(), X),
    "ReLU6_inplace": (lambda n: n.ReLU6(True), X),
    "LeakyReLU": (lambda n: n.LeakyReLU(0.3), X),
    "RReLU_eval": (lambda n: n.RReLU().eval(), X),
    "PReLU": (lambda n: n.PReLU(4), X),
    "ELU": (lambda n: n.ELU(), X),
    "SELU": (lambda n: n.SELU(), X),
    "CELU": (lambda n: n.CELU(), X),
    "GELU": (lambda n: n.GELU(), X),
    "GELU_tanh": (lambda n: n.GELU("tanh"), X),
    "SiLU": (lambda n: n.SiLU(), X),
    "Mish": (lambda n: n.Mish(), X),
    "Hardtanh": (lambda n: n.Hardtanh(-0.5, 0.7), X),
    "Hardswish": (lambda n: n.Hardswish(), X),
    "Hardsigmoid": (lambda n: n.Hardsigmoid(), X),
    "Softplus": (lambda n: n.Softplus(2.0), X),
    "Softsign": (lambda n: n.Softsign(), X),
    "Tanh": (lambda n: n.Tanh(), X),
    "Sigmoid": (lambda n: n.Sigmoid(), X),
    "LogSigmoid": (lambda n: n.LogSigmoid(), X),
    "Tanhshrink": (lambda n: n.Tanhshrink(), X),
    "Hardshrink": (lambda n: n.Hardshrink(), X),
    "Softshrink": (lambda n: n.Softshrink(0.25), X),
    "Threshold": (lambda n: n.Threshold(0.1, 20.0), X),
    "GLU": (lambda n: n.GLU(1), X),
    "Softmax": (lambda n: n.Softmax(dim=1), X),
    "LogSoftmax": (lambda n: n.LogSoftmax(dim=-1), X),
    "Softmin": (lambda n: n.Softmin(dim=0), X),
    "Softmax2d": (lambda n: n.Softmax2d(), IMAGE),
    "Conv1d": (lambda n: n.Conv1d(4, 6, 3, padding=1), (2, 4, 9)),
    "Conv1d_circular": (lambda n: n.Conv1d(4, 6, 3, padding=2, padding_mode="circular"), (2, 4, 9)),
    "Conv2d": (lambda n: n.Conv2d(4, 6, 3), IMAGE),
    "Conv2d_options": (lambda n: n.Conv2d(4, 6, (3, 2), 2, (1, 0), 1, 2, False), IMAGE),
    "Conv2d_same_reflect": (lambda n: n.Conv2d(4, 6, 4, padding="same", padding_mode="reflect"), IMAGE),
    "Conv3d": (lambda n: n.Conv3d(4, 3, 2, dilation=(1, 2, 1)), VOLUME),
    "ConvTranspose1d": (lambda n: n.ConvTranspose1d(4, 6, 3, 2), (2, 4, 9)),
    "ConvTranspose2d": (lambda n: n.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), IMAGE),
    "ConvTranspose3d": (lambda n: n.ConvTranspose3d(4, 3, 2), VOLUME),
    "MaxPool1d": (lambda n: n.MaxPool1d(3, 2), X),
    "MaxPool2d": (lambda n: n.MaxPool2d(2), IMAGE),
    "MaxPool3d": (lambda n: n.MaxPool3d(2, padding=1), VOLUME),
    "AvgPool1d": (lambda n: n.AvgPool1d(2), X),
    "AvgPool2d": (lambda n: n.AvgPool2d((3, 2), padding=1), IMAGE),
    "AvgPool3d": (lambda n: n.AvgPool3d(2), VOLUME),
    "LPPool1d": (lambda n: n.LPPool1d(2, 3), X),
    "LPPool2d": (lambda n: n.LPPool2d(2, 3), IMAGE),
    "AdaptiveAvgPool1d": (lambda n: n.AdaptiveAvgPool1d(3), X),
    "AdaptiveAvgPool2d": (lambda n: n.AdaptiveAvgPool2d((3, None)), IMAGE),
    "AdaptiveAvgPool3d": (lambda n: n.AdaptiveAvgPool3d(2), VOLUME),
    "AdaptiveMaxPool1d": (lambda n: n.AdaptiveMaxPool1d(3), X),
    "AdaptiveMaxPool2d": (lambda n: n.AdaptiveMaxPool2d((5, 3), return_indices=True), IMAGE),
    "AdaptiveMaxPool3d": (lambda n: n.AdaptiveMaxPool3d(2), VOLUME),
    "Flatten": (lambda n: n.Flatten(), IMAGE),
    "Unflatten": (lambda n: n.Unflatten(1, (2, 2)), IMAGE),
    "ConstantPad1d": (lambda n: n.ConstantPad1d((1, 2), 3.5), X),
    "ConstantPad2d": (lambda n: n.ConstantPad2d(2, 3.5), IMAGE),
    "ZeroPad2d": (lambda n: n.ZeroPad2d((1, 0, 2, 1)), IMAGE),
    "ReflectionPad1d": (lambda n: n.ReflectionPad1d(2), X),
    "ReflectionPad2d": (lambda n: n.ReflectionPad2d((1, 0, 2, 1)), IMAGE),
    "ReplicationPad2d": (lambda n: n.ReplicationPad2d(2), IMAGE),
    "ReplicationPad3d": (lambda n: n.ReplicationPad3d(1), VOLUME),
    "CircularPad2d": (lambda n: n.CircularPad2d(2), IMAGE),
    "PixelShuffle": (lambda n: n.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": (lambda n: n.PixelUnshuffle(2), IMAGE),
    "ChannelShuffle": (lambda n: n.ChannelShuffle(2), IMAGE),
    "Upsample": (lambda n: n.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "Upsample_size": (lambda n: n.Upsample((5, 5)), IMAGE),
    "UpsamplingNearest2d": (lambda n: n.UpsamplingNearest2d(scale_factor=2), IMAGE),
    "UpsamplingBilinear2d": (lambda n: n.UpsamplingBilinear2d(size=(5, 5)), IMAGE),
    "Unfold": (lambda n: n.Unfold(2), IMAGE),
    "Fold": (lambda n: n.Fold((3, 3), 2), (2, 8, 4)),
    "CosineSimilarity": (lambda n: n.CosineSimilarity(), X, X),
    "PairwiseDistance": (lambda n: n.PairwiseDistance(), X, X),
    "MSELoss": (lambda n: n.MSELoss(), X, X),
    "L1Loss": (lambda n: n.L1Loss(reduction="sum"), X, X),
    "SmoothL1Loss": (lambda n: n.SmoothL1Loss(), X, X),
    "HuberLoss": (lambda n: n.HuberLoss(), X, X),
    "BCEWithLogitsLoss": (lambda n: n.BCEWithLogitsLoss(), X, X),
    "KLDivLoss": (lambda n: n.KLDivLoss(log_target=True), X, X),
    "PoissonNLLLoss": (lambda n: n.PoissonNLLLoss(), X, X),
    "CrossEntropyLoss": (lambda n: n.CrossEntropyLoss(label_smoothing=0.1), X, X),
    "TripletMarginLoss": (lambda n: n.TripletMarginLoss(), X, X, X),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    torch = pytest.importorskip("torch")
    build, *shapes = MODULES[name]
    mine, theirs = copied(torch, lambda library: build(library.nn))
    assert repr(mine) == repr(theirs)
    loose = {"rtol": 1e-7, "atol": 1e-8}
    same(mine, theirs, lambda module, library, *inputs: module(*inputs), *arrays(*shapes), **loose)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[key].numpy(), value.numpy(), **loose)


SEEDED = {
    "Linear": lambda n: n.Linear(50, 70),
    "Bilinear": lambda n: n.Bilinear(5, 6, 7),
    "Embedding": lambda n: n.Embedding(20, 30, padding_idx=3),
    "EmbeddingBag": lambda n: n.EmbeddingBag(20, 3),
    "Conv2d": lambda n: n.Conv2d(4, 6, 3),
    "ConvTranspose2d": lambda n: n.ConvTranspose2d(4, 6, 3),
    "MultiheadAttention": lambda n: n.MultiheadAttention(16, 2, add_bias_kv=True),
    "MultiheadAttention_sizes": lambda n: n.MultiheadAttention(16, 2, kdim=3, vdim=5),
    "TransformerEncoderLayer": lambda n: n.TransformerEncoderLayer(16, 2, 32),
    "Transformer": lambda n: n.Transformer(16, 2, 1, 1, 32),
    "Sequential": lambda n: n.Sequential(n.Linear(3, 4), n.BatchNorm1d(4), n.PReLU(), n.Linear(4, 2)),
}


@pytest.mark.parametrize("name", SEEDED)
def test_same_seed_gives_the_same_parameters(name):
    torch = pytest.importorskip("torch")
    torch.manual_seed(11)
    manual_seed(11)
    theirs, mine = SEEDED[name](torch.nn), SEEDED[name](nn)
    assert repr(mine) == repr(theirs)
    expected = theirs.state_dict()
    assert list(mine.state_dict()) == list(expected)
    for key, value in mine.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[key].numpy(), rtol=1e-6, atol=1e-7, err_msg=key)


INITIALISERS = {
    "uniform_": lambda init, t: init.uniform_(t, -1.0, 2.0),
    "normal_": lambda init, t: init.normal_(t, 1.0, 2.0),
    "constant_": lambda init, t: init.constant_(t, 0.3),
    "eye_": lambda init, t: init.eye_(t),
    "xavier_uniform_": lambda init, t: init.xavier_uniform_(t, 1.5),
    "xavier_normal_": lambda init, t: init.xavier_normal_(t),
    "kaiming_uniform_": lambda init, t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
    "kaiming_normal_": lambda init, t: init.kaiming_normal_(t, 0.2),
    "trunc_normal_": lambda init, t: init.trunc_normal_(t, 0.5, 1.5, -1.0, 2.0),
    "orthogonal_": lambda init, t: init.orthogonal_(t, 1.5),
    "sparse_": lambda init, t: init.sparse_(t, 0.4),
}


@pytest.mark.parametrize("shape", [(12, 20), (20, 12)])
@pytest.mark.parametrize("name", INITIALISERS)
def test_initialiser(name, shape):
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    manual_seed(3)
    expected = INITIALISERS[name](torch.nn.init, torch.empty(shape)).numpy()
    filled = INITIALISERS[name](nn.init, rushlight.empty(shape))
    np.testing.assert_allclose(filled.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_dirac_and_gains():
    torch = pytest.importorskip("torch")
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3, 3), 2), ((2, 3, 3, 3, 3), 1)):
        expected = torch.nn.init.dirac_(torch.empty(shape), groups).numpy()
        np.testing.assert_array_equal(nn.init.dirac_(rushlight.empty(shape), groups).numpy(), expected)
    for name in ("linear", "conv2d", "tanh", "relu", "selu", "leaky_relu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


@pytest.mark.parametrize("name, shape", [
    ("Dropout", (4, 5, 6)), ("Dropout1d", (4, 5, 6)), ("Dropout2d", (4, 5, 6, 2)), ("Dropout3d", (4, 5, 6, 2, 2)),
    ("AlphaDropout", (4, 5, 6)), ("FeatureAlphaDropout", (4, 5, 6)),
])  # fmt: skip
def test_dropout_keeps_the_promised_share(name, shape):
    manual_seed(0)
    layer = getattr(nn, name)(0.3)
    x = rushlight.ones(*[100 * shape[0], *shape[1:]])
    result = layer(x).numpy()
    dropped = result.min()
    assert abs((result == dropped).mean() - 0.3) < 0.04
    if name.startswith("Dropout"):
        assert dropped == 0 and np.allclose(result.max(), 1 / 0.7)
    if name not in ("Dropout", "AlphaDropout"):
        flat = result.reshape(*result.shape[:2], -1)
        assert (flat == flat[:, :, :1]).all()


def test_sequences_of_rrelu_match():
    torch = pytest.importorskip("torch")
    (x,) = arrays((7, 9))
    torch.manual_seed(5)
    manual_seed(5)
    expected = torch.nn.functional.rrelu(torch.from_numpy(x), training=True).numpy()
    np.testing.assert_allclose(nn.functional.rrelu(rushlight.from_numpy(x), training=True).numpy(), expected)


def test_gradients_are_clipped_alike():
    torch = pytest.importorskip("torch")
    gradients = arrays((3, 4), (5,))
    for norm_type in (1.0, 2.0, 3.0, float("inf")):
        found = []
        for library in (torch, rushlight):
            parameters = [library.nn.Parameter(library.from_numpy(np.zeros_like(g))) for g in gradients]
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = library.from_numpy(gradient.copy())
            total = library.nn.utils.clip_grad_norm_(parameters, 0.5, norm_type)
            library.nn.utils.clip_grad_value_(parameters, 0.1)
            found.append([float(total), *[p.grad.numpy() for p in parameters]])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_trunc_normal_far_from_the_mean():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    manual_seed(3)
    expected = torch.nn.init.trunc_normal_(torch.empty(30, 20), 0.0, 1.0, 1.0, 2.0).numpy()
    filled = nn.init.trunc_normal_(rushlight.empty(30, 20), 0.0, 1.0, 1.0, 2.0)
    np.testing.assert_allclose(filled.numpy(), expected, rtol=2e-5, atol=2e-6)
