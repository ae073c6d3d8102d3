"""Edges, versions, history and saved values of compiled programs, against what autograd's Python does."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight._C import give_histories, gradient_edges, keep_values, tensor_versions
from rushlight.autograd.node import Node
from rushlight.autograd.saved_tensor import SavedTensor
from rushlight.autograd.view_history import gradient_edge


def test_edges_are_those_of_python():
    leaf, plain = torch.ones(3, requires_grad=True), torch.ones(3)
    view = leaf.view(3, 1)
    values = (leaf, plain, leaf * 2, view, view.detach(), 5)
    edges = gradient_edges(values, tuple(range(len(values))))
    assert list(edges[:-1]) == [gradient_edge(value) for value in values[:-1]] and edges[-1] == (None, 0)
    assert gradient_edges(values, (2, 0)) == (edges[2], edges[0])


def test_an_edge_of_a_view_whose_base_was_written_to():
    base = torch.ones(4)
    view = base[:2]
    base.mul_(torch.ones(4, requires_grad=True))
    ((node, number),) = gradient_edges((view,), (0,))
    assert node.name() == "AsStridedBackward0" and number == 0


def test_versions_are_those_of_tensors():
    x = torch.ones(3)
    x.add_(1)
    assert tensor_versions((x, 7, torch.ones(2), None)) == [1, 0]


def test_outputs_get_history():
    node = Node()
    first, second = torch.ones(2, 3), torch.ones(4, dtype=torch.float64)
    give_histories(node, [first, 1, second], (2, 0))
    assert second.grad_fn is node and second._impl.autograd.output_nr == 0
    assert first.grad_fn is node and first._impl.autograd.output_nr == 1
    assert node.output_info == [((4,), torch.float64, torch.device("cpu")), ((2, 3), torch.float32, torch.device("cpu"))]


def test_values_are_kept_with_their_versions():
    primal, further, output = torch.ones(3), torch.ones(2), torch.ones(4)
    primal.add_(1)
    node = Node()
    give_histories(node, [output], (0,))
    kept = keep_values(((0, 0), (1, 0), (2, 0), (0, 1)), (primal, 8), [further], [output])
    assert [type(value) for value in kept] == [SavedTensor] * 3 + [int] and kept[3] == 8
    assert kept[0].unpack(node) is primal and kept[0].version == 1 and kept[1].unpack(node) is further
    alias = kept[2].unpack(node)
    assert alias is not output and alias._impl.storage is output._impl.storage and alias.grad_fn is None
    output.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept[2].unpack(node)


def test_hooks_on_saved_tensors_are_called():
    x = torch.ones(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value.tolist(), torch.tensor):
        (kept,) = keep_values(((0, 0),), (x,), (), ())
    assert kept.unpack(Node()).tolist() == [1.0] * 3


def test_inference_tensors_are_not_kept():
    with torch.inference_mode():
        x = torch.ones(3)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        keep_values(((0, 0),), (x,), (), ())


X = torch.ones(2)
BAD = {
    "edges of nothing": lambda: gradient_edges(),
    "edges of a tensor": lambda: gradient_edges(X, (0,)),
    "an edge beyond": lambda: gradient_edges((X,), (1,)),
    "an edge before": lambda: gradient_edges((X,), (-1,)),
    "an edge by name": lambda: gradient_edges((X,), ("x",)),
    "an edge far beyond": lambda: gradient_edges((X,), (1 << 70,)),
    "versions of a number": lambda: tensor_versions(1),
    "history by a tensor": lambda: give_histories(X, (X,), (0,)),
    "history of a number": lambda: give_histories(Node(), (1,), (0,)),
    "history beyond": lambda: give_histories(Node(), (X,), (1,)),
    "values of no kind": lambda: keep_values(((3, 0),), (X,), (), ()),
    "values of a negative kind": lambda: keep_values(((-1, 0),), (X,), (), ()),
    "values beyond": lambda: keep_values(((1, 0),), (X,), (), ()),
    "values at no place": lambda: keep_values((0,), (X,), (), ()),
    "values at half a place": lambda: keep_values(((0,),), (X,), (), ()),
    "values of a list of places": lambda: keep_values([], (X,), (), ()),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_nonsense_is_refused(call):
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)):
        call()
