"""Compile expressions to postfix code, which csrc/size_program.c evaluates at every call of a compiled function.

In: an expression, and the position of each of its variables. Out: a tuple of ints. Stage: guards on open sizes, calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Product, Var, linear_form

# The opcodes of csrc/size_program.c. CONSTANT is followed by its value, NUMBER by a variable's position.
CONSTANT, NUMBER, ADD, MULTIPLY, FLOOR_DIVIDE, MODULO = range(6)
STACK_DEPTH = 32
_LIMIT = 1 << 62


def to_postfix(expression: Expr, positions: Mapping[Var, int]) -> tuple[int, ...] | None:
    """Return code that leaves the expression's value on the stack. None where native code cannot evaluate it: constants
    beyond 64 bits, or nesting too deep for the stack.
    """
    code: list[int] = []
    deepest = _write(expression, positions, code)
    fits = deepest <= STACK_DEPTH and all(abs(number) < _LIMIT for number in code)
    return tuple(code) if fits else None


def _write(node: Expr, positions: Mapping[Var, int], code: list[int]) -> int:
    """Append the code of an expression; returns the stack depth that it needs."""
    kind = type(node)
    if kind is Var:
        code += (NUMBER, positions[node])
        return 1
    if kind is Const:
        code += (CONSTANT, node.value)
        return 1
    if kind is Product:
        return _fold(node.factors, MULTIPLY, positions, code)
    if kind is FloorDiv or kind is Mod:
        return _fold((node.dividend, node.divisor), FLOOR_DIVIDE if kind is FloorDiv else MODULO, positions, code)
    return _sum(node, positions, code)


def _fold(nodes: tuple[Expr, ...], instruction: int, positions: Mapping[Var, int], code: list[int]) -> int:
    deepest = 0
    for index, node in enumerate(nodes):
        deepest = max(deepest, _write(node, positions, code) + (index > 0))
        if index:
            code.append(instruction)
    return deepest


def _sum(node: Expr, positions: Mapping[Var, int], code: list[int]) -> int:
    terms, constant = linear_form(node)
    code += (CONSTANT, constant)
    deepest = 1
    for term, scale in terms:
        deepest = max(deepest, _write(term, positions, code) + 1)
        if scale != 1:
            code += (CONSTANT, scale, MULTIPLY)
            deepest = max(deepest, 3)
        code.append(ADD)
    return deepest
