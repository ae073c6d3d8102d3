"""nn.utils against PyTorch: parametrizations, former hooks, fusion, pruning, packed sequences, calls without state."""

from __future__ import annotations

import copy
import importlib
import pickle

import pytest

import rushlight
from tests.nn.oracle import same

pytestmark = pytest.mark.oracle


def raised(function, *args, **kwargs):
    """The type and text of the exception that a call raises."""
    with pytest.raises(Exception) as error:
        function(*args, **kwargs)
    return type(error.value).__name__, str(error.value)


def gradients(module):
    """Names and gradients of the parameters."""
    return {name: parameter.grad for name, parameter in module.named_parameters()}


# Parametrizations


@pytest.mark.parametrize("leave_parametrized", [False, True])
def test_parametrization_computes_the_weight_and_trains_its_original(leave_parametrized):
    def use(torch):
        class Symmetric(torch.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).mT

            def right_inverse(self, a):
                return a.triu()

        layer = torch.nn.Linear(3, 3)
        parametrize = torch.nn.utils.parametrize
        assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
        layer(torch.ones(2, 3)).pow(2).sum().backward()
        found = [repr(layer), layer.weight, gradients(layer), layer.state_dict(), parametrize.is_parametrized(layer)]
        with torch.no_grad():
            layer.weight = torch.ones(3, 3)
        found += [layer.parametrizations.weight.original, type(layer).__name__]
        found += [repr(copy.deepcopy(layer)), copy.deepcopy(layer).weight]
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave_parametrized)
        return [*found, layer.weight, type(layer).__name__, parametrize.is_parametrized(layer), repr(layer)]

    same(use)


def test_removing_a_parametrization_from_a_copy_leaves_the_original_alone():
    parametrize = rushlight.nn.utils.parametrize
    layer = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 2))
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(twin, "weight")
    assert parametrize.is_parametrized(layer) and layer.weight.tolist() == twin.weight.tolist()


def test_cached_parametrizations_are_computed_once():
    torch = rushlight
    calls = []

    class Counting(torch.nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 2

    layer = torch.nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Counting(), unsafe=True)
    with torch.nn.utils.parametrize.cached():
        first = layer.weight
        assert layer.weight is first
    assert len(calls) == 1
    assert layer.weight is not first
    assert len(calls) == 2


