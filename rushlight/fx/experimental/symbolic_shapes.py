"""Questions about symbolic sizes: whether a condition on them is known, whether an integer is fixed, which symbols it has.

In: numbers, truth values, tensors, or `SymInt` and `SymBool` of a capture. Out: plain answers. The `guard_*` functions return
the example's answer, which becomes a guard; the others never add a guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.core.algebra import Var
from rushlight.core.symbolic import ConstraintViolationError, ShapeEnv, SymBool, SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node
from rushlight.nested.tensor import RaggedLength

__all__ = [
    "ConstraintViolationError", "ShapeEnv",
    "free_symbols", "guard_bool", "guard_float", "guard_int", "guard_or_false", "guard_or_true", "guard_scalar",
    "guard_size_oblivious", "guarding_hint_or_throw", "has_free_symbols", "has_free_unbacked_symbols", "has_static_value",
    "has_symbolic_sizes_strides", "hint_int", "is_concrete_bool", "is_concrete_float", "is_concrete_int", "is_nested_int",
    "is_symbol_binding_fx_node", "is_symbolic", "optimization_hint", "statically_known_false", "statically_known_true",
    "sym_and", "sym_eq", "sym_or",
]  # fmt: skip


def _is_open(value: object) -> bool:
    return type(value) in (SymInt, SymBool)


def _prove_condition(value: object) -> bool | None:
    """Return the truth of a condition if it is the same for all sizes that the guards admit."""
    if type(value) is SymBool:
        return value.environment.prove(value.relation)
    if type(value) is SymInt:
        return _prove_condition(value != 0)
    return bool(value)


def statically_known_true(x: bool | SymBool) -> bool:
    """Return whether `x` holds for all sizes that the guards admit. Adds no guard."""
    return _prove_condition(x) is True


def statically_known_false(x: bool | SymBool) -> bool:
    """Return whether `x` fails for all sizes that the guards admit. Adds no guard."""
    return _prove_condition(x) is False


def guard_or_false(a: bool | SymBool) -> bool:
    """Return whether `a` holds. If it is not known, a guard is added: every size here has an example value."""
    return bool(a)


def guard_or_true(a: bool | SymBool) -> bool:
    """Like `guard_or_false`: the two differ only for sizes without an example, and there are none here."""
    return bool(a)


def guard_size_oblivious(expr: bool | SymBool) -> bool:
    """Return whether a condition on sizes holds. Symbolic sizes are never 0 or 1, so no answer depends on these."""
    return bool(expr)


def guard_bool(a: bool | SymBool) -> bool:
    """Return the truth of a condition, which becomes a guard."""
    return bool(a)


def guard_int(a: int) -> int:
    """Return the value of an integer; a symbolic one is fixed to its example's value."""
    return int(a)


def guard_float(a: float) -> float:
    """Return the value of a float; a symbolic integer is fixed to its example's value."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """Return the value of a number or truth value; a symbolic one gets a guard. TypeError for anything else."""
    if type(a) is SymBool or isinstance(a, bool):
        return guard_bool(a)
    if isinstance(a, int):
        return guard_int(a)
    if isinstance(a, float):
        return guard_float(a)
    raise TypeError(f"guard_scalar expects a number or a truth value, got {type(a).__name__}")


def optimization_hint(a: Any, fallback: int | None = None) -> Any:
    """Return the example's value of a symbolic integer, without a guard; any other value unchanged.

    `fallback` is for integers without an example; there are none here.
    """
    return a.hint if type(a) is SymInt else a


def hint_int(a: int, fallback: int | None = None) -> int:
    """Like `optimization_hint`, for an integer."""
    return optimization_hint(a, fallback)


def guarding_hint_or_throw(a: Any) -> Any:
    """Return the example's value of a symbolic integer or condition, without a guard."""
    return a.relation.holds(a.environment._hints) if type(a) is SymBool else optimization_hint(a)


