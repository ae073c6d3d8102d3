"""Gradual types of tensors in traced programs: relations, broadcasting, inference and what is refused."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight import fx, nn
from rushlight.fx.experimental.graph_gradual_typechecker import GraphTypeChecker, broadcast_types, get_greatest_upper_bound
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

Known, Partial = TensorType((1, 2, 3)), TensorType[1, Dyn, 3]


def checked(program, *inputs) -> list:
    """The types of the nodes of a program, for types of its inputs."""
    traced = fx.symbolic_trace(program)
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, kind in zip(placeholders, inputs, strict=True):
        node.type = kind
    assert GraphTypeChecker({}, traced).type_check()
    return [node.type for node in traced.graph.nodes]


def test_relations():
    assert is_consistent(Known, Partial) and is_consistent(int, Dyn) and not is_consistent(Known, TensorType((1, 2)))
    assert is_more_precise(Known, Partial) and not is_more_precise(Partial, Known) and not is_more_precise(Known, int)
    assert get_greatest_upper_bound(Partial, TensorType((Dyn, 2, Dyn))) == Known
    assert len({Known, TensorType([1, 2, 3]), Dyn}) == 2


def test_broadcasting():
    both = TensorType((1, 2, 3, 4))
    assert broadcast_types(TensorType((2, 3, 4)), TensorType((1, 2, 1, 4))) == (both, both)
    assert broadcast_types(TensorType(()), TensorType((4, 1))) == (TensorType((4, 1)), TensorType((4, 1)))


def test_inference():
    image = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(6), nn.AdaptiveAvgPool2d((2, None)))
    wanted = image(rl.zeros(4, 3, 20, 12)).shape
    assert checked(image, TensorType((4, 3, 20, 12)))[-1] == TensorType(wanted)
    assert checked(image, TensorType((4, 3, Dyn, 12)))[-1] == TensorType((4, 6, 2, 4))
    assert checked(nn.Sequential(nn.Linear(5, 7)), TensorType((Dyn, 5)))[-1] == TensorType((Dyn, 7))
    assert checked(lambda x: rl.flatten(x, 1, end_dim=-2), TensorType((2, 3, 4, Dyn)))[-1] == TensorType((2, 12, Dyn))
    assert checked(lambda x: rl.transpose(x, 0, 1) + 1, TensorType((2, Dyn)))[-1] == TensorType((Dyn, 2))
    assert checked(lambda x, y: rl.add(x, y), TensorType((1, 2, Dyn)), Known)[-1] == TensorType((1, 2, Dyn))


@pytest.mark.parametrize("program, kind", [
    (lambda x: rl.reshape(x, [1, 2, -1]), TensorType((1, 5))), (lambda x: rl.transpose(x, 0, 4), Known),
    (nn.Sequential(nn.Linear(5, 7)), TensorType((2, 6))), (nn.Sequential(nn.Conv2d(3, 6, 5)), TensorType((4, 2, 8, 8))),
    (nn.Sequential(nn.BatchNorm2d(3)), Known),
    (lambda x: x + x.new_zeros(2), Dyn),
])  # fmt: skip
def test_what_is_refused(program, kind):
    with pytest.raises((TypeError, RuntimeError)):
        checked(program, kind)
