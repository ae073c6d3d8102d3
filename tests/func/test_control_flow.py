"""Operators that take functions, in eager: values and gradients are torch's."""

from __future__ import annotations

import pytest

import rushlight
from rushlight._higher_order_ops import associative_scan, cond, map, scan, while_loop


def both(program):
    """The results of a program, given a package and its operators, for both packages."""
    torch = pytest.importorskip("torch")
    from torch import _higher_order_ops as theirs

    found = program(rushlight, rushlight._higher_order_ops)
    wanted = program(torch, theirs)
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        assert list(one.shape) == list(other.shape)
        assert torch.allclose(torch.tensor(one.detach().float().tolist()), other.detach().float(), atol=1e-5)


def leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, list | tuple) else [tree]


def numbers(torch, *sizes):
    count = 1
    for size in sizes:
        count *= size
    return torch.arange(1.0, count + 1).reshape(sizes) / count


@pytest.mark.oracle
@pytest.mark.parametrize("pred", [True, False])
def test_cond(pred):
    def program(torch, ops):
        x = numbers(torch, 3, 4)
        return ops.cond(torch.tensor(pred), lambda a: {"k": a.sin()}, lambda a: {"k": a - 1}, (x,))

    both(program)


@pytest.mark.oracle
@pytest.mark.parametrize(("dim", "reverse"), [(0, False), (1, False), (1, True), (-1, True)])
def test_scan(dim, reverse):
    def program(torch, ops):
        x = numbers(torch, 4, 4)
        return ops.scan(lambda c, v: (c * v, {"a": c + v, "b": v * 2}), torch.ones(4), x, dim=dim, reverse=reverse)

    both(program)


@pytest.mark.oracle
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(length, reverse):
    def program(torch, ops):
        x, y = numbers(torch, length, 3), numbers(torch, length, 3) + 1
        pairs = ops.associative_scan(
            lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, y), 0, reverse=reverse, combine_mode="generic"
        )
        products = ops.associative_scan(lambda a, b: a @ b, numbers(torch, 2, 2, length), 2, reverse, combine_mode="generic")
        return pairs, products

    def plain(torch, ops):
        x = numbers(torch, 2, length)
        return ops.associative_scan(lambda a, b: a + b, x, 1, reverse=reverse, combine_mode="generic")

    both(plain)
    if length > 1:
        both(lambda torch, ops: program(torch, ops)[0])


@pytest.mark.oracle
def test_map_and_while_loop():
    both(lambda torch, ops: ops.map(lambda v, k: (v["a"] * k, v["a"].sum()), {"a": numbers(torch, 3, 4)}, torch.ones(4)))
    both(lambda torch, ops: ops.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), numbers(torch, 2))
    ))  # fmt: skip


@pytest.mark.oracle
def test_gradients():
    def program(torch, ops):
        x, w = numbers(torch, 4, 3).requires_grad_(), numbers(torch, 3).requires_grad_()
        carry, ys = ops.scan(lambda c, v: (c * w + v, c.sin()), torch.zeros(3), x)
        chosen = ops.cond(torch.tensor(True), lambda a: a.cos() * w, lambda a: a * 2, (carry,))
        (ys.sum() + chosen.sum()).backward()
        return x.grad, w.grad

    both(program)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: cond("a", abs, abs, (x,)), RuntimeError, "Expected pred to be bool or tensor"),
    (lambda x: cond(x > 0, abs, abs, (x,)), RuntimeError, "single-element"),
    (lambda x: cond(True, 3, abs, (x,)), RuntimeError, "callable"),
    (lambda x: cond(True, abs, abs, x), RuntimeError, "Expect operands"),
    (lambda x: while_loop(3, abs, (x,)), RuntimeError, "callable"),
    (lambda x: while_loop(lambda a: a, abs, (x,)), RuntimeError, "cond_fn"),
    (lambda x: while_loop(lambda a: True, lambda a: (a.sum(),), (x,)), RuntimeError, "same metadata"),
    (lambda x: while_loop(lambda a: True, lambda a: (a, a), (x,)), RuntimeError, "same structure"),
    (lambda x: scan(lambda c, v: (c, v), [], x), RuntimeError, "init"),
    (lambda x: scan(lambda c, v: c + v, x[0], x), RuntimeError, "tuple"),
    (lambda x: scan(lambda c, v: (c.double(), v), x[0], x), RuntimeError, "same metadata"),
    (lambda x: scan(lambda c, v: (c, v), x[0], x, dim=5), IndexError, "out of range"),
    (lambda x: scan(lambda c, v: (c, v), x[0], x[:0]), RuntimeError, "dimension > 0"),
    (lambda x: associative_scan(abs, 3, 0), ValueError, "tensors"),
    (lambda x: associative_scan(abs, x, 0, combine_mode="no"), ValueError, "Combine_mode"),
    (lambda x: map(abs, 3), RuntimeError, "tensors"),
    (lambda x: map(abs, x[:0]), RuntimeError, "cannot be 0"),
    (lambda x: map(abs, [x, x[:1]]), RuntimeError, "consistent"),
])  # fmt: skip
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(rushlight.ones(3, 2))