def is_concrete_int(a: int) -> bool:
    """Return whether an integer is known already. Adds no guard; AssertionError for other types."""
    _expect(a, int)
    return type(a) is not SymInt or not a.expr.free_variables()


def is_concrete_bool(a: bool | SymBool) -> bool:
    """Return whether a condition is known already. Adds no guard; AssertionError for other types."""
    _expect(a, bool)
    return _prove_condition(a) is not None


def is_concrete_float(a: float) -> bool:
    """Return whether a float is known; every float is. AssertionError for other types."""
    _expect(a, float)
    return True


def has_static_value(a: Any) -> bool:
    """Return whether a number or truth value is known already."""
    if not _is_open(a):
        return True
    return is_concrete_int(a) if type(a) is SymInt else is_concrete_bool(a)


def _expect(value: object, kind: type) -> None:
    if not isinstance(value, kind) and type(value) is not {int: SymInt, bool: SymBool}.get(kind):
        raise AssertionError(f"expected {kind.__name__}, got {type(value).__name__}")


def is_symbolic(val: object) -> bool:
    """Return whether a number is symbolic."""
    return not has_static_value(val)


def is_nested_int(s: object) -> bool:
    """Return whether a size represents the lengths of a ragged dimension."""
    return isinstance(s, RaggedLength)


def _symbols(value: Any) -> Iterator[Var]:
    if type(value) is SymInt:
        yield from value.expr.free_variables()
    elif type(value) is SymBool:
        yield from value.relation.expression.free_variables()
    elif isinstance(value, Tensor):
        for item in (*value._impl.sizes, *value._impl.strides, value._impl.storage_offset):
            yield from _symbols(item)
    elif isinstance(value, dict):
        yield from _symbols(list(value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _symbols(item)


def free_symbols(val: Any) -> set[Var]:
    """Return the symbols in a number, in the sizes and strides of a tensor, or in nested values of these."""
    return set(_symbols(val))


def has_free_symbols(val: Any) -> bool:
    """Return whether a value contains a symbol: see `free_symbols`."""
    return next(_symbols(val), None) is not None


def has_free_unbacked_symbols(x: Any) -> bool:
    """Return whether a value has a symbol without an example; no value here has."""
    return False


def has_symbolic_sizes_strides(elem: Tensor) -> bool:
    """Return whether a size or stride of a tensor is symbolic."""
    return has_free_symbols(elem)


def is_symbol_binding_fx_node(node: Node) -> Var | None:
    """Return the symbol of a placeholder's value, if that is a single symbol."""
    value = node.meta.get("val")
    alone = node.op == "placeholder" and type(value) is SymInt and type(value.expr) is Var
    return value.expr if alone else None


def sym_eq(x: Any, y: Any) -> bool | SymBool:
    """Return whether two numbers, or two sequences of numbers, are equal. RuntimeError for other types."""
    if isinstance(x, tuple | list) and isinstance(y, tuple | list):
        if len(x) != len(y):
            return False
        return sym_and(True, *map(sym_eq, x, y))
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    raise RuntimeError(f"unexpected sym_eq between {type(x)} {type(y)}")


def sym_and(x: bool | SymBool, *others: bool | SymBool) -> bool | SymBool:
    """Return whether all conditions hold. Known conditions decide without a guard; two symbolic ones are decided by the
    example."""
    return _combine((x, *others), False)


def sym_or(x: bool | SymBool, *others: bool | SymBool) -> bool | SymBool:
    """Return whether any condition holds. Known conditions decide without a guard; two symbolic ones are decided by the
    example."""
    return _combine((x, *others), True)


def _combine(conditions: tuple, decides: bool) -> bool | SymBool:
    known = list(map(_prove_condition, conditions))
    if decides in known:
        return decides
    unknown = [condition for condition, answer in zip(conditions, known, strict=True) if answer is None]
    if len(unknown) == 1:
        return unknown[0]
    return any(unknown) if decides else all(unknown)
