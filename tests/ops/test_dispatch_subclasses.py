"""Subclasses of Tensor with `__torch_dispatch__`: wrappers of other tensors, their gradients, parameters, and users' modes."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight._C import _disabled_torch_function_impl, _DisableTorchDispatch
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


class Pair(rl.Tensor):
    """Two tensors on which every operator runs."""

    @staticmethod
    def __new__(cls, a, b):
        return rl.Tensor._make_wrapper_subclass(
            cls, a.shape, strides=a.stride(), dtype=a.dtype, device=a.device, requires_grad=a.requires_grad
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    __torch_function__ = _disabled_torch_function_impl

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    def __repr__(self):
        return f"Pair({self.a}, {self.b})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def run(name):
            given, named = tree_map_only(Pair, lambda pair: getattr(pair, name), (args, kwargs or {}))
            return tree_flatten(func(*given, **named))

        (first, spec), (second, _) = run("a"), run("b")
        merged = [Pair(x, y) if isinstance(x, rl.Tensor) else x for x, y in zip(first, second, strict=True)]
        return return_and_correct_aliasing(func, args, kwargs, tree_unflatten(merged, spec))


def pair(*sizes, requires_grad=False):
    rl.manual_seed(0)
    return Pair(rl.randn(*sizes), rl.randn(*sizes)).requires_grad_(requires_grad)


CALLS = {
    "pointwise": lambda x: (x * 2 + 1).tanh(),
    "reduction": lambda x: x.softmax(-1).sum(0),
    "product": lambda x: x @ x.T,
    "view": lambda x: x.view(3, 2).t(),
    "index": lambda x: x[1:, None],
    "list": lambda x: rl.cat([x, x]),
    "several": lambda x: x.sort(-1)[0],
    "linear": lambda x: rl.nn.functional.linear(x, rl.ones(4, 3)),
    "norm": lambda x: rl.nn.functional.layer_norm(x, (3,)),
    "cast": lambda x: x.to(rl.float64),
    "write": lambda x: x.clone().add_(1).mul_(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_run_on_what_is_wrapped(name):
    x = pair(2, 3)
    result = CALLS[name](x)
    assert type(result) is Pair
    for inner in ("a", "b"):
        expected = CALLS[name](getattr(x, inner))
        assert rl.equal(getattr(result, inner), expected)
        assert result.shape == expected.shape and result.dtype is expected.dtype


@pytest.mark.parametrize("name", CALLS)
def test_autograd_is_above_them(name):
    x = pair(2, 3, requires_grad=True)
    result = CALLS[name](x)
    assert result.requires_grad and result.grad_fn is not None and not result.a.requires_grad
    result.sum().backward()
    for inner in ("a", "b"):
        plain = getattr(x, inner).clone().requires_grad_()
        CALLS[name](plain).sum().backward()
        assert rl.allclose(getattr(x.grad, inner), plain.grad)
    result = CALLS[name](x)
    (again,) = rl.autograd.grad(result, x, result.detach())
    assert type(again) is Pair


def test_gradients_add_up_and_outputs_are_kept_whole():
    x = pair(3, requires_grad=True)
    for _ in range(2):
        x.exp().sum().backward()  # exp keeps its result
    assert rl.allclose(x.grad.b, 2 * x.b.exp())


def test_a_parameter_of_a_subclass():
    layer = rl.nn.Linear(3, 4)
    layer.weight = rl.nn.Parameter(pair(4, 3))
    assert type(layer.weight) is Pair and isinstance(layer.weight, rl.nn.Parameter)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"] and not isinstance(pair(2), rl.nn.Parameter)
    before = layer.weight.a.clone()
    for kind in (rl.optim.SGD, rl.optim.AdamW):
        optimizer = kind(layer.parameters(), lr=0.1)
        layer(rl.ones(2, 3)).sum().backward()
        optimizer.step()
    assert type(layer.weight) is Pair and not rl.equal(layer.weight.a, before)


def test_compiled_functions_give_the_same():
    x = pair(2, 3)
    compiled = rl.compile(lambda value: (value * 2).tanh())
    assert rl.allclose(compiled(x).b, (x.b * 2).tanh())


def test_no_values_of_its_own_and_no_crash():
    x = pair(2, 3)
    for read in (lambda: x.numpy(), lambda: x.tolist(), lambda: rl.Tensor.__repr__(x), lambda: x.data_ptr()):
        try:
            read()
        except (RuntimeError, TypeError, NotImplementedError):
            pass
    with _DisableTorchDispatch():
        assert (x + 1).is_meta


def test_bad_classes_and_answers():
    class Plain(rl.Tensor):
        pass

    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        rl.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(TypeError, match="derived from Tensor"):
        rl.Tensor._make_wrapper_subclass(int, (2,))

    class Declining(rl.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.add.Tensor'"):
        rl.Tensor._make_wrapper_subclass(Declining, (2,)) + 1


def test_a_subclass_with_memory():
    seen = []

    class Logged(rl.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), types))
            with _DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    made = rl.Tensor._make_subclass(Logged, rl.ones(3))
    assert type(made + 1) is rl.Tensor and (made + 1).tolist() == [2.0, 2.0, 2.0]
    assert seen[0] == ("aten.add.Tensor", (Logged,))
    assert (rl.ones(3).as_subclass(Logged) * 3).tolist() == [3.0, 3.0, 3.0]


def test_flattening():
    x = pair(2, 3)
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(rl.ones(2))
    doubled = transform_subclass(x, lambda name, inner: inner * 2)
    assert type(doubled) is Pair and rl.equal(doubled.b, x.b * 2)


class Seeing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, types, args[1:], kwargs))
        return func(*args, **(kwargs or {}))


def test_a_mode_gets_arguments_without_defaults():
    x = rl.ones(2, 3)
    with Seeing() as mode:
        x.view(3, 2), x.expand(4, 2, 3), rl.add(x, x, alpha=1), rl.add(x, x, alpha=2), x.double()
    calls = [(str(func), args, kwargs) for func, _, args, kwargs in mode.seen]
    assert calls[0] == ("aten.view.default", ([3, 2],), {}) and calls[1] == ("aten.expand.default", ([4, 2, 3],), {})
    assert calls[2][2] == {} and calls[3][2] == {"alpha": 2} and calls[4] == ("aten._to_copy.default", (), {"dtype": rl.float64})


def test_a_mode_comes_before_the_classes():
    x = pair(2, 3)
    with Seeing() as mode:
        assert type(x + 1) is Pair
    assert [(str(func), types) for func, types, *_ in mode.seen] == [("aten.add.Tensor", (Pair,))] + [("aten.add.Tensor", ())] * 0
    func = mode.seen[0][0]
    assert func.overloadpacket is rl.ops.aten.add and func.name() == func.name == "aten::add.Tensor"
    assert func._schema.overload_name == "Tensor" and func._schema.arguments[0].name == "self"
