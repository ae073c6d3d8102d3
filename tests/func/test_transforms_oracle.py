"""Transforms of functions against PyTorch's, and nested."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def tensors(library, *shapes):
    return tuple(library.from_numpy(np.random.default_rng(n).normal(size=shape)) for n, shape in enumerate(shapes))


def flat(value):
    if isinstance(value, dict):
        return [part for key in value for part in flat(value[key])]
    if isinstance(value, list | tuple):
        return [part for item in value for part in flat(item)]
    assert not value.requires_grad
    return [value.numpy()]


def both(call):
    ours, theirs = flat(call(rushlight)), flat(call(torch))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def cubic(x, y):
    return (x**3 * y.sum()).sum()


CASES = {
    "grad": lambda t: t.func.grad(cubic)(*tensors(t, (3,), (2,))),
    "grad of both": lambda t: t.func.grad(cubic, argnums=(0, 1))(*tensors(t, (3,), (2,))),
    "grad of the second": lambda t: t.func.grad(cubic, argnums=1)(*tensors(t, (3,), (2,))),
    "second derivative": lambda t: t.func.grad(t.func.grad(lambda x: x.sin() * x))(*tensors(t, ())),
    "third derivative": lambda t: t.func.grad(t.func.grad(t.func.grad(lambda x: x**5)))(*tensors(t, ())),
    "of a dict": lambda t: t.func.grad(lambda p: (p["a"] ** 2).sum() * p["b"])({"a": t.ones(2) * 3, "b": t.ones(()) * 2}),
    "grad_and_value": lambda t: t.func.grad_and_value(cubic)(*tensors(t, (3,), (2,))),
    "aux": lambda t: t.func.grad(lambda x: ((x**2).sum(), x * 2), has_aux=True)(*tensors(t, (3,))),
    "vjp": lambda t: t.func.vjp(lambda x: x.sin(), *tensors(t, (3,)))[1](t.ones(3, dtype=t.float64)),
    "vjp's value": lambda t: t.func.vjp(lambda x, y: (x * y, y), *tensors(t, (3,), (3,)))[0],
    "jvp": lambda t: t.func.jvp(lambda x: x.sin(), tensors(t, (3,)), (t.ones(3, dtype=t.float64),)),
    "jacrev": lambda t: t.func.jacrev(lambda x: x.sin() * x.sum())(*tensors(t, (3,))),
    "jacfwd": lambda t: t.func.jacfwd(lambda x: x.sin() * x.sum())(*tensors(t, (3,))),
    "hessian": lambda t: t.func.hessian(lambda x: (x**3).sum() * x[0])(*tensors(t, (3,))),
    "unused": lambda t: t.func.grad(lambda x, y: (x * x).sum(), argnums=1)(*tensors(t, (3,), (2,))),
}


@pytest.mark.parametrize("name", CASES)
def test_transform(name):
    both(CASES[name])


def test_gradients_flow_through_a_transform():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    rushlight.func.grad(lambda a: (a**3).sum())(x).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def network(library):
    shapes = (8, 3), (8,), (2, 8)
    weights = [value.requires_grad_() for value in tensors(library, *shapes)]
    return (lambda x: (x @ weights[0].t() + weights[1]).tanh() @ weights[2].t()), weights


FURTHER = {
    "grad": lambda t, f, x: t.func.grad(lambda x: f(x).pow(2).sum())(x).pow(2).sum(),
    "value": lambda t, f, x: t.func.grad_and_value(lambda x: f(x).pow(2).sum())(x)[1],
    "vjp": lambda t, f, x: t.func.vjp(f, x)[1](t.ones(2, dtype=t.float64))[0].pow(2).sum() + t.func.vjp(f, x)[0].sum(),
    "jvp": lambda t, f, x: sum(value.pow(2).sum() for value in t.func.jvp(f, (x,), (t.ones_like(x),))),
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x).pow(2).sum(),
    "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x).pow(2).sum(),
    "hessian": lambda t, f, x: t.func.hessian(lambda x: f(x).sum())(x).pow(2).sum(),
}


@pytest.mark.parametrize("name", FURTHER)
def test_gradients_flow_to_what_a_function_finds_elsewhere(name):
    def run(library):
        function, weights = network(library)
        loss = FURTHER[name](library, function, tensors(library, (3,))[0])
        loss.backward()
        return [loss.detach(), *(weight.grad for weight in weights if weight.grad is not None)]

    both(run)


OUTSIDE = {
    "inside another level": lambda t, x, y: t.func.grad(lambda a: t.func.grad(lambda b: (a * b * b * a).sum())(y).sum())(x),
    "directions inside": lambda t, x, y: t.func.grad(lambda a: t.func.jvp(lambda b: (a * b * b).sum(), (y,), (y,))[1])(x),
    "a Jacobian inside": lambda t, x, y: t.func.jacrev(lambda a: t.func.jacrev(lambda b: a * b * b)(y))(x),
    "a dict": lambda t, x, y: t.func.jacrev(lambda d: {"product": d["x"] * d["y"]})({"x": x, "y": y}),
    "two arguments": lambda t, x, y: t.func.jacrev(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(x, y),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_results_of_what_nothing_outside_differentiates_have_no_history(name):
    both(lambda t: OUTSIDE[name](t, *tensors(t, (3,), (3,))))


def test_nothing_is_recorded_outside_while_gradients_are_off():
    def run(library):
        function, _ = network(library)
        with library.no_grad():
            return [FURTHER[name](library, function, tensors(library, (3,))[0]) for name in FURTHER]

    both(run)


def test_modules_as_functions():
    layer = rushlight.nn.Linear(2, 1)
    parameters = {name: value.detach() for name, value in layer.named_parameters()}
    x = rushlight.ones(3, 2)
    found = rushlight.func.grad(lambda p: rushlight.func.functional_call(layer, p, (x,)).sum())(parameters)
    assert found["weight"].tolist() == [[3.0, 3.0]]
    assert layer.weight.grad is None


def test_only_scalars_have_gradients():
    with pytest.raises(RuntimeError, match="scalar"):
        rushlight.func.grad(lambda x: x)(rushlight.ones(2))


@pytest.mark.parametrize("tangents", [lambda t: t.ones(2), lambda t: [t.ones(2)]])
def test_tangents_of_another_form_are_refused(tangents):
    for library in (rushlight, torch):
        with pytest.raises(RuntimeError, match="same python structure"):
            library.func.jvp(library.sin, (library.ones(2),), tangents(library))
