"""In-place writes: where they are forbidden, what they invalidate, and the gradients through written views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as rl


def leaf(*sizes: int) -> rl.Tensor:
    return rl.ones(sizes, requires_grad=True)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: x[0].zero_(), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: x.__setitem__(0, 1.0), "a view of a leaf Variable that requires grad"),
        (lambda x: x.uniform_(), "a leaf Variable that requires grad"),
    ],
)
def test_leaves_are_not_written_to(write, message):
    with pytest.raises(RuntimeError, match=message):
        write(leaf(2, 2))
    x = leaf(2, 2)
    with rl.no_grad():
        write(x)
    assert x._version == 1 and x.is_leaf
    write(x.detach())


def test_version_errors_say_what_was_written_to():
    x = leaf(2, 3)
    z = x.exp()
    y = z * z
    z.add_(1)
    message = (
        r"one of the variables needed for gradient computation has been modified by an inplace operation: "
        r"\[torch.FloatTensor \[2, 3\]\], which is output 0 of Add, is at version 1; expected version 0 instead"
    )
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        lambda t, x: (lambda y: (y.add_(1), y.sum())[1])(x.exp()),
        lambda t, x: (lambda y, z: (y.add_(1), z.sum())[1])(*(lambda y: (y, y * y))(x * 1)),
        lambda t, x: (lambda y, z: (y[0].add_(1), z.sum())[1])(*(lambda y: (y, y.view(-1) * 2 * y.view(-1)))(x * 1)),
        lambda t, x: (lambda y, z: (y.detach().zero_(), z.sum())[1])(*(lambda y: (y, y.sin()))(x * 1)),
        lambda t, x: (lambda y, z: (y.data.zero_(), z.sum())[1])(*(lambda y: (y, y.sin()))(x * 1)),
        lambda t, x: (lambda y, z: (y.zero_(), z.sum())[1])(*(lambda y: (y, y + 1))(x * 1)),
        lambda t, x: (lambda y, z: (z.zero_(), z.sum())[1])(*(lambda y: (y, y.sigmoid()))(x * 1)),
        lambda t, x: (lambda y, z: (z.mul_(2), z.sum())[1])(*(lambda y: (y, y.sin()))(x * 1)),
    ],
)  # fmt: skip
def test_errors_and_gradients_after_writes_are_torchs(program):
    torch = pytest.importorskip("torch")

    def run(library):
        x = library.ones(2, 3, requires_grad=True)
        try:
            program(library, x).backward()
        except RuntimeError as error:
            return str(error).partition(" Hint")[0]
        return x.grad.tolist()

    got, expected = run(rl), run(torch)
    assert got == expected if isinstance(expected, str) else np.allclose(got, expected)


def test_a_write_becomes_part_of_the_graph():
    x, w = leaf(3), leaf(3)
    y = x * 2
    y.mul_(w)
    assert y.grad_fn.name() == "MulBackward0" and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and w.grad.tolist() == [2, 2, 2]
    fresh = rl.zeros(3)
    fresh.add_(x)
    assert fresh.requires_grad and fresh.grad_fn.name() == "AddBackward0"


def test_views_of_a_written_base_get_a_new_history():
    x = leaf(4)
    base = rl.zeros(2, 2)
    view = base.view(4)
    base.add_(x.view(2, 2) * 3)
    assert view.requires_grad and view.grad_fn.name() == "AsStridedBackward0" and not view.is_leaf
    (view * rl.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [0, 3, 6, 9]


def test_a_written_view_changes_the_history_of_its_base():
    x, w = leaf(2, 3), leaf(3)
    base = x * 2
    row = base[0]
    row.mul_(w)
    assert base.grad_fn.name() == "CopySlices" and row.grad_fn.name() == "AsStridedBackward0"
    (base * base).sum().backward()
    assert x.grad.tolist() == [[8, 8, 8], [8, 8, 8]] and w.grad.tolist() == [8, 8, 8]


def test_overlapping_views_of_a_written_base():
    x = leaf(1, 2)
    base = x * 1
    wide, windows = base.expand(3, 2), base[0].unfold(0, 1, 1)
    base.mul_(5)
    (wide.sum() + windows.sum()).backward()
    assert x.grad.tolist() == [[20, 20]]


def test_views_made_without_recording_are_not_written_to():
    x = leaf(3)
    y = x * 2
    with rl.no_grad():
        view = y[:2]
        view.add_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and.*modified inplace with grad mode enabled"):
        view.mul_(2)
    with rl.inference_mode():
        other = y[:2]
    with pytest.raises(RuntimeError, match="A view was created in inference mode"):
        other.mul_(2)
    with rl.no_grad():
        view.mul_(2)


STEPS = {
    "mul": lambda t, x, n: x.mul_(1.0 + n),
    "add": lambda t, x, n: x.add_(x.detach().clone(), alpha=n),
    "square": lambda t, x, n: x.mul_(x.clone()),
    "zero": lambda t, x, n: x.zero_() if n == 2 else x,
    "copy": lambda t, x, n: x.copy_(x.flip(0) * 2) if x.dim() else x,
    "set": lambda t, x, n: (x.__setitem__(0, x[-1].clone() * n), x)[1] if x.dim() and x.shape[0] else x,
    "slice": lambda t, x, n: x[n % 2 :] if x.dim() and x.shape[0] > 1 else x,
    "select": lambda t, x, n: x.select(n % x.dim(), 0) if x.dim() > 1 else x,
    "transpose": lambda t, x, n: x.transpose(0, -1) if x.dim() else x,
    "view": lambda t, x, n: x.view(-1) if x.is_contiguous() else x,
    "unsqueeze": lambda t, x, n: x.unsqueeze(0) if x.dim() < 4 else x,
    "diagonal": lambda t, x, n: x.diagonal() if x.dim() > 1 else x,
    "base": lambda t, x, n: x._base if x._base is not None else x,
    "double": lambda t, x, n: x * 2,
}


def run_chain(library, chain: list, data: np.ndarray) -> tuple:
    """The results of all tensors on the way, and the gradient of their weighted sum."""
    x = library.from_numpy(data.copy()).requires_grad_()
    current = x * 1
    seen = [current]
    for name, number in chain:
        current = STEPS[name](library, current, number)
        seen.append(current)
    total = sum(((index + 1) * tensor * tensor).sum() for index, tensor in enumerate(seen))
    total.backward()
    names = [type(t.grad_fn).__name__ if t.grad_fn is None else t.grad_fn.name().replace("0", "") for t in seen]
    return [t.tolist() for t in seen], x.grad.numpy(), [name in ("CopySlices", "AsStridedBackward") for name in names]


@pytest.mark.oracle
@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 3)), max_size=8), st.integers(0, 99))
def test_chains_of_views_and_writes_are_torchs(chain, seed):
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(seed).uniform(0.5, 1.5, (2, 3))
    values, gradient, rebuilt = run_chain(rl, chain, data)
    expected_values, expected_gradient, expected_rebuilt = run_chain(torch, chain, data)
    for got, want in zip(values, expected_values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9)


@pytest.mark.parametrize("kind", [rl.bool, rl.int64], ids=str)
def test_a_copy_to_integers_has_no_history(kind):
    source = rl.ones(3).requires_grad_()
    target = rl.zeros(3, dtype=kind)
    assert target.copy_(source) is target and not target.requires_grad and target.grad_fn is None


@pytest.mark.parametrize(("name", "arguments"), [
    ("clamp", (0.2, 0.7)), ("clamp", (rl.tensor(0.5),)), ("clip", (None, 0.5)), ("square", ()), ("logit", ()),
    ("renorm", (2, 0, 0.5)), ("clamp_max", (0.4,)),
])  # fmt: skip
def test_composite_writes_keep_what_their_gradients_read(name, arguments):
    """The gradient is that of the operator that is not in place, though what it read has been overwritten."""
    x = rl.linspace(0.1, 0.9, 6).view(2, 3).requires_grad_()
    whole = x * 1
    (getattr(whole[1:], f"{name}_")(*arguments) * x).sum().backward()
    (want,) = rl.autograd.grad((getattr(x[1:], name)(*arguments) * x).sum(), x)
    np.testing.assert_allclose(x.grad.numpy(), want.numpy(), rtol=1e-6)


WRITES = {
    "mul": lambda x, y: x.mul_(y), "div": lambda x, y: x.div_(y), "pow": lambda x, y: x.pow_(y), "square": lambda x, y: x.square_(),
    "sin": lambda x, y: x.sin_(), "exp": lambda x, y: x.exp_(), "tanh": lambda x, y: x.tanh_(), "atan2": lambda x, y: x.atan2_(y),
    "addcmul": lambda x, y: x.addcmul_(y, y), "lerp": lambda x, y: x.lerp_(y, y), "sigmoid": lambda x, y: x.sigmoid_(),
    "hypot": lambda x, y: x.hypot_(y), "cumsum": lambda x, y: x.cumprod_(0), "clamp": lambda x, y: x.clamp_(max=y).mul_(y),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("part", [slice(None), slice(1, 3)], ids=["whole", "view"])
def test_second_derivatives_go_through_what_was_overwritten(name, part):
    x = rl.tensor([0.4, 1.3, 0.7, 1.1], dtype=rl.float64, requires_grad=True)
    y = rl.tensor([1.2, 0.6, 1.4, 0.9], dtype=rl.float64, requires_grad=True)

    def function(x, y):
        z = x.clone()
        WRITES[name](z[part], y[part])
        return z

    assert rl.autograd.gradcheck(function, (x, y)) and rl.autograd.gradgradcheck(function, (x, y))


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_", "logical_or_", "logical_xor_"])
def test_comparisons_in_place_leave_no_gradient(name):
    x = leaf(3)
    z = x * 2
    getattr(z, name)(rl.ones(3))
    assert z.requires_grad
    z.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
