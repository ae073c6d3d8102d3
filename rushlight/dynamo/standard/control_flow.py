"""`cond` and `while_loop` in captured functions: each call is one node, which holds subgraphs for its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue, wrap_result
from rushlight.func.control_flow import cond, described, while_loop

if TYPE_CHECKING:
    from rushlight.dynamo.subgraphs import Subgraph, Tree
    from rushlight.dynamo.values.base import Following
    from rushlight.fx.node import Node

operators = LazyModule("rushlight.library.control_flow")
# Lazy, because it imports all kinds of values, and these import the handlers.
subgraphs = LazyModule("rushlight.dynamo.subgraphs")


def _cond(tx: Following, pred: Value, true_fn: Value, false_fn: Value, operands: Value | None = None) -> Value:
    args = [] if operands is None else operands.items_of(tx)
    if not isinstance(pred, TensorValue):  # the condition is known at capture
        return (true_fn if pred.truth(tx) else false_fn).call(tx, args, {})
    if pred.fake.numel() != 1:
        raise GraphBreak("cond whose condition is no tensor of one element")
    branches = [
        subgraphs.follow(tx, f"a branch of cond, {function},", function, [], lambda _, f=function: f.call(tx, args, {}))
        for function in (true_fn, false_fn)
    ]
    _check_alike("the branches of cond", branches[0].result, branches[1].result)
    outer = list(dict.fromkeys(node for branch in branches for node in branch.outer))
    functions = [(branch.module, tuple(map(outer.index, branch.outer))) for branch in branches]
    target = operators.CapturedCondition(operators.Program(functions, tx.session.build_part))
    node, found = tx.add_call("call_function", target, (pred.node(tx), tuple(outer)), {})
    return branches[0].result.rebuilt(wrap_result(tx, node, found).items_of(tx))


def _check_alike(what: str, one: Tree, other: Tree) -> None:
    first, second = ([described(value.fake) for value in tree.tensors] for tree in (one, other))
    if first != second or not _same_form(one.skeleton, other.skeleton):
        raise GraphBreak(f"{what} give tensors that differ in size or dtype: {first} and {second}")


def _same_form(one: object, other: object) -> bool:
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same_form, one, other))
    if isinstance(one, dict):
        return type(one) is type(other) and list(one) == list(other) and all(_same_form(one[key], other[key]) for key in one)
    return type(one) is type(other) and (hasattr(one, "_impl") or one == other)


def _while_loop(tx: Following, cond_fn: Value, body_fn: Value, carried_inputs: Value) -> Value:
    carried = subgraphs.Tree(SequenceValue(carried_inputs.items_of(tx), tuple))
    if not carried.tensors or any(not isinstance(leaf, TensorValue) for leaf in _leaves(tx, carried.value)):
        raise GraphBreak("while_loop that carries other values than tensors", "carry numbers as tensors")
    if state.grad_enabled and any(value.fake.requires_grad for value in carried.tensors):
        raise GraphBreak("while_loop through which gradients are needed", "use scan, or run it under torch.no_grad()")
    def followed(name: str, function: Value) -> Subgraph:
        def call(inputs: list[Value]) -> Value:
            result = function.call(tx, carried.rebuilt(inputs).items_of(tx), {})
            is_list = isinstance(result, SequenceValue) and result.kind is list
            return SequenceValue(result.items_of(tx), tuple) if is_list else result

        with tx.graph.fakes:
            fakes = [value.fake.detach() for value in carried.tensors]
        return subgraphs.follow(tx, f"{name} of while_loop, {function},", function, fakes, call)

    test, body = followed("the condition", cond_fn), followed("the body", body_fn)
    if len(test.result.tensors) != 1 or test.result.tensors[0].fake.numel() != 1:
        raise GraphBreak("while_loop whose condition is no tensor of one element")
    _check_alike("the body of while_loop, and its inputs,", carried, body.result)
    return _loop(tx, carried, test, body)


def _loop(tx: Following, carried: Tree, test: Subgraph, body: Subgraph) -> Value:
    outer: list[Node] = list(dict.fromkeys([*test.outer, *body.outer]))
    count = len(carried.tensors)
    functions = [
        (graph.module, (*range(count), *(count + outer.index(node) for node in graph.outer))) for graph in (test, body)
    ]
    target = operators.CapturedLoop(operators.Program(functions, tx.session.build_part))
    values = tuple([value.node(tx) for value in carried.tensors])
    node, found = tx.add_call("call_function", target, (values, tuple(outer)), {})
    return carried.rebuilt(wrap_result(tx, node, found).items_of(tx))


def _leaves(tx: Following, value: Value) -> list[Value]:
    if isinstance(value, SequenceValue):
        return [leaf for item in value.items for leaf in _leaves(tx, item)]
    items = getattr(value, "items", None)
    return [leaf for item in items.values() for leaf in _leaves(tx, item)] if isinstance(items, dict) else [value]


HANDLERS[cond], HANDLERS[while_loop] = _cond, _while_loop
