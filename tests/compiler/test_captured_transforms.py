"""Transforms of functions inside of compiled ones: one graph, and the values and gradients of eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap


@pytest.fixture(autouse=True)
def forget_afterwards():
    yield
    torch.compiler.reset()


class Counting:
    def __init__(self, backend):
        self.backend, self.count = backend, 0

    def __call__(self, module, inputs):
        self.count += 1
        if self.backend is None:
            return module.forward
        from rushlight._dynamo.testing import CompileCounterWithBackend

        return CompileCounterWithBackend(self.backend)(module, inputs)


def leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, list | tuple) else [tree]


torch.manual_seed(0)
X, W, B = torch.randn(5, 3), torch.randn(3, 4), torch.randn(4)


def layer(x, w, b):
    return (x @ w + b).tanh()


def loss(w, x, b):
    return (layer(x, w, b) ** 2).sum()


def by_row(x, w, b):
    return vmap(lambda row: layer(row, w, b).sum())(x)


def nested_maps(x, w, b):
    return vmap(vmap(lambda one, other: one * other + b[0], in_dims=(None, 0)), in_dims=(0, None), out_dims=1)(x[:, 0], w[0])


def map_of_trees(x, w, b):
    found = vmap(lambda d, k: {"sum": d["x"].sum(), "pair": (d["x"] * k, d["x"][0])}, in_dims=({"x": 1}, None))({"x": x}, 3)
    return found["sum"], found["pair"]


def map_with_indices(x, w, b):
    table = w.T
    return vmap(lambda i, row: table[i] * row)(torch.tensor([0, 2, 1, 3, 1]), x)


def gradient(x, w, b):
    return grad(loss)(w, x, b)


def several_gradients(x, w, b):
    gradients, (value, more) = grad_and_value(lambda w, x, b: (loss(w, x, b), {"twice": x * 2}), (0, 2), has_aux=True)(w, x, b)
    return *gradients, value, more["twice"]


def gradients_by_example(x, w, b):
    return vmap(grad(lambda row, w: layer(row, w, b).sum(), argnums=1), in_dims=(0, None))(x, w)


def second_derivative(x, w, b):
    return vmap(grad(grad(lambda number: number.sin() * b[0])))(x[:, 0])


def products(x, w, b):
    outputs, pull_back = vjp(lambda w, b: (layer(x, w, b), w.sum()), w, b)
    return outputs, pull_back((torch.ones_like(outputs[0]), outputs[1]))


def pushed(x, w, b):
    return jvp(lambda w: layer(x, w, b), (w,), (torch.ones_like(w),))


def jacobians(x, w, b):
    return jacrev(layer, (1, 2))(x, w, b), jacfwd(lambda b: b.sin())(b), hessian(lambda b: (b.sin() * b).sum())(b)


def changes_nothing_outside(x, w, b):
    total = []

    def collect(row):
        total.append(1)
        return row * len(total)

    return vmap(collect)(x)


PROGRAMS = [
    by_row, nested_maps, map_of_trees, map_with_indices, gradient, several_gradients, gradients_by_example, second_derivative,
    products, pushed, jacobians,
]  # fmt: skip


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_transforms_are_part_of_the_graph(program, backend):
    counting = Counting(backend)
    compiled = torch.compile(program, backend=counting, fullgraph=True)
    for _ in range(2):
        for one, other in zip(leaves(compiled(X, W, B)), leaves(program(X, W, B)), strict=True):
            assert torch.allclose(one, other, atol=1e-5)
    assert counting.count == 1


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [by_row, map_with_indices, gradient, gradients_by_example, products, jacobians])
def test_gradients_through_transforms(program, backend):
    found = []
    for function in (torch.compile(program, backend=Counting(backend), fullgraph=True), program):
        inputs = [tensor.clone().requires_grad_() for tensor in (X, W, B)]
        sum(leaf.sin().sum() for leaf in leaves(function(*inputs))).backward()
        found.append([tensor.grad for tensor in inputs])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("make", [
    lambda: vmap(lambda row: row.sin().sum()), lambda: grad(lambda x: (x * x).sum()), lambda: jacrev(lambda x: x.sum(0)),
    lambda: grad_and_value(lambda x: (x * x).sum()), lambda: vmap(grad(lambda row: (row ** 3).sum())),
])  # fmt: skip
def test_transformed_functions_can_be_compiled(make):
    made, counting = make(), Counting(None)
    compiled = torch.compile(made, backend=counting, fullgraph=True)
    for one, other in zip(leaves(compiled(X)), leaves(made(X)), strict=True):
        assert torch.allclose(one, other)
    assert counting.count == 1
    called = torch.compile(lambda x: leaves(made(x + 1)), backend=counting, fullgraph=True)
    for one, other in zip(called(X), leaves(made(X + 1)), strict=True):
        assert torch.allclose(one, other)


def test_what_a_mapped_function_may_not_do():
    compiled = torch.compile(changes_nothing_outside, backend="eager")
    assert torch.allclose(compiled(X, W, B), changes_nothing_outside(X, W, B))

    def writes(x):
        kept = torch.zeros(3)
        vmap(lambda row: kept.add_(1) if row.shape else row)(x)
        return kept

    with pytest.raises(Exception, match="vmap|write"):
        torch.compile(writes, fullgraph=True, backend="eager")(X)


def test_dimensions_that_do_not_fit_raise_as_in_eager():
    compiled = torch.compile(lambda x: vmap(lambda a: a, in_dims=5)(x), backend="eager")
    with pytest.raises(ValueError, match="in_dim"):
        compiled(X)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.outer = nn.Linear(4, 1)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


def test_modules_as_functions():
    net, counting = Net(), Counting(None)

    def program(x, parameters):
        by_example = vmap(grad(lambda p, row: functional_call(net, p, (row,)).sum()), in_dims=(None, 0))
        return functional_call(net, parameters, (x,)), by_example(parameters, x)

    parameters = {name: value.detach() * 2 for name, value in net.named_parameters()}
    compiled = torch.compile(program, backend=counting, fullgraph=True)
    for one, other in zip(leaves(compiled(X, parameters)), leaves(program(X, parameters)), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert counting.count == 1


def test_ensembles():
    nets = [Net() for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    base, counting = Net(), Counting(None)

    def program(parameters, x):
        return vmap(lambda p, b: functional_call(base, (p, b), (x,)))(parameters, buffers)

    compiled = torch.compile(program, backend=counting, fullgraph=True)
    assert torch.allclose(compiled(parameters, X), program(parameters, X), atol=1e-5)
    assert counting.count == 1
