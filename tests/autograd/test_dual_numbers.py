"""Forward mode: tangents that travel with tensors, at nested levels, through views, writes, Functions and transforms."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad
from rushlight.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

X = torch.tensor([[0.5, 1.5], [2.0, 0.3]], dtype=torch.float64)
V = torch.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=torch.float64)


def tangent(function, primal=X, direction=V):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(primal, direction))).tangent


def close(found, wanted):
    torch.testing.assert_close(found, wanted)


def test_nothing_is_recorded():
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(X, V)
        result = dual.sin() * dual
        assert not dual.requires_grad and not result.requires_grad
        close(forward_ad.unpack_dual(result).tangent, (X.cos() * X + X.sin()) * V)


def test_a_level_ends():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, V)
        assert forward_ad.unpack_dual(dual * 2).tangent is not None
    assert forward_ad.unpack_dual(dual).tangent is None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(dual * 2).tangent is None


def test_detached_and_whole_numbers_have_no_tangent():
    assert tangent(lambda dual: dual.detach() * 2) is None
    assert tangent(lambda dual: dual.argmax(1)) is None
    assert tangent(lambda dual: dual.int()) is None


def test_numbers_that_are_added_have_no_tangent():
    close(tangent(lambda dual: dual + 3), V)
    close(tangent(lambda dual: torch.where(dual > 1, dual, 7.0)), torch.where(X > 1, V, torch.zeros_like(V)))
    close(tangent(lambda dual: torch.nn.functional.pad(dual, (1, 1), value=5.0)), torch.nn.functional.pad(V, (1, 1)))


def test_writes_reach_views_and_bases():
    def function(dual):
        whole = torch.zeros(2, 2, dtype=torch.float64)
        row, column = whole[0], whole[:, 1]
        row.copy_(dual[1])
        column.mul_(dual[:, 0])
        return whole

    wanted = jacrev(lambda x: torch.stack([torch.stack([x[1, 0], x[1, 1] * x[0, 0]]), torch.zeros_like(x[0])]))(X)
    close(tangent(function), (wanted * V).sum((2, 3)))


def test_what_is_overwritten_has_no_slope():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X.clone(), V)
        part = dual[0]
        part.fill_(1.0)
        close(forward_ad.unpack_dual(dual).tangent, torch.stack([torch.zeros_like(V[0]), V[1]]))


def test_complex_parts():
    primal, direction = torch.view_as_complex(X), torch.view_as_complex(V)
    close(tangent(lambda dual: dual * dual, primal, direction), 2 * primal * direction)
    close(tangent(lambda dual: dual.abs(), primal, direction), (primal.conj() * direction).real / primal.abs())
    close(tangent(torch.view_as_real, primal, direction), V)


def test_the_inner_level_is_not_the_outer_one():
    one = torch.tensor(1.0)
    _, slope = jvp(lambda a: a * jvp(lambda b: a + b, (one,), (one,))[1], (one,), (one,))
    assert slope.item() == 1


def test_levels_nest():
    _, second = jvp(lambda x: jvp(lambda y: (y * x).sin(), (x,), (V,))[1], (X,), (V,))
    close(second, (torch.cos(X * X) - 2 * X * X * torch.sin(X * X)) * V * V)


def test_forwards_over_backwards_and_the_reverse():
    def function(x):
        return (x.sin().exp() * x.sigmoid()).sum()

    wanted = torch.autograd.functional.hvp(function, X, V)[1]
    close(jvp(grad(function), (X,), (V,))[1], wanted)
    close(grad(lambda x: jvp(function, (x,), (V,))[1])(X), wanted)
    close(hessian(function)(X), jacrev(jacrev(function))(X))
    close(jacfwd(jacfwd(function))(X), jacrev(jacrev(function))(X))


def test_vmap_inside_and_outside():
    def function(x):
        return torch.softmax(x, 0) * x

    wanted = torch.stack([jvp(function, (x,), (v,))[1] for x, v in zip(X, V, strict=True)])
    close(vmap(lambda x, v: jvp(function, (x,), (v,))[1])(X, V), wanted)
    close(jvp(vmap(function), (X,), (V,))[1], wanted)


@pytest.mark.parametrize("chunk_size", [None, 1, 3])
def test_jacobians(chunk_size):
    def function(a, b):
        return {"sums": (a * b).sum(0), "sines": a.sin()}

    found = jacfwd(function, (0, 1), chunk_size=chunk_size)(X, V)
    wanted = jacrev(function, (0, 1))(X, V)
    for name in wanted:
        for one, other in zip(found[name], wanted[name], strict=True):
            close(one, other)


def test_what_a_jacobian_adds():
    found, more = jacfwd(lambda x: (x.sin(), x * 2), has_aux=True)(X[0])
    close(found, torch.diag(X[0].cos()))
    close(more, X[0] * 2)


def test_attention():
    query, direction = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)

    def function(x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    def written_out(x):
        scores = (x @ x.mT / 2).masked_fill(torch.ones(3, 3).triu(1).bool(), -torch.inf)
        return scores.softmax(-1) @ x

    close(jvp(function, (query,), (direction,))[1], jvp(written_out, (query,), (direction,))[1])
    close(jvp(grad(lambda x: function(x).sum()), (query,), (direction,))[1],
          jvp(grad(lambda x: written_out(x).sum()), (query,), (direction,))[1])  # fmt: skip


def test_parameters_as_primals():
    layer = torch.nn.Linear(2, 3).double()
    given = {"weight": layer.weight.detach()}
    _, found = jvp(lambda each: functional_call(layer, each, (X,)), (given,), ({"weight": torch.ones(3, 2).double()},))
    close(found.detach(), X.sum(1, keepdim=True).expand(2, 3))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_forward(x)
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def jvp(ctx, direction, _):
        (x,) = ctx.saved_tensors
        return 2 * x * direction * ctx.factor


def test_functions_of_users():
    close(tangent(lambda dual: Scaled.apply(dual, 3)), 6 * X * V)
    _, second = jvp(lambda x: jvp(lambda y: Scaled.apply(y, 3), (x,), (V,))[1], (X,), (V,))
    close(second, 6 * V * V)


def test_functions_without_jvp_say_so():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="implement the jvp function"):
        tangent(Doubled.apply)


def test_compiled_functions_run_as_they_are():
    compiled = torch.compile(lambda x: x.sin() * x)
    compiled(X)
    close(tangent(compiled), (X.cos() * X + X.sin()) * V)
    close(jvp(compiled, (X,), (V,))[1], (X.cos() * X + X.sin()) * V)


def test_scripted_functions():
    @torch.jit.script
    def scripted(x):
        return x.sin() * x

    for _ in range(4):
        scripted(X)
    close(tangent(scripted), (X.cos() * X + X.sin()) * V)


def test_a_level_that_ends_inside_another_mode():
    forward_ad.enter_dual_level()
    with torch.inference_mode():
        forward_ad.exit_dual_level()
    assert (X * 2).tolist() == [[1, 3], [4, 0.6]]
    with torch.inference_mode(), forward_ad.dual_level():
        close(forward_ad.unpack_dual(forward_ad.make_dual(X, V)[0] * 2).tangent, V[0] * 2)


def test_other_threads_have_no_level():
    found = []
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, V)
        thread = threading.Thread(target=lambda: found.append(forward_ad.unpack_dual(dual * 2).tangent))
        thread.start()
        thread.join()
    assert found == [None]


def test_outputs_that_do_not_depend():
    output, slope = jvp(lambda x: X * 2, (X,), (V,))
    assert not slope.any() and slope.shape == output.shape
    with pytest.raises(RuntimeError, match="does not depend"):
        jvp(lambda x: X * 2, (X,), (V,), strict=True)


def test_bad_arguments():
    with pytest.raises(RuntimeError, match="tuple"):
        jvp(torch.sin, X, V)
    with pytest.raises(RuntimeError, match="python structure"):
        jvp(torch.sin, (X,), (V, V))
    with pytest.raises(RuntimeError, match="different size"):
        jvp(torch.sin, (X,), (V[0],))
    with pytest.raises(ValueError, match="floating point or complex"):
        jvp(torch.neg, (torch.arange(2),), (torch.arange(2),))
    with pytest.raises(ValueError, match="chunk_size"):
        jacfwd(torch.sin, chunk_size=0)


def test_gradients_of_tangents():
    leaf = X.clone().requires_grad_()
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual((forward_ad.make_dual(leaf, V).sin()).sum()).tangent
    close(torch.autograd.grad(found, leaf)[0], -X.sin() * V)
