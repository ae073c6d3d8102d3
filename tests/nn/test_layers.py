"""Layers by their definitions in NumPy, and their errors; needs no PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ops.modes import DispatchMode

F = nn.functional


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


class Recorder(DispatchMode):
    """Notes the names of the operators that run."""

    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, op, types, args, kwargs):
        self.names.append(op._schema.name)
        return op(*args, **kwargs)


def operators(function, *args) -> list[str]:
    with torch.no_grad(), Recorder() as recorder:
        function(*args)
    return recorder.names


def test_what_layers_decompose_into():
    x = torch.randn(2, 3, 4)
    assert operators(nn.Linear(4, 5), x) == ["permute", "view", "addmm", "view"]
    assert operators(nn.Linear(4, 5), x[0]) == ["permute", "addmm"]
    assert operators(nn.LayerNorm(4), x) == ["native_layer_norm"]
    assert operators(nn.Softmax(-1), x) == ["_softmax"]
    image = torch.randn(1, 4, 6, 6)
    assert operators(nn.Conv2d(4, 2, 3), image) == ["convolution"]
    assert operators(nn.BatchNorm2d(4).eval(), image) == ["_native_batch_norm_legit_no_training"]
    assert operators(nn.MaxPool2d(2), image) == ["max_pool2d_with_indices"]
    assert operators(nn.AdaptiveAvgPool2d(3), image) == ["_adaptive_avg_pool2d"]
    assert operators(F.scaled_dot_product_attention, image, image, image) == [
        "_scaled_dot_product_flash_attention_for_cpu"
    ]


def test_linear_is_a_product():
    layer = nn.Linear(4, 5).double()
    x = normal(2, 3, 4)
    expected = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), expected)
    assert sum(p.numel() for p in layer.parameters()) == 25
    bound = 1 / math.sqrt(4)
    assert layer.weight.abs().max().item() <= bound and layer.bias.abs().max().item() <= bound


def test_layer_norm_normalises():
    y = nn.LayerNorm(50).double()(normal(4, 50) * 7 + 3).detach().numpy()
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(-1), 1, atol=1e-4)


def test_attention_is_a_weighted_mean():
    q, k, v = normal(2, 3, 4, 8), normal(2, 3, 5, 8, seed=1), normal(2, 3, 5, 8, seed=2)
    scores = np.exp(q.numpy() @ k.numpy().swapaxes(-1, -2) / math.sqrt(8))
    expected = scores / scores.sum(-1, keepdims=True) @ v.numpy()
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v).numpy(), expected)
    uneven = F.scaled_dot_product_attention(q, k, v[..., :6])
    np.testing.assert_allclose(uneven.numpy(), expected[..., :6])


def test_attention_dropout_takes_the_explicit_way():
    q = torch.randn(2, 3, 4, 8)
    assert "native_dropout" in operators(lambda: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5))


def test_cross_entropy_is_log_of_softmax():
    x = normal(5, 4)
    target = torch.tensor([0, 3, 1, 2, 2])
    probabilities = np.exp(x.numpy()) / np.exp(x.numpy()).sum(1, keepdims=True)
    expected = -np.log(probabilities[np.arange(5), target.numpy()]).mean()
    assert F.cross_entropy(x, target).item() == pytest.approx(expected)


def test_embedding_padding_row_starts_at_zero_and_stays():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.padding_idx == 4 and not layer.weight[4].any()
    layer(torch.tensor([4, 0])).sum().backward()
    assert layer.weight.grad[4].tolist() == [0, 0, 0] and layer.weight.grad[0].tolist() == [1, 1, 1]
    frozen = nn.Embedding.from_pretrained(torch.ones(2, 3))
    assert not frozen.weight.requires_grad


def test_batch_norm_records_and_uses_running_statistics():
    layer = nn.BatchNorm1d(3).double()
    x = normal(100, 3) * 2 + 5
    for _ in range(100):
        layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), x.numpy().mean(0), rtol=1e-3)
    np.testing.assert_allclose(layer.running_var.numpy(), x.numpy().var(0, ddof=1), rtol=1e-3)
    assert int(layer.num_batches_tracked) == 100
    np.testing.assert_allclose(layer.eval()(x).detach().numpy().mean(0), 0, atol=1e-2)


def test_batch_norm_trains():
    layer = nn.BatchNorm2d(3)
    layer(torch.randn(2, 3, 4, 4)).square().sum().backward()
    assert layer.weight.grad is not None and layer.bias.grad is not None


def test_batch_norm_loads_states_without_a_count():
    layer = nn.BatchNorm1d(3)
    state = {key: value for key, value in layer.state_dict().items() if key != "num_batches_tracked"}
    layer.load_state_dict(dict(state))


def test_dropout_modes():
    x = torch.ones(1000)
    assert nn.Dropout(0.5).eval()(x) is x
    assert set(nn.Dropout(0.5)(x).tolist()) == {0.0, 2.0}
    assert not nn.Dropout(1.0)(x).any()
    y = torch.ones(1000)
    assert F.dropout(y, 0.5, inplace=True) is y and set(y.tolist()) == {0.0, 2.0}


def test_inplace_activations_write_and_differentiate():
    for function in (F.relu, F.elu, F.leaky_relu, F.hardtanh, F.silu, F.mish, F.selu, F.celu, F.relu6, F.hardswish):
        leaf = normal(6).requires_grad_()
        x = leaf * 1
        assert function(x, inplace=True) is x
        x.sum().backward()
        other = leaf.detach().clone().requires_grad_()
        function(other).sum().backward()
        np.testing.assert_allclose(leaf.grad.numpy(), other.grad.numpy())


def test_gumbel_softmax_is_one_hot_with_a_gradient():
    logits = torch.randn(20, 5, requires_grad=True)
    sample = F.gumbel_softmax(logits, tau=0.7, hard=True)
    assert ((sample.detach() > 0.5).sum(-1) == 1).all()
    (sample * torch.arange(5)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_vectors_and_parameters():
    layer = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (8,)
    nn.utils.vector_to_parameters(torch.arange(8.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and layer.bias.tolist() == [6, 7]


def test_clip_grad_norm_refuses_what_is_not_finite():
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.tensor([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)


ERRORS = [
    (RuntimeError, "mat1 and mat2 shapes cannot be multiplied", lambda: nn.Linear(4, 5)(torch.zeros(2, 3))),
    (RuntimeError, r"expected input with shape \[\*, 4\]", lambda: nn.LayerNorm(4)(torch.zeros(2, 3))),
    (RuntimeError, "to conv2d, but got input of size", lambda: nn.Conv2d(3, 4, 3)(torch.zeros(2, 3))),
    (ValueError, "in_channels must be divisible by groups", lambda: nn.Conv2d(3, 4, 3, groups=2)),
    (ValueError, "padding='same' is not supported for strided", lambda: nn.Conv2d(3, 4, 3, 2, "same")),
    (ValueError, "expected 4D input", lambda: nn.BatchNorm2d(3)(torch.zeros(2, 3))),
    (ValueError, "more than 1 value per channel", lambda: nn.BatchNorm1d(3)(torch.zeros(1, 3))),
    (ValueError, "dropout probability has to be between 0 and 1", lambda: nn.Dropout(1.5)),
    (ValueError, "num_channels", lambda: nn.GroupNorm(2, 3)),
    (AssertionError, "Padding_idx must be within num_embeddings", lambda: nn.Embedding(3, 2, padding_idx=3)),
    (RuntimeError, "Halving dimension must be even", lambda: F.glu(torch.zeros(3))),
    (RuntimeError, "channel size = 2", lambda: F.prelu(torch.zeros(1, 2, 3), torch.zeros(3))),
    (RuntimeError, "alpha cannot be 0", lambda: F.celu(torch.zeros(3), 0.0)),
    (ValueError, "not a valid value for reduction", lambda: F.l1_loss(torch.zeros(3), torch.zeros(3), reduction="avg")),
    (ValueError, "Expected input batch_size",
     lambda: F.cross_entropy(torch.zeros(3, 4), torch.zeros(2, dtype=torch.int64))),
    (RuntimeError, "label_smoothing must be between",
     lambda: F.cross_entropy(torch.zeros(1, 4), torch.tensor([1]), label_smoothing=2.0)),
    (ValueError, "different to the input size", lambda: F.binary_cross_entropy(torch.zeros(3), torch.zeros(2))),
    (RuntimeError, "between 0 and 1", lambda: F.binary_cross_entropy(torch.tensor([2.0]), torch.zeros(1))),
    (RuntimeError, "Padding size should be less", lambda: F.pad(torch.zeros(1, 1, 3), (3, 0), "reflect")),
    (RuntimeError, "Padding length must be divisible by 2", lambda: F.pad(torch.zeros(3), (1,))),
    (RuntimeError, "Class values must be smaller", lambda: F.one_hot(torch.tensor([3]), 2)),
    (RuntimeError, "divisible by the square of upscale_factor", lambda: F.pixel_shuffle(torch.zeros(3, 2, 2), 2)),
    (RuntimeError, "same dtype", lambda: F.scaled_dot_product_attention(
        torch.zeros(2, 2), torch.zeros(2, 2).double(), torch.zeros(2, 2))),
    (ValueError, "exactly one of size and scale_factor", lambda: F.interpolate(torch.zeros(1, 1, 2))),
    (ValueError, "Unsupported nonlinearity", lambda: nn.init.calculate_gain("swish")),
    (ValueError, "fewer than 2 dimensions", lambda: nn.init.xavier_uniform_(torch.empty(3))),
    (TypeError, "must be Tensor", lambda: F.linear([1.0], torch.zeros(1, 1))),
]  # fmt: skip


@pytest.mark.parametrize("error, message, call", ERRORS, ids=[entry[1][:30] for entry in ERRORS])
def test_errors_say_what_was_wrong(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_losses_warn_about_different_sizes():
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(torch.zeros(3), torch.zeros(1))
    with pytest.warns(UserWarning, match="reduction='sum'"):
        F.mse_loss(torch.ones(3), torch.zeros(3), size_average=False)
