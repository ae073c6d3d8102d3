"""Products with Jacobians and Hessians, and those matrices, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def inputs(library, *shapes):
    return tuple(
        library.from_numpy(np.random.default_rng(n).normal(size=shape)) for n, shape in enumerate(shapes)
    )


def arrays(value):
    if isinstance(value, tuple):
        return tuple(arrays(part) for part in value)
    return value.detach().numpy()


def assert_close(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b)
    else:
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def both(call):
    ours, theirs = call(rushlight), call(torch)
    assert_close(arrays(ours), arrays(theirs))


FUNCTIONS = {
    "one to one": (lambda x: (x * x).exp(), [(3,)]),
    "matrix to vector": (lambda x: x.sin().sum(1), [(2, 3)]),
    "two to one": (lambda x, y: x * y.sum() + x**3, [(2,), (3,)]),
    "two to two": (lambda x, y: (x * y.sum(), (y * y).sum()), [(2,), (3,)]),
    "not of all": (lambda x, y: (x.sum(), y * 2), [(2,), (3,)]),
}
SCALARS = {
    "cube": (lambda x: (x**3).sum(), [(2, 2)]),
    "two": (lambda x, y: (x**2 * y.sum()).sum() + (y**3).sum(), [(2,), (3,)]),
    "linear in one": (lambda x, y: (x**2).sum() + y.sum(), [(2,), (3,)]),
}


def given(library, shapes):
    points = inputs(library, *shapes)
    return points[0] if len(points) == 1 else points


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name, create_graph):
    function, shapes = FUNCTIONS[name]
    both(lambda library: library.autograd.functional.jacobian(function, given(library, shapes), create_graph=create_graph))


@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name):
    function, shapes = SCALARS[name]
    both(lambda library: library.autograd.functional.hessian(function, given(library, shapes)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vjp(name):
    function, shapes = FUNCTIONS[name]

    def call(library):
        outputs = function(*inputs(library, *shapes))
        v = tuple(library.cos(part) for part in outputs) if isinstance(outputs, tuple) else outputs.cos()
        return library.autograd.functional.vjp(function, given(library, shapes), v)

    both(call)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp(name):
    function, shapes = FUNCTIONS[name]

    def call(library):
        points = given(library, shapes)
        v = tuple(library.cos(part) for part in points) if isinstance(points, tuple) else points.cos()
        return library.autograd.functional.jvp(function, points, v)

    both(call)


@pytest.mark.parametrize("product", ["vhp", "hvp"])
@pytest.mark.parametrize("name", SCALARS)
def test_products_with_hessians(name, product):
    function, shapes = SCALARS[name]

    def call(library):
        points = given(library, shapes)
        v = tuple(library.cos(part) for part in points) if isinstance(points, tuple) else points.cos()
        return getattr(library.autograd.functional, product)(function, points, v)

    both(call)


def test_one_number_needs_no_vector():
    both(lambda library: library.autograd.functional.vjp(lambda x: (x**2).sum(), inputs(library, (3,))[0]))
    with pytest.raises(RuntimeError, match="can only be None"):
        rushlight.autograd.functional.vjp(lambda x: x * 2, rushlight.ones(2))
    with pytest.raises(RuntimeError, match="invalid size"):
        rushlight.autograd.functional.vjp(lambda x: x * 2, rushlight.ones(2), rushlight.ones(3))


def test_results_can_be_differentiated():
    def call(library):
        x = inputs(library, (3,))[0].requires_grad_()
        matrix = library.autograd.functional.jacobian(lambda value: value**3, x, create_graph=True)
        matrix.sum().backward()
        return x.grad

    both(call)


@pytest.mark.parametrize("name", ["jacobian", "hessian"])
def test_strict_mode(name):
    for library in (rushlight, torch):
        functional = library.autograd.functional
        with pytest.raises(RuntimeError, match="strict mode"):
            getattr(functional, name)(lambda x, y, library=library: library.ones(1).sum(), inputs(library, (2,), (2,)), strict=True)
        with pytest.raises(RuntimeError, match="independent of"):
            getattr(functional, name)(lambda x, y: (x * x).sum(), inputs(library, (2,), (2,)), strict=True)
    with pytest.raises(TypeError, match="Tensor or a tuple of Tensors"):
        getattr(rushlight.autograd.functional, name)(lambda x: x, [1, 2])
