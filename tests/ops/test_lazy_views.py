"""Conjugates and negatives as views: what they share, what operators see of them, and what is refused."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch

VALUES = [1 + 2j, 3 - 4j, -1j]


@pytest.fixture
def x():
    return torch.tensor(VALUES)


def test_views_inherit_what_they_stand_for(x):
    y = x.conj()
    assert y.is_conj() and not y.is_neg() and y.data_ptr() == x.data_ptr() and y._is_view()
    assert y[1:].is_conj() and y.view(3, 1).is_conj() and y.detach().is_conj() and torch.is_conj(y)
    assert y.imag.is_neg() and not y.real.is_neg() and y.imag[1:].unsqueeze(0).expand(2, 2).is_neg()
    assert not y.conj().is_conj() and not y.clone().is_conj() and not (y * 1).is_conj() and not torch.stack([y, y]).is_conj()
    matrix = x.view(1, 3)
    assert matrix.mH.is_conj() and matrix.H.is_conj() and matrix.adjoint().is_conj()
    assert torch.ones(2).conj().is_conj() is False


def test_values(x):
    y = x.conj()
    conjugates = np.conj(VALUES).tolist()
    assert y.tolist() == conjugates and y.resolve_conj().numpy().tolist() == conjugates and list(map(complex, y)) == conjugates
    assert repr(y) == "tensor([1.-2.j, 3.+4.j, -0.+1.j])" and y.numpy(force=True).tolist() == conjugates
    assert y.imag.tolist() == [-2, 4, 1] and y.imag.resolve_neg().numpy().tolist() == [-2, 4, 1]
    assert y.sum().item() == 4 + 3j and torch.equal(y, y.resolve_conj()) and (y.imag + 1).tolist() == [-1, 5, 2]
    assert torch.cat([y, x]).tolist() == conjugates + VALUES and torch.tensor(y).tolist() == conjugates
    assert y.to(torch.complex128).tolist() == conjugates and y.imag.sort().values.tolist() == [-2, 1, 4]
    a, b = torch.randn(3, 2, dtype=torch.complex64), torch.randn(3, 2, dtype=torch.complex64)
    assert torch.allclose(a.mH @ b, torch.from_numpy(a.numpy().conj().T @ b.numpy()))


def test_writes_reach_the_memory(x):
    y = x.conj()
    y[0] = 7 + 7j
    assert x.tolist() == [7 - 7j, 3 - 4j, -1j]
    y.imag.mul_(2)
    assert x.tolist() == [7 - 14j, 3 - 8j, -2j]
    y.add_(1j)
    assert x.tolist() == [7 - 15j, 3 - 9j, -3j]
    y.real = torch.tensor([1.0, 2.0, 3.0])
    y.imag = torch.tensor([4.0, 5.0, 6.0])
    assert x.tolist() == [1 - 4j, 2 - 5j, 3 - 6j]
    y.copy_(torch.tensor(VALUES).conj())
    assert x.tolist() == VALUES
    torch.add(x, 1j, out=y)
    assert x.tolist() == [1 - 3j, 3 + 3j, 0j] and y.is_conj()
    assert y.zero_() is y and not x.any()
    version = x._version
    y.mul_(2)
    assert x._version > version


def test_what_shows_memory_refuses(x):
    y = x.conj()
    with pytest.raises(RuntimeError, match=r"conjugate bit set. Use tensor.resolve_conj\(\).numpy\(\)"):
        y.numpy()
    with pytest.raises(RuntimeError, match=r"negative bit set. Use tensor.resolve_neg\(\).numpy\(\)"):
        y.imag.numpy()
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(y)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        y.view(torch.float32)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set"):
        y.imag.view(torch.int32)
    with pytest.raises(BufferError, match="conjugate bit"):
        y.__dlpack__()
    with pytest.raises(BufferError, match="negative bit"):
        y.imag.__dlpack__()


def test_copies_and_files(x):
    y = x.conj()
    assert copy.copy(y).is_conj() and pickle.loads(pickle.dumps(y)).tolist() == y.tolist()
    assert not copy.deepcopy(y).is_conj() and copy.deepcopy(y).tolist() == y.tolist()
    file = io.BytesIO()
    torch.save({"y": y, "x": x, "n": x.clone().conj().imag}, file)
    for weights_only in (True, False):
        file.seek(0)
        loaded = torch.load(file, weights_only=weights_only)
        assert loaded["y"].is_conj() and loaded["y"].tolist() == y.tolist() and loaded["n"].is_neg()
        assert loaded["n"].tolist() == y.imag.tolist() and loaded["y"].data_ptr() == loaded["x"].data_ptr()


def test_gradients():
    w = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    (w.conj().imag * torch.tensor([1.0, 5.0])).sum().backward()
    assert w.grad.tolist() == [-1j, -5j]
    w.grad = None
    v = w * 1
    v.conj().mul_(torch.tensor([2j, 1]))  # written through the view: v is 2j-bar times the old, and the old
    (v * v.conj()).real.sum().backward()
    assert torch.allclose(w.grad, torch.tensor([8 + 16j, 6 - 8j]))
    start = torch.randn(3, dtype=torch.complex128)

    def through_views(z):
        z = z.clone()
        view = z.conj()
        view[1:].mul_(2j)
        z.mul_(1 + 1j)
        view.imag[0] = 0
        return view * z, view.imag.sum()

    for leaf in (start, start.conj()):
        assert torch.autograd.gradcheck(through_views, leaf.detach().requires_grad_())


def test_batches_and_meta_tensors():
    rows = torch.randn(2, 3, dtype=torch.complex64)
    assert torch.vmap(torch.conj)(rows).is_conj() and torch.equal(torch.vmap(lambda row: row.conj() * 2)(rows), rows.conj() * 2)
    made = torch.empty(2, dtype=torch.complex64, device="meta").conj()
    assert made.is_conj() and not (made * 2).is_conj()


def test_compiled_functions():
    a = torch.randn(3, 4, dtype=torch.complex64)

    def views(t):
        return t.conj() * 2, t.conj(), t.conj().imag * 3, t.conj().imag

    for made, wanted in zip(torch.compile(views)(a), views(a), strict=True):
        assert torch.allclose(made, wanted)
    view = torch.compile(views)(a)[1]
    assert view.is_conj() and view.data_ptr() == a.data_ptr()
    double = torch.compile(lambda t: t * 2)
    for given in (a.imag, a.conj().imag, a.imag):
        assert torch.equal(double(given), given * 2)


def _written(t):
    c = t.conj()
    c.mul_(2j)
    part = c.imag
    part[0] = 1
    return part.sum() + t.real.sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_writes_through_views(backend):
    a = torch.randn(3, 4, dtype=torch.complex64)
    mine, theirs = a.clone(), a.clone()
    assert torch.allclose(torch.compile(_written, backend=backend)(mine), _written(theirs)) and torch.equal(mine, theirs)


def test_scripts_and_traces():
    a, b = torch.randn(2, 3, dtype=torch.complex64), torch.randn(2, 3, dtype=torch.complex64)
    traced = torch.jit.trace(lambda t: t.conj() @ t.mT, (a,))
    assert torch.allclose(traced(b), b.conj() @ b.mT)

    @torch.jit.script
    def doubled(t):
        c = t.conj()
        c.mul_(2)
        return c.imag

    old = a.clone()
    assert torch.equal(doubled(a), old.imag * -2) and torch.equal(a, old * 2)


def test_optimizers_read_what_gradients_stand_for():
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        p, q = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
        p.grad = torch.full((3,), 1j).conj().imag
        q.grad = -torch.ones(3)
        for each in (p, q):
            kind([each], lr=0.1).step()
        assert torch.equal(p, q)
