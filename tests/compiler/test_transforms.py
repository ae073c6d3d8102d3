"""Transforms that differentiate (`torch.func`, `autograd.functional`, `is_grads_batched`) of compiled functions, and in them;
calls of modules with other tensors."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import functional
from rushlight.core.pytree import tree_flatten
from rushlight.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from rushlight.nn import functional as F
from tests.compiler.test_training import backend, eagers_random_numbers  # noqa: F401

X, V = torch.linspace(-1, 1, 4), torch.linspace(1, 2, 4)


def wave(x):
    return x.sin().cumsum(0) * x


def total(x):
    return wave(x).sum()


def two(x):
    return {"wave": wave(x), "mean": x.exp().mean(), "same": x}


def noisy(x):
    return F.dropout(x, 0.5, training=True) * x


def gradients_of_rows(function, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x), x, torch.eye(4)[:3], is_grads_batched=True)


TRANSFORMS = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x), "grad_and_value": lambda f, x: grad_and_value(lambda x: f(x).sum())(x),
    "jacrev": lambda f, x: jacrev(f)(x), "jacrev, in chunks": lambda f, x: jacrev(f, chunk_size=3)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x), "hessian": lambda f, x: hessian(lambda x: f(x).sum())(x),
    "vjp": lambda f, x: vjp(f, x)[1](V), "jvp": lambda f, x: jvp(f, (x,), (V,)),
    "batched pull back": lambda f, x: vmap(vjp(f, x)[1])(torch.eye(4)), "jacobian": lambda f, x: functional.jacobian(f, x),
    "twice batched": lambda f, x: vmap(vmap(vjp(f, x)[1]))(torch.ones(2, 3, 4) + torch.eye(4)[:3]),
    "rows": gradients_of_rows, "hvp": lambda f, x: functional.hvp(lambda x: f(x).sum(), x, V),
}  # fmt: skip


def assert_same(ours, theirs):
    for mine, other in zip(tree_flatten(ours)[0], tree_flatten(theirs)[0], strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_of_a_compiled_function(name, backend):  # noqa: F811
    transform = TRANSFORMS[name]
    fast = torch.compile(wave, backend=backend)
    for x in (X, X + 1):
        assert_same(transform(fast, x), transform(wave, x))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_in_a_compiled_function(name, backend):  # noqa: F811
    def outer(x):
        return TRANSFORMS[name](wave, x * 2)

    fast = torch.compile(outer, backend=backend)
    for x in (X, X + 1):
        assert_same(fast(x), outer(x))


@pytest.mark.parametrize("dynamic", [False, True])
def test_several_results(backend, dynamic):  # noqa: F811
    assert_same(jacrev(torch.compile(two, backend=backend, dynamic=dynamic))(X), jacrev(two)(X))


def test_random_numbers_are_those_of_one_call(backend):  # noqa: F811
    found = []
    for function in (noisy, torch.compile(noisy, backend=backend)):
        torch.manual_seed(0)
        found.append(jacrev(function)(X))
    assert_same(*found)


def test_no_examples_are_an_error():
    result = vjp(torch.compile(wave), X)[1]
    with pytest.raises(RuntimeError, match="there are none"):
        vmap(result)(torch.ones(0, 4))


TRANSFORMING = {
    "grad": lambda x: grad(total)(x), "jacrev": lambda x: jacrev(wave)(x), "vjp": lambda x: vjp(wave, x)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMING)
def test_transforms_do_not_break_the_graph(name):
    assert not torch._dynamo.explain(TRANSFORMING[name])(X.clone().requires_grad_()).break_reasons


DIFFERENTIATING = {
    "jacobian": lambda x: functional.jacobian(wave, x),
    "gradients": lambda x: torch.autograd.grad(total(V.clone().requires_grad_() * x), x, allow_unused=True),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIATING)
def test_the_reason_for_a_break_names_the_call(name):
    reasons = torch._dynamo.explain(DIFFERENTIATING[name])(X.clone().requires_grad_()).break_reasons
    assert reasons and not any("_impl" in str(reason) or "batch_levels" in str(reason) for reason in reasons)


def with_shared_weight():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    return model


MODELS = {
    "statistics": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)),
    "shared": with_shared_weight, "frozen": lambda: nn.Linear(3, 2).requires_grad_(False),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_module_with_other_parameters_is_one_graph(name, backend):  # noqa: F811
    torch.manual_seed(0)
    eager = MODELS[name]()
    ours, found = copy.deepcopy(eager), []
    for model, compiled in ((eager, False), (ours, True)):
        torch.manual_seed(1)

        def loss(parameters, x, model=model):
            return functional_call(model, parameters, (x,)).square().mean()

        run = torch.compile(loss, backend=backend, fullgraph=True, options={"recompile_limit": 1}) if compiled else loss
        gradients = []
        for _ in range(3):
            given = {name: torch.randn_like(value).requires_grad_() for name, value in model.named_parameters()}
            run(given, torch.randn(5, 3)).backward()
            gradients += [value.grad for value in given.values()]
        found.append([gradients, *model.state_dict().values()])
    assert_same(*found)
    assert len(torch._dynamo.eval_frame._debug_get_cache_entry_list(loss)) == 1
