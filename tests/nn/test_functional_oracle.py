"""Functionals other than losses, against PyTorch: values and gradients, in float64."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.nn.oracle import agree, arrays

pytestmark = pytest.mark.oracle

# Corners and extremes of the activation functions, beside ordinary numbers.
CORNERS = np.array([-1e3, -60.0, -6.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, 25.0, 60.0, 1e3])

ACTIVATIONS = {
    "relu": lambda F, x: F.relu(x),
    "relu_": lambda F, x: F.relu(x, inplace=True),
    "relu6": lambda F, x: F.relu6(x),
    "relu6_": lambda F, x: F.relu6(x, True),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.2),
    "leaky_relu_": lambda F, x: F.leaky_relu(x, 0.2, True),
    "rrelu": lambda F, x: F.rrelu(x, 0.1, 0.3),
    "elu": lambda F, x: F.elu(x, 1.5),
    "elu_": lambda F, x: F.elu(x, 1.5, True),
    "selu": lambda F, x: F.selu(x),
    "celu": lambda F, x: F.celu(x, 0.7),
    "celu_": lambda F, x: F.celu(x, 0.7, True),
    "gelu": lambda F, x: F.gelu(x),
    "gelu_tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "silu": lambda F, x: F.silu(x),
    "silu_": lambda F, x: F.silu(x, True),
    "mish": lambda F, x: F.mish(x),
    "mish_": lambda F, x: F.mish(x, True),
    "hardtanh": lambda F, x: F.hardtanh(x, -0.5, 3.0),
    "hardtanh_": lambda F, x: F.hardtanh(x, -0.5, 3.0, True),
    "hardswish": lambda F, x: F.hardswish(x),
    "hardswish_": lambda F, x: F.hardswish(x, True),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x),
    "softplus": lambda F, x: F.softplus(x),
    "softplus_beta": lambda F, x: F.softplus(x, 2.0, 10.0),
    "softsign": lambda F, x: F.softsign(x),
    "tanh": lambda F, x: F.tanh(x),
    "sigmoid": lambda F, x: F.sigmoid(x),
    "logsigmoid": lambda F, x: F.logsigmoid(x),
    "tanhshrink": lambda F, x: F.tanhshrink(x),
    "hardshrink": lambda F, x: F.hardshrink(x),
    "softshrink": lambda F, x: F.softshrink(x),
    "threshold": lambda F, x: F.threshold(x, 0.5, 7.0),
    "threshold_": lambda F, x: F.threshold(x, 0.5, 7.0, True),
    "softmax": lambda F, x: F.softmax(x, -1),
    "log_softmax": lambda F, x: F.log_softmax(x, 0),
    "softmin": lambda F, x: F.softmin(x, 0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    function = ACTIVATIONS[name]
    # PyTorch keeps the constants of these in single precision.
    tolerance = {"rtol": 1e-7, "atol": 1e-8} if name.startswith(("celu", "hardsi", "hardsw")) else {}
    agree(lambda torch, x: function(torch.nn.functional, x), CORNERS, **tolerance)
    agree(lambda torch, x: function(torch.nn.functional, x), *arrays((3, 4, 5)), **tolerance)


@pytest.mark.parametrize("name", ["elu", "selu", "softplus", "logsigmoid", "mish", "hardswish", "gelu", "relu6"])
def test_activation_of_infinities_and_nan(name):
    values = np.array([-np.inf, np.inf, np.nan])
    agree(lambda torch, x: ACTIVATIONS[name](torch.nn.functional, x), values, gradients=False)


def test_prelu_and_glu():
    (x,) = arrays((2, 4, 3))
    agree(lambda torch, x, w: torch.nn.functional.prelu(x, w), x, np.array([0.3]))
    agree(lambda torch, x, w: torch.nn.functional.prelu(x, w), x, *arrays((4,), seed=1))
    agree(lambda torch, x, w: torch.nn.functional.prelu(x, w), *arrays((5,), (1,)))
    agree(lambda torch, x: torch.nn.functional.glu(x, 1), x)
    agree(
        lambda torch, x: torch.nn.functional.softmax(x, 1, dtype=torch.float64),
        x.astype(np.float32),
        rtol=1e-6,
        atol=1e-7,
    )


LINEAR = {
    "2d": ((3, 4), (5, 4), (5,)),
    "3d": ((2, 3, 4), (5, 4), (5,)),
    "1d": ((4,), (5, 4), (5,)),
    "empty": ((0, 4), (5, 4), (5,)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear(name):
    inputs = arrays(*LINEAR[name])
    agree(lambda torch, x, w, b: torch.nn.functional.linear(x, w, b), *inputs)
    agree(lambda torch, x, w: torch.nn.functional.linear(x, w), *inputs[:2])


def test_linear_with_a_vector_as_weight():
    agree(lambda torch, x, w: torch.nn.functional.linear(x, w), *arrays((3, 4), (4,)))


def test_linear_of_a_transposed_input():
    agree(lambda torch, x, w, b: torch.nn.functional.linear(x.transpose(0, 1), w, b), *arrays((2, 3, 4), (5, 4), (5,)))


def test_bilinear():
    agree(lambda torch, *t: torch.nn.functional.bilinear(*t), *arrays((2, 3, 4), (2, 3, 5), (6, 4, 5), (6,)))
    agree(lambda torch, *t: torch.nn.functional.bilinear(*t), *arrays((2, 4), (2, 5), (6, 4, 5)))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"padding_idx": -1}, {"scale_grad_by_freq": True}])
def test_embedding(options):
    indices = np.array([[0, 2, 2], [4, 0, 2]])
    agree(lambda torch, i, w: torch.nn.functional.embedding(i, w, **options), indices, *arrays((5, 3)))


def test_embedding_limits_norms_in_place():
    def embed(torch, indices, weight):
        return torch.nn.functional.embedding(indices, weight, max_norm=1.0), weight

    agree(embed, np.array([0, 2, 2]), *arrays((5, 3)), gradients=False)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    (weight,) = arrays((6, 3))
    flat, offsets = np.array([0, 2, 5, 1, 1]), np.array([0, 2, 2])

    def bag(torch, i, w, o, **options):
        return torch.nn.functional.embedding_bag(i, w, o, mode=mode, **options)

    agree(bag, flat, weight, offsets)
    agree(lambda *t: bag(*t, padding_idx=1), flat, weight, offsets)
    agree(lambda *t: bag(*t, include_last_offset=True), flat, weight, np.array([0, 2, 5]))
    if mode == "sum":
        agree(lambda torch, i, w, o, s: bag(torch, i, w, o, per_sample_weights=s), flat, weight, offsets, *arrays((5,)))


@pytest.mark.parametrize("padding_idx", [None, 1, -1])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags_of_one_size(mode, padding_idx):
    (weight,) = arrays((6, 3))

    def bag(torch, i, w, s=None):
        return torch.nn.functional.embedding_bag(i, w, mode=mode, padding_idx=padding_idx, per_sample_weights=s)

    for indices in (np.array([[0, 2, 5], [1, 1, 1], [5, 1, 0]]), np.zeros((0, 3), np.int64)):
        agree(bag, indices, weight)
    if mode == "sum":
        agree(bag, np.array([[0, 2, 5], [1, 1, 4]]), weight, *arrays((2, 3)))


def test_one_hot():
    agree(lambda torch, i: torch.nn.functional.one_hot(i), np.array([[0, 3], [1, 1]]), gradients=False)
    agree(lambda torch, i: torch.nn.functional.one_hot(i, 6), np.array([0, 3]), gradients=False)


NORMALISATIONS = {
    "layer_norm": (lambda F, x, w, b: F.layer_norm(x, (4, 5), w, b), ((2, 3, 4, 5), (4, 5), (4, 5))),
    "layer_norm_plain": (lambda F, x: F.layer_norm(x, (5,), eps=1e-3), ((2, 3, 5),)),
    "layer_norm_weight": (lambda F, x, w: F.layer_norm(x, (5,), w), ((2, 3, 5), (5,))),
    "rms_norm": (lambda F, x, w: F.rms_norm(x, (5,), w, 1e-4), ((2, 3, 5), (5,))),
    "rms_norm_plain": (lambda F, x: F.rms_norm(x, (3, 5)), ((2, 3, 5),)),
    "group_norm": (lambda F, x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 4, 5), (6,), (6,))),
    "group_norm_plain": (lambda F, x: F.group_norm(x, 2), ((3, 4),)),
    "instance_norm": (lambda F, x, w, b: F.instance_norm(x, weight=w, bias=b), ((2, 3, 4, 5), (3,), (3,))),
    "batch_norm": (lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True), ((4, 3, 2, 5), (3,), (3,))),
    "batch_norm_2d": (lambda F, x: F.batch_norm(x, None, None, training=True), ((4, 3),)),
    "batch_norm_3d": (lambda F, x: F.batch_norm(x, None, None, training=True), ((4, 3, 6),)),
    "local_response_norm": (lambda F, x: F.local_response_norm(x, 3, 0.1, 0.6, 2.0), ((2, 6, 4, 3),)),
    "local_response_norm_3d": (lambda F, x: F.local_response_norm(x, 2), ((2, 6, 4),)),
    "normalize": (lambda F, x: F.normalize(x), ((3, 4),)),
    "normalize_p": (lambda F, x: F.normalize(x, p=3, dim=0), ((3, 4),)),
}


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_normalisation(name):
    function, shapes = NORMALISATIONS[name]
    agree(lambda torch, *t: function(torch.nn.functional, *t), *arrays(*shapes))


def test_normalize_of_zeros():
    agree(lambda torch, x: torch.nn.functional.normalize(x), np.zeros((2, 3)))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_batch_norm_and_running_statistics(training, shape):
    x, mean, weight, bias = arrays(shape, (3,), (3,), (3,))
    variance = np.array([0.5, 1.0, 2.0])

    def normalise(torch, x, mean, variance, weight, bias):
        mean, variance = mean.detach().clone(), variance.detach().clone()
        result = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, training, 0.3)
        return result, mean, variance

    agree(normalise, x, mean, variance, weight, bias)


def test_instance_norm_updates_running_statistics():
    def normalise(torch, x, mean, variance):
        mean, variance = mean.detach().clone(), variance.detach().clone()
        return torch.nn.functional.instance_norm(x, mean, variance, momentum=0.2), mean, variance

    agree(normalise, *arrays((2, 3, 4, 5), (3,)), np.array([0.5, 1.0, 2.0]))


CONVOLUTIONS = {
    "conv1d": ("conv1d", (2, 4, 9), (6, 4, 3), 6, {"stride": 2, "padding": 1}),
    "conv1d_groups": ("conv1d", (2, 4, 9), (6, 2, 3), 6, {"groups": 2, "dilation": 2}),
    "conv1d_same": ("conv1d", (2, 4, 9), (6, 4, 4), 6, {"padding": "same"}),
    "conv1d_unbatched": ("conv1d", (4, 9), (6, 4, 3), 6, {}),
    "conv2d": ("conv2d", (2, 3, 8, 7), (4, 3, 3, 2), 4, {}),
    "conv2d_options": ("conv2d", (2, 4, 8, 9), (6, 2, 3, 3), 6,
                       {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}),
    "conv2d_depthwise": ("conv2d", (2, 4, 6, 6), (4, 1, 3, 3), 4, {"groups": 4, "padding": 1}),
    "conv2d_same": ("conv2d", (2, 3, 8, 7), (4, 3, 4, 3), 4, {"padding": "same", "dilation": (1, 2)}),
    "conv2d_valid": ("conv2d", (2, 3, 8, 7), (4, 3, 3, 3), 4, {"padding": "valid", "stride": 2}),
    "conv2d_unbatched": ("conv2d", (3, 8, 7), (4, 3, 3, 2), 4, {"padding": 1}),
    "conv3d": ("conv3d", (2, 2, 4, 5, 6), (3, 2, 2, 3, 2), 3, {"stride": (1, 2, 1), "padding": 1}),
    "transpose1d": ("conv_transpose1d", (2, 4, 5), (4, 3, 3), 3, {"stride": 2, "padding": 1, "output_padding": 1}),
    "transpose2d": ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 3, 2), 3, {}),
    "transpose2d_options": ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 3, 2), 6,
                            {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2}),
    "transpose3d": ("conv_transpose3d", (1, 2, 3, 4, 3), (2, 3, 2, 2, 2), 3, {"stride": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    function, shape, weight_shape, out, options = CONVOLUTIONS[name]
    inputs = arrays(shape, weight_shape, (out,))
    agree(lambda torch, x, w, b: getattr(torch.nn.functional, function)(x, w, b, **options), *inputs)
    agree(lambda torch, x, w: getattr(torch.nn.functional, function)(x, w, **options), *inputs[:2])


POOLS = {
    "max1d": (lambda F, x: F.max_pool1d(x, 3, 2, 1, 2), (2, 3, 11)),
    "max1d_indices": (lambda F, x: F.max_pool1d(x, 3, return_indices=True), (2, 3, 11)),
    "max1d_unbatched": (lambda F, x: F.max_pool1d(x, 2), (3, 11)),
    "max2d": (lambda F, x: F.max_pool2d(x, 2), (2, 3, 6, 8)),
    "max2d_options": (lambda F, x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), (1, 2), True), (2, 3, 7, 8)),
    "max2d_indices": (lambda F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), (2, 3, 7, 8)),
    "max2d_unbatched": (lambda F, x: F.max_pool2d(x, 2), (3, 6, 8)),
    "max3d": (lambda F, x: F.max_pool3d(x, 2), (2, 2, 4, 5, 6)),
    "max3d_options": (lambda F, x: F.max_pool3d(x, 3, 2, 1, 1, True, True), (2, 2, 4, 5, 6)),
    "avg1d": (lambda F, x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 11)),
    "avg1d_options": (lambda F, x: F.avg_pool1d(x, 3, 2, 1, True, False), (2, 3, 10)),
    "avg2d": (lambda F, x: F.avg_pool2d(x, 2), (2, 3, 6, 8)),
    "avg2d_options": (lambda F, x: F.avg_pool2d(x, (3, 2), 2, (1, 1), True, False), (2, 3, 6, 7)),
    "avg2d_divisor": (lambda F, x: F.avg_pool2d(x, 3, 2, 1, True, True, 5), (2, 3, 6, 7)),
    "avg2d_unbatched": (lambda F, x: F.avg_pool2d(x, 2), (3, 6, 8)),
    "avg3d": (lambda F, x: F.avg_pool3d(x, 2), (2, 2, 4, 5, 6)),
    "avg3d_options": (lambda F, x: F.avg_pool3d(x, 3, 2, 1, True, False), (2, 2, 4, 5, 6)),
    "avg3d_ceil": (lambda F, x: F.avg_pool3d(x, 3, 2, 1, True, True), (2, 2, 4, 5, 6)),
    "avg3d_divisor": (lambda F, x: F.avg_pool3d(x, 2, divisor_override=3), (2, 2, 4, 5, 6)),
    "lp1d": (lambda F, x: F.lp_pool1d(x, 2, 3), (2, 3, 9)),
    "lp2d": (lambda F, x: F.lp_pool2d(x, 2, 3, 2), (2, 3, 9, 8)),
    "adaptive_avg1d": (lambda F, x: F.adaptive_avg_pool1d(x, 4), (2, 3, 10)),
    "adaptive_avg2d_one": (lambda F, x: F.adaptive_avg_pool2d(x, 1), (2, 3, 5, 7)),
    "adaptive_avg2d_divides": (lambda F, x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 6, 8)),
    "adaptive_avg2d": (lambda F, x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 7, 8)),
    "adaptive_avg2d_none": (lambda F, x: F.adaptive_avg_pool2d(x, (None, 3)), (2, 3, 7, 8)),
    "adaptive_avg2d_larger": (lambda F, x: F.adaptive_avg_pool2d(x, (5, 9)), (2, 3, 3, 4)),
    "adaptive_avg2d_unbatched": (lambda F, x: F.adaptive_avg_pool2d(x, 3), (3, 7, 8)),
    "adaptive_avg3d": (lambda F, x: F.adaptive_avg_pool3d(x, (2, 3, 2)), (2, 3, 4, 5, 6)),
    "adaptive_max1d": (lambda F, x: F.adaptive_max_pool1d(x, 4, return_indices=True), (2, 3, 10)),
    "adaptive_max2d": (lambda F, x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), (2, 3, 7, 8)),
    "adaptive_max2d_unbatched": (lambda F, x: F.adaptive_max_pool2d(x, 2), (3, 7, 8)),
    "adaptive_max3d": (lambda F, x: F.adaptive_max_pool3d(x, 2, return_indices=True), (2, 3, 4, 5, 6)),
    "unpool1d": (lambda F, x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), (2, 3, 8)),
    "unpool2d": (
        lambda F, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(7, 8)), (2, 3, 7, 8)),
    "unpool3d": (lambda F, x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2), (2, 3, 4, 4, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name):
    function, shape = POOLS[name]
    agree(lambda torch, x: function(torch.nn.functional, x), *arrays(shape))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@pytest.mark.parametrize("shape, pad", [((2, 3, 5), (2, 1)), ((2, 3, 5, 6), (1, 2, 3, 0)),
                                        ((2, 3, 4, 5, 6), (1, 2, 2, 1, 1, 1)),
                                        ((3, 5), (2, 1)), ((2, 3, 5, 6), (-1, 2, 3, -2))])  # fmt: skip
def test_pad(mode, shape, pad):
    agree(lambda torch, x: torch.nn.functional.pad(x, pad, mode), *arrays(shape))


def test_pad_with_a_value():
    agree(lambda torch, x: torch.nn.functional.pad(x, (1, 0, 0, 2), value=-1.5), *arrays((2, 3)))


VISION = {
    "pixel_shuffle": (lambda F, x: F.pixel_shuffle(x, 2), (2, 8, 3, 4)),
    "pixel_unshuffle": (lambda F, x: F.pixel_unshuffle(x, 2), (2, 2, 6, 4)),
    "channel_shuffle": (lambda F, x: F.channel_shuffle(x, 2), (2, 6, 3, 4)),
    "unfold": (lambda F, x: F.unfold(x, (2, 3), (2, 1), (1, 0), (1, 2)), (2, 3, 6, 7)),
    "unfold_unbatched": (lambda F, x: F.unfold(x, 2), (3, 6, 7)),
    "fold": (lambda F, x: F.fold(x, (5, 6), (2, 3), padding=(1, 0), stride=(1, 2)), (2, 12, 12)),
    "fold_unbatched": (lambda F, x: F.fold(x, (3, 3), 2), (8, 4)),
    "nearest1d": (lambda F, x: F.interpolate(x, 7), (2, 3, 5)),
    "nearest2d": (lambda F, x: F.interpolate(x, scale_factor=2), (2, 3, 4, 5)),
    "nearest2d_scales": (lambda F, x: F.interpolate(x, scale_factor=(1.7, 0.6)), (2, 3, 4, 5)),
    "nearest3d": (lambda F, x: F.interpolate(x, (3, 4, 7)), (2, 3, 4, 5, 6)),
    "nearest_exact": (lambda F, x: F.interpolate(x, (7, 3), mode="nearest-exact"), (2, 3, 4, 5)),
    "area": (lambda F, x: F.interpolate(x, (3, 2), mode="area"), (2, 3, 4, 5)),
    "linear": (lambda F, x: F.interpolate(x, 9, mode="linear"), (2, 3, 5)),
    "bilinear": (lambda F, x: F.interpolate(x, (7, 9), mode="bilinear"), (2, 3, 4, 5)),
    "bilinear_corners": (lambda F, x: F.interpolate(x, (7, 1), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    "bilinear_scale": (lambda F, x: F.interpolate(x, scale_factor=1.6, mode="bilinear"), (2, 3, 4, 5)),
    "bilinear_recomputed": (
        lambda F, x: F.interpolate(x, scale_factor=1.6, mode="bilinear", recompute_scale_factor=True), (2, 3, 4, 5)),
    "bilinear_down": (lambda F, x: F.interpolate(x, (2, 3), mode="bilinear"), (2, 3, 8, 9)),
    "bicubic": (lambda F, x: F.interpolate(x, (7, 9), mode="bicubic"), (2, 3, 4, 5)),
    "bicubic_corners": (lambda F, x: F.interpolate(x, (7, 3), mode="bicubic", align_corners=True), (2, 3, 4, 5)),
    "trilinear": (lambda F, x: F.interpolate(x, (5, 3, 7), mode="trilinear"), (2, 3, 4, 5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", VISION)
def test_vision(name):
    function, shape = VISION[name]
    agree(lambda torch, x: function(torch.nn.functional, x), *arrays(shape))


def test_softplus_of_halves_whose_exponentials_are_infinite():
    F, x = rushlight.nn.functional, rushlight.tensor([-3.0, 0.5, 11.0, 12.0, 19.5, 21.0])
    for beta in (1.0, 0.5):
        assert F.softplus(x.half(), beta).tolist() == F.softplus(x.half().float(), beta).half().tolist()


def test_what_fold_gives_can_be_viewed():
    agree(lambda torch, x: torch.nn.functional.fold(x, (5, 6), (2, 3), padding=(1, 0), stride=(1, 2)).view(2, -1), *arrays((2, 12, 12)))


def test_distances():
    x, y = arrays((3, 4, 5), (3, 4, 5))
    agree(lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y), x, y)
    agree(lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y, dim=-1, eps=1.0), x * 0.2, y[:1])
    agree(lambda torch, x, y: torch.nn.functional.pairwise_distance(x, y), x, y)
    agree(lambda torch, x, y: torch.nn.functional.pairwise_distance(x, y, 1, keepdim=True), x, y)
    agree(lambda torch, x, y: torch.nn.functional.pairwise_distance(x, y, 3), x, y)
