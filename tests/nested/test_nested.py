"""Nested tensors: pieces keep their lengths, functions work piece by piece, gradients reach them, values and texts are torch's."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight as rl
from rushlight import nested
from rushlight.fx.experimental.symbolic_shapes import is_nested_int
from rushlight.nn import functional as F

LONG, SHORT = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[6.0, 7.0, 8.0]]


def example(library=rl, **options):
    return library.nested.nested_tensor([library.tensor(LONG), library.tensor(SHORT)], **options)


def test_arguments_without_a_meaning_here_are_refused():
    with pytest.raises(RuntimeError, match="pin_memory"):
        example(pin_memory=True)
    with pytest.raises(RuntimeError, match="out"):
        nested.to_padded_tensor(example(), 0.0, out=rl.ones(2))
    assert is_nested_int(example(layout=rl.jagged).size(1)) and not is_nested_int(-1)


@pytest.mark.parametrize("layout", [rl.strided, rl.jagged])
def test_a_nested_tensor_is_described_by_its_pieces(layout):
    n = example(layout=layout)
    assert isinstance(n, rl.Tensor) and n.is_nested and n.layout is layout and n.dtype is rl.float32
    assert (n.dim(), n.numel(), len(n), n.size(0), n.size(2), n.size(-1)) == (3, 9, 2, 2, 3, 3)
    assert [each.tolist() for each in n.unbind()] == [LONG, SHORT] and n[1].tolist() == SHORT and n[-2].tolist() == LONG
    assert n.to_padded_tensor(-1.0).tolist() == [LONG, [*SHORT, [-1, -1, -1]]]
    assert nested.to_padded_tensor(n, 0, (3, 2, 4)).shape == (3, 2, 4)
    assert not rl.ones(2).is_nested and n.double().dtype is rl.float64
    with pytest.raises(RuntimeError, match="output_size"):
        n.to_padded_tensor(0.0, (2, 1, 3))
    with pytest.raises(IndexError):
        n[2]


def test_layouts_differ_in_what_is_irregular():
    strided, jagged = example(), example(layout=rl.jagged)
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular"):
        strided.size(1)
    with pytest.raises(RuntimeError):
        strided.shape  # noqa: B018
    assert jagged.shape[1] == jagged.size(1) and jagged.relu().size(1) == jagged.size(1) != example(layout=rl.jagged).size(1)
    assert jagged.offsets().tolist() == [0, 2, 3] and jagged.values().tolist() == [*LONG, *SHORT]
    assert strided.values().tolist() == list(range(9))


def test_copies_are_leaves_and_pieces_share_memory():
    source = rl.tensor(LONG)
    n = nested.nested_tensor([source, rl.tensor(SHORT)])
    source.zero_()
    assert n[0].tolist() == LONG
    n.unbind()[0].fill_(1)
    assert n[0].tolist() == [[1.0] * 3] * 2
    n.mul_(2)
    assert n[0].tolist() == [[2.0] * 3] * 2
    for made in (copy.deepcopy(n), pickle.loads(pickle.dumps(n)), n.clone()):
        made[1].zero_()
        assert made.is_nested and n[1].tolist() == [[12.0, 14.0, 16.0]]


def test_gradients_reach_the_pieces():
    a, b = rl.tensor(LONG, requires_grad=True), rl.tensor(SHORT, requires_grad=True)
    (nested.as_nested_tensor([a, b]) * 2).to_padded_tensor(0.0).sum().backward()
    assert a.grad.tolist() == [[2.0] * 3] * 2 and b.grad.tolist() == [[2.0] * 3]
    leaf = example(requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad is None
    (leaf * leaf).to_padded_tensor(0.0).sum().backward()
    assert leaf.grad.is_nested and [each.tolist() for each in leaf.grad.unbind()] == [(rl.tensor(x) * 2).tolist() for x in (LONG, SHORT)]
    values = rl.arange(10.0).reshape(5, 2).requires_grad_()
    (nested.nested_tensor_from_jagged(values, rl.tensor([0, 2, 5])) ** 2).values().sum().backward()
    assert values.grad.equal(values.detach() * 2)


def test_jagged_parts():
    values = rl.arange(10.0).reshape(5, 2)
    n = nested.nested_tensor_from_jagged(values, lengths=rl.tensor([2, 3]))
    assert [len(each) for each in n] == [2, 3] and n.values() is values
    assert [len(each) for each in nested.nested_tensor_from_jagged(values, rl.tensor([0, 2, 5]), rl.tensor([1, 2]))] == [1, 2]
    for offsets in ([0, 9], [-1, 2], [3, 1]):
        with pytest.raises(RuntimeError, match="leaves the 5 of values"):
            nested.nested_tensor_from_jagged(values, rl.tensor(offsets))
    with pytest.raises(RuntimeError, match="offsets or lengths"):
        nested.nested_tensor_from_jagged(values)


def test_attention_by_heads():
    lengths, heads, width = (4, 2), 2, 3
    pieces = [rl.randn(length, heads * width) for length in lengths]
    for layout in (rl.strided, rl.jagged):
        n = nested.as_nested_tensor(pieces, layout=layout)
        split = n.unflatten(-1, [heads, width]).transpose(1, 2)
        joined = F.scaled_dot_product_attention(split, split, split).transpose(1, 2).flatten(-2)
        viewed = n.view(2, -1, heads, width).transpose(1, 2) if layout is rl.strided else n.view(2, n.size(1), heads, width)
        assert viewed.dim() == 4
        for piece, found in zip(pieces, joined.unbind(), strict=True):
            q = piece.view(1, -1, heads, width).transpose(1, 2)
            assert rl.allclose(found, F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2)[0], atol=1e-5)


def test_modules_take_nested_tensors():
    layer = rl.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    pieces = [rl.randn(3, 4), rl.randn(2, 4)]
    for layout in (rl.strided, rl.jagged):
        found = layer(nested.as_nested_tensor(pieces, layout=layout))
        assert all(rl.allclose(a, layer(b[None])[0], atol=1e-5) for a, b in zip(found.unbind(), pieces, strict=True))
    embedded = rl.nn.Embedding(5, 2)(nested.nested_tensor([rl.tensor([1, 2]), rl.tensor([3])]))
    assert [tuple(each.shape) for each in embedded.unbind()] == [(2, 2), (1, 2)]


def test_what_has_no_meaning_is_refused():
    n = example()
    for call in (n.t, n.numpy, lambda: n + rl.ones(2, 3), lambda: n.transpose(0, 1), lambda: n.flatten(), lambda: rl.fft.fft(n)):
        with pytest.raises((RuntimeError, NotImplementedError)):
            call()
    with pytest.raises(RuntimeError, match="do not broadcast"):
        n + nested.nested_tensor([rl.ones(3, 3), rl.ones(1, 3)])
    with pytest.raises(RuntimeError, match="same dimension"):
        nested.nested_tensor([rl.ones(2, 3), rl.ones(2)])
    with pytest.raises(RuntimeError, match="single ragged dimension"):
        nested.nested_tensor([rl.ones(2, 3), rl.ones(1, 4)], layout=rl.jagged)
    with pytest.raises(TypeError, match="Only lists"):
        nested.nested_tensor(3)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        example(requires_grad=True).relu().backward()


@pytest.mark.oracle
class TestOracle:
    CALLS = (
        lambda t, n: n + n, lambda t, n: n * 2 - n, lambda t, n: -n, lambda t, n: t.relu(n), lambda t, n: t.nn.functional.gelu(n),
        lambda t, n: t.nn.functional.silu(n), lambda t, n: t.tanh(n), lambda t, n: t.softmax(n, -1), lambda t, n: n.softmax(1),
        lambda t, n: t.nn.functional.linear(n, t.arange(12.0).reshape(4, 3) / 9, t.ones(4)), lambda t, n: n.transpose(1, 2),
        lambda t, n: t.nn.functional.layer_norm(n, (3,), t.ones(3), t.ones(3)), lambda t, n: n.unsqueeze(-1),
        lambda t, n: n.chunk(3, -1)[1], lambda t, n: t.zeros_like(n), lambda t, n: t.nn.functional.dropout(n, 0.5, False),
        lambda t, n: n.view(2, -1, 3), lambda t, n: n.sum(-1, keepdim=True),
    )  # fmt: skip

    @pytest.mark.parametrize("place", range(len(CALLS)))
    @pytest.mark.parametrize("layout", ["strided", "jagged"])
    def test_functions(self, place, layout):
        torch = pytest.importorskip("torch")
        found = []
        for library in (rl, torch):
            result = self.CALLS[place](library, example(library, layout=getattr(library, layout)))
            found.append([np.asarray(each.tolist()) for each in result.unbind()])
        for mine, its in zip(*found, strict=True):
            np.testing.assert_allclose(mine, its, atol=1e-5)

    def test_reductions_of_the_layout_jagged(self):
        torch = pytest.importorskip("torch")
        for call in (lambda n: n.sum(), lambda n: n.sum(1), lambda n: n.mean(), lambda n: n.mean(1), lambda n: n.max()):
            mine, its = (call(example(library, layout=library.jagged)) for library in (rl, torch))
            np.testing.assert_allclose(np.asarray(mine.tolist()), np.asarray(its.tolist()), atol=1e-5)

    def test_texts(self):
        torch = pytest.importorskip("torch")
        for options in ({}, {"requires_grad": True}, {"dtype": "float64"}):
            shown = []
            for library in (rl, torch):
                given = {key: getattr(library, value) if isinstance(value, str) else value for key, value in options.items()}
                n = example(library, **given)
                shown.append([repr(n), repr(n.relu()), repr(library.nested.nested_tensor([[1, 2], [3]])), repr(n.unsqueeze(-1))])
            assert shown[0] == shown[1]

    def test_masked_select_and_narrow(self):
        torch = pytest.importorskip("torch")
        found = []
        for library in (rl, torch):
            whole = library.arange(24.0).reshape(2, 4, 3)
            narrowed = library.nested.narrow(whole, 1, library.tensor([0, 1]), library.tensor([3, 2]), layout=library.jagged)
            chosen = library.nested.masked_select(whole[:, :, 0], whole[:, :, 0] > 4)
            found.append([[each.tolist() for each in n.unbind()] for n in (narrowed, chosen)])
        assert found[0] == found[1]