def test_parametrizations_that_do_not_fit_are_refused():
    def use(torch):
        class Smaller(torch.nn.Module):
            def forward(self, x):
                return x[:1]

        class Integers(torch.nn.Module):
            def forward(self, x):
                return x.long()

        parametrize = torch.nn.utils.parametrize
        layer = torch.nn.Linear(2, 2)
        types = [raised(parametrize.register_parametrization, layer, "weight", part())[0] for part in (Smaller, Integers)]
        types.append(raised(parametrize.register_parametrization, layer, "no", Smaller())[0])
        types.append(raised(parametrize.remove_parametrizations, layer, "weight")[0])
        parametrize.register_parametrization(layer, "weight", torch.nn.Identity())
        types.append(raised(pickle.dumps, layer)[0])
        return types

    same(use)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    def use(torch):
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2), dim=dim)
        layer(torch.ones(2, 3)).pow(2).sum().backward()
        former = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2), dim=dim)
        output = former(torch.ones(2, 3))
        output.sum().backward()
        found = [repr(layer), layer.state_dict(), gradients(layer), former.state_dict(), output, gradients(former)]
        layer.load_state_dict(former.state_dict())
        torch.nn.utils.remove_weight_norm(former)
        return [*found, layer.weight, former.weight, former.state_dict()]

    same(use)


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose2d"])
def test_spectral_norm(kind):
    def use(torch):
        def make():
            return torch.nn.Linear(3, 4) if kind == "Linear" else getattr(torch.nn, kind)(2, 3, 2)

        x = torch.ones(2, 3) if kind == "Linear" else torch.ones(1, 2, 4, 4)
        layer = torch.nn.utils.parametrizations.spectral_norm(make())
        layer(x).pow(2).sum().backward()
        layer.eval()
        former = torch.nn.utils.spectral_norm(make(), n_power_iterations=3)
        former(x).pow(2).sum().backward()
        found = [layer.state_dict(), layer.weight, gradients(layer), former.state_dict(), gradients(former)]
        torch.nn.utils.remove_spectral_norm(former)
        return [*found, former.state_dict()]

    same(use, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("use_trivialization", [True, False])
def test_orthogonal(orthogonal_map, shape, use_trivialization):
    def use(torch):
        layer = torch.nn.Linear(*shape).double()
        orthogonal = torch.nn.utils.parametrizations.orthogonal
        orthogonal(layer, orthogonal_map=orthogonal_map, use_trivialization=use_trivialization)
        first = layer.weight
        first.pow(3).sum().backward()
        weight = first.T if first.shape[0] < first.shape[1] else first
        product = weight.T @ weight
        grads = gradients(layer)
        with torch.no_grad():
            layer.parametrizations.weight.original.add_(0.1)
        return [product, first, layer.weight, grads]

    same(use, rtol=1e-6, atol=1e-8)


# Fusion, skipped starting values, orders of memory, calls without state


def test_fusion_of_batch_norm():
    def use(torch):
        utils, nn = torch.nn.utils, torch.nn
        norms = [nn.BatchNorm2d(3), nn.BatchNorm2d(3), nn.BatchNorm1d(4)]
        for norm in norms:
            norm(torch.randn(4, norm.num_features, 2, 2) if norm is not norms[2] else torch.randn(4, 4))
            norm.eval()
        conv, adjoint, linear = nn.Conv2d(2, 3, 2).eval(), nn.ConvTranspose2d(2, 3, 2, bias=False).eval(), nn.Linear(2, 4).eval()
        x = torch.randn(2, 2, 4, 4)
        return [
            utils.fuse_conv_bn_eval(conv, norms[0])(x) - norms[0](conv(x)),
            utils.fuse_conv_bn_eval(conv, norms[0]).weight,
            utils.fuse_conv_bn_eval(adjoint, norms[1], transpose=True)(x),
            utils.fuse_linear_bn_eval(linear, norms[2])(torch.ones(3, 2)),
        ]

    same(use, atol=1e-5)


def test_skip_init_and_memory_format():
    layer = rushlight.nn.utils.skip_init(rushlight.nn.Linear, 3, 4)
    assert layer.weight.shape == (4, 3) and layer.weight.device.type == "cpu"
    conv = rushlight.nn.Conv2d(3, 4, 3)
    rushlight.nn.utils.convert_conv2d_weight_memory_format(conv, rushlight.channels_last)
    assert conv.weight.is_contiguous(memory_format=rushlight.channels_last)


def test_functional_call():
    def use(torch):
        functional_call = torch.nn.utils.stateless.functional_call
        layer = torch.nn.Linear(2, 2)
        before = layer.weight.detach().clone()
        weight = torch.ones(2, 2, requires_grad=True)
        output = functional_call(layer, {"weight": weight}, torch.ones(1, 2))
        output.sum().backward()
        tied = torch.nn.Module()
        tied.a = torch.nn.Linear(2, 2)
        tied.b = torch.nn.Linear(2, 2)
        tied.b.weight = tied.a.weight
        tied.forward = lambda x: tied.b(tied.a(x))
        both = functional_call(tied, {"a.weight": weight}, torch.ones(1, 2))
        errors = [
            raised(functional_call, layer, {"weight": weight}, torch.ones(1, 2), strict=True)[0],
            raised(functional_call, tied, {"a.weight": weight, "b.weight": weight + 1}, torch.ones(1, 2))[0],
        ]
        return [output, weight.grad, both, errors, (layer.weight - before).abs().sum()]

    same(use)


# Pruning


def test_pruning():
    def use(torch):
        prune, nn = importlib.import_module(f"{torch.__name__}.nn.utils.prune"), torch.nn
        found = []
        for method, options in {
            "identity": {},
            "l1_unstructured": {"amount": 0.4},
            "ln_structured": {"amount": 1, "n": 2, "dim": 0},
            "random_unstructured": {"amount": 3},
            "random_structured": {"amount": 0.5, "dim": 1},
        }.items():
            layer = nn.Linear(4, 3)
            getattr(prune, method)(layer, "weight", **options)
            found += [list(layer.state_dict()), layer.weight_mask.sum(), prune.is_pruned(layer)]
            if not method.startswith("random"):
                prune.l1_unstructured(layer, "weight", 2)
                found += [layer.weight, layer.weight_mask, layer(torch.ones(1, 4))]
            prune.remove(layer, "weight")
            found += [list(layer.state_dict()), prune.is_pruned(layer)]
        first, second = nn.Linear(3, 3), nn.Linear(3, 2)
        prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=6)
        prune.custom_from_mask(first, "bias", torch.tensor([1, 0, 1]))
        found += [first.weight, second.weight, first.bias]
        return [*found, raised(prune.l1_unstructured, first, "weight", 1.5)[0], raised(prune.remove, nn.Linear(1, 1), "bias")[0]]

    same(use)


# Packed sequences


@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_sequences(batch_first):
    def use(torch):
        rnn = torch.nn.utils.rnn
        batch = torch.arange(24.0).reshape(4, 3, 2).requires_grad_()
        data = batch.transpose(0, 1) if batch_first else batch
        packed = rnn.pack_padded_sequence(data, torch.tensor([2, 4, 1]), batch_first, enforce_sorted=False)
        padded, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=5)
        (padded * padded).sum().backward()
        sequences = [torch.ones(2, 2), torch.ones(3, 2) * 2, torch.ones(1, 2) * 3]
        joined = rnn.pack_sequence(sequences, enforce_sorted=False)
        return [
            list(packed), padded, lengths, batch.grad, list(joined), rnn.unpack_sequence(joined),
            rnn.pad_sequence(sequences, batch_first, 7.0, "left"), list(packed.double()),
            rnn.unpad_sequence(rnn.pad_sequence(sequences, batch_first), torch.tensor([2, 3, 1]), batch_first),
            raised(rnn.pack_padded_sequence, data, [2, 4, 1], batch_first)[0],
            raised(rnn.pack_padded_sequence, data, [2, 1, 0], batch_first)[0],
            raised(rnn.pad_packed_sequence, packed, total_length=2)[0],
        ]  # fmt: skip

    same(use)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers_over_packed_sequences(kind, bidirectional):
    def use(torch):
        layer = getattr(torch.nn, kind)(3, 4, 2, bidirectional=bidirectional, dropout=0.5)
        x = torch.randn(5, 3, 3).requires_grad_()
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [3, 5, 2], enforce_sorted=False)
        output, state = layer(packed)
        (output.data.sum() + sum(part.pow(2).sum() for part in (state if kind == "LSTM" else [state]))).backward()
        plain, _ = layer(x)
        return [list(output), state, x.grad, gradients(layer), plain]

    same(use, rtol=1e-4, atol=1e-5)
