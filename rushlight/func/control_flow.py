"""Control flow on values of tensors: `cond` and `while_loop`.

In eager they are Python's own `if` and `while`. In a compiled function each is one node of the graph, whose functions are
captured as graphs of their own; the tensor's value decides at run time which one runs, or how often
(`rushlight.func.captured`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor


def cond(
    pred: bool | int | float | Tensor, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()
) -> Any:
    """Return `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    `pred` is a number, or a tensor of one element. In a compiled function both functions are captured: they have to give
    tensors of the same sizes and dtypes, and may write to nothing. RuntimeError for arguments of other kinds.
    """
    check_condition(pred, true_fn, false_fn, operands)
    chosen = true_fn if pred else false_fn
    return chosen(*operands)


def check_condition(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> None:
    """Raise RuntimeError for an argument that `cond` does not take."""
    if not isinstance(pred, bool | int | float | Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list) or not all(isinstance(leaf, Tensor | int) for leaf in tree_flatten(operands)[0]):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
            f"{operands}."
        )


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Apply `body_fn` repeatedly to `carried_inputs`, while `cond_fn` of the current values is true; return the last values.

    `cond_fn` gives a bool, or a tensor of one. `body_fn` gives a tuple of values like those that it takes, which have the same
    sizes and dtypes. RuntimeError where they are others.
    """
    check_loop(cond_fn, body_fn, carried_inputs)
    values = tuple(carried_inputs)
    while is_true(cond_fn(*values)):
        given, values = values, body_fn(*values)
        values = tuple(values) if isinstance(values, list) else values
        check_same(given, values, "body_fn_output", "carried_inputs")
    return values


def check_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> None:
    """Raise RuntimeError for an argument that `while_loop` does not take."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list) or not all(
        isinstance(leaf, Tensor | int | float) for leaf in tree_flatten(carried_inputs)[0]
    ):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or int "
            f"leaves, but got {carried_inputs}."
        )


def is_true(answer: Any) -> bool:
    """Return the truth of a condition. RuntimeError if it is neither a bool nor a tensor of one element."""
    if isinstance(answer, bool):
        return answer
    if not isinstance(answer, Tensor) or answer.numel() != 1:
        raise RuntimeError(f"Expected cond_fn to return a bool or a tensor of one element, but got {answer}.")
    return bool(answer)


def check_same(wanted: Any, found: Any, found_name: str, wanted_name: str) -> None:
    """Raise RuntimeError if two trees differ in structure, or their tensors in size or dtype."""
    leaves, spec = tree_flatten(wanted)
    others, other_spec = tree_flatten(found)
    if spec != other_spec:
        raise RuntimeError(f"Expected {found_name} and {wanted_name} to have the same structure, but got {other_spec}, {spec}.")
    differences = [
        f"pair[{index}] differ: {described(other)} vs {described(leaf)}"
        for index, (leaf, other) in enumerate(zip(leaves, others, strict=True)) if described(leaf) != described(other)
    ]  # fmt: skip
    if differences:
        raise RuntimeError(
            f"Expected {found_name} and {wanted_name} to have same metadata but found:\n" + "\n".join(differences)
        )


def described(value: Any) -> str:
    """Describe the properties of a value that must not change: a tensor's dtype and shape, else the type."""
    return f"{value.dtype} of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def flat_tensors(tree: Any) -> tuple[list[Tensor], Callable[[list], Any]]:
    """Return the tensors of a tree, and a function that rebuilds the tree with other tensors."""
    leaves, spec = tree_flatten(tree)
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

    def rebuilt(tensors: list) -> Any:
        made = list(leaves)
        for position, tensor in zip(positions, tensors, strict=True):
            made[position] = tensor
        return tree_unflatten(made, spec)

    return [leaves[position] for position in positions], rebuilt
