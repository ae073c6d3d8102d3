"""`_foreach_*`: values, writes, gradients and errors are PyTorch's; compiled, the operators of a list are one graph."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.ops.composite import foreach

UNARY = [*foreach._UNARY, "zero_", "norm", "max", "clone"]


def operands(library, start=0.5, requires_grad=False):
    values = library.linspace(start, start + 1, 6) * library.tensor([1, 1, -1, 1, 0.5, -2])
    tensors = [values[:2], values.view(3, 2), values[3]]
    return [tensor.clone().requires_grad_(requires_grad) for tensor in tensors]


def calls(library):
    """Names, and arguments behind the list that is written to or read."""
    others, more = operands(library, 1.5), operands(library, 2.5)
    number, numbers, tensor = 1.5, [1.5, 2.0, -0.5], library.tensor(1.5)
    yield from ((name, (), {}) for name in UNARY)
    for name in ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"):
        yield from ((name, (other,), {}) for other in (number, numbers, others))
    yield from ((name, (tensor,), {}) for name in ("add", "mul", "div"))
    yield from ((name, (others,), {"alpha": 2.5}) for name in ("add", "sub"))
    yield from (("lerp", (others, weights), {}) for weights in (number, numbers, more))
    for name in ("addcmul", "addcdiv"):
        yield from ((name, (others, more, *scalars), {}) for scalars in ((), (number,), (numbers,), (library.tensor(numbers),)))
    yield "lerp", (), {"weights": more, "tensors1": others}
    yield "addcdiv", (others,), {"value": 2.0, "tensor2": more}
    yield "mul", (), {"other": others}


def results(library, in_place):
    for name, arguments, options in calls(library):
        function = getattr(library, f"_foreach_{name}{'_' if in_place else ''}", None)
        if function is not None and not name.endswith("_"):
            tensors = operands(library)
            found = function(tensors, *arguments, **options)
            assert found is tensors if in_place else type(found) is tuple
            yield name, [value.tolist() for value in found]


@pytest.mark.oracle
@pytest.mark.parametrize("in_place", [False, True])
def test_values_are_pytorchs(in_place):
    torch = pytest.importorskip("torch")
    ours, theirs = list(results(rushlight, in_place)), list(results(torch, in_place))
    assert len(ours) == len(theirs) > 60
    for (name, mine), (other_name, other) in zip(ours, theirs, strict=True):
        assert name == other_name
        for a, b in zip(mine, other, strict=True):
            rushlight.testing.assert_close(rushlight.tensor(a), rushlight.tensor(b), equal_nan=True, msg=name)


@pytest.mark.oracle
def test_copies_zeros_and_powers_of_a_number():
    torch = pytest.importorskip("torch")
    found = []
    for library in (rushlight, torch):
        tensors, sources = operands(library), [tensor.double() for tensor in operands(library, 3.0)]
        assert library._foreach_copy_(tensors, sources) is tensors
        found.append([value.tolist() for value in (*tensors, *library._foreach_pow(2.0, tensors))])
        library._foreach_zero_(tensors)
        assert not any(tensor.any() for tensor in tensors)
    for mine, other in zip(*found, strict=True):
        rushlight.testing.assert_close(rushlight.tensor(mine), rushlight.tensor(other))


WRONG = {
    "none": lambda library: library._foreach_add([], 1),
    "lengths": lambda library: library._foreach_add(operands(library), operands(library)[:1]),
    "numbers": lambda library: library._foreach_mul(operands(library), [1.0]),
    "dimensions": lambda library: library._foreach_mul(operands(library), library.ones(2)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRONG)
def test_errors_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as theirs:
        WRONG[name](torch)
    with pytest.raises(RuntimeError) as ours:
        WRONG[name](rushlight)
    assert str(ours.value) == str(theirs.value)


def moved(means, weights):
    """A running mean of weights, as `swa_utils` and others write it, and a norm over all of them."""
    with rushlight.no_grad():
        rushlight._foreach_mul_(means, 0.9)
        rushlight._foreach_add_(means, weights, alpha=0.1)
    return sum(rushlight._foreach_norm(rushlight._foreach_sub(weights, means)))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled(backend):
    found = []
    for function in (moved, rushlight.compile(moved, fullgraph=True, backend=backend)):
        means, weights = operands(rushlight), operands(rushlight, 1.5, requires_grad=True)
        for _ in range(2):
            function(means, weights).backward()
        found.append([*means, *(weight.grad for weight in weights)])
    for mine, other in zip(*found, strict=True):
        rushlight.testing.assert_close(mine, other)
