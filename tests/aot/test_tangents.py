"""Tangents: which saved values, gradients and other tangents each of them meets."""

from __future__ import annotations

import rushlight as torch
from rushlight.aot.joint import trace_joint
from rushlight.aot.partition import default_partition
from rushlight.aot.tangents import backward_of, follow_tangents
from rushlight.fx.proxy_tensor import capture


def followed(function, *shapes):
    inputs = [torch.ones(*shape, requires_grad=True) for shape in shapes]
    with torch.no_grad():
        module = capture(function, inputs).module
    partition = default_partition(trace_joint(module, inputs, {}, {}))
    return follow_tangents(partition), partition


def test_results_of_different_inputs_do_not_meet():
    tangents, partition = followed(lambda a, b: (a.sin().sum(), b.exp().sum()), (2,), (3,))
    assert tangents.reached == [frozenset([0]), frozenset([1])] and tangents.met == tangents.reached
    assert len(partition.saved) == 2 and all(len(read) == 1 for read in tangents.read)


def test_sums_at_a_shared_input_are_no_meeting():
    tangents, _ = followed(lambda a, b: ((a * b).sum(), (a.exp() + a).sum()), (2,), (2,))
    assert tangents.reached == [frozenset([0, 1]), frozenset([0])] and tangents.met == [frozenset([0]), frozenset([1])]


def test_results_meet_where_both_gradients_are_multiplied_with_a_saved_value():
    def program(a):
        values = a.exp()
        return values, values.sum(), a.sum()

    tangents, _ = followed(program, (2,))
    assert tangents.met == [frozenset([0, 1]), frozenset([0, 1]), frozenset([2])] and not tangents.read[2]


def test_the_backward_of_some_tangents_alone():
    def program(a, b):
        return (a.log() * b).sum(), (b.exp() + a).sum(0)

    _, partition = followed(program, (2, 3), (2, 3))
    part = backward_of(partition, frozenset([1]))
    read = {node.name for node in part.module.graph.nodes if node.op == "placeholder"}
    assert part.gradients == [0, 1] and len(part.saved) == 1 and read == {"exp", "tangents_2"}
    code = part.module.code
    assert "full" in code and "log" not in code and "div" not in code
