"""Text of index expressions: Python for people and dumps, C++ and Triton for generated code.

In: an expression. Out: `str(e)` such as `384*i0 + i1` or `(i0 // 4) % 3`, which is valid Python; `to_cpp(e)` such as
`384L*i0 + i1` or `(i0 / 4L) % 3L`; `to_triton(e)`, like Python's but for negative dividends. Stage: inductor, printing of the
loops IR and code generation.

Parentheses stand only around an operand of a division, a factor of a product, or what follows a minus sign, and there
only if it is more than a name, a number or a call.
"""

from __future__ import annotations

from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Product, Sum, Var
from rushlight.core.algebra.ranges import is_nonnegative


class _PythonWriter:
    """Writes an expression; the writers of C++ and Triton differ in their numbers and divisions only."""

    def number(self, value: int) -> str:
        return str(value)

    def is_call(self, node: Expr) -> bool:
        return False

    def division(self, node: FloorDiv | Mod) -> str:
        return f"{self.operand(node.dividend)} {'//' if type(node) is FloorDiv else '%'} {self.operand(node.divisor)}"

    def write(self, node: Expr) -> str:
        kind = type(node)
        if kind is Var:
            return node.name
        if kind is Const:
            return self.number(node.value)
        if kind is Sum:
            return self.sum(node)
        if kind is Product:
            return "*".join(map(self.operand, node.factors))
        return self.division(node)

    def operand(self, node: Expr) -> str:
        bare = type(node) is Var or self.is_call(node) or (type(node) is Const and node.value >= 0)
        return self.write(node) if bare else f"({self.write(node)})"

    def sum(self, node: Sum) -> str:
        pieces = []
        for term, scale in node.terms:
            pieces += " - " if scale < 0 else " + ", self.scaled(term, scale)
        if node.constant:
            pieces += " - " if node.constant < 0 else " + ", self.number(abs(node.constant))
        pieces[0] = "-" if pieces[0] == " - " else ""
        return "".join(pieces)

    def scaled(self, term: Expr, scale: int) -> str:
        """Return a term with its coefficient, without the sign."""
        if scale == 1:
            return self.write(term)
        text = self.write(term) if type(term) is Product else self.operand(term)
        return text if scale == -1 else f"{self.number(abs(scale))}*{text}"


class _CppWriter(_PythonWriter):
    def number(self, value: int) -> str:
        return f"{value}L"

    def is_call(self, node: Expr) -> bool:
        return type(node) in (FloorDiv, Mod) and not is_nonnegative(node.dividend)

    def division(self, node: FloorDiv | Mod) -> str:
        if self.is_call(node):
            name = "floor_div" if type(node) is FloorDiv else "floor_mod"
            return f"rl::{name}({self.write(node.dividend)}, {self.write(node.divisor)})"
        return f"{self.operand(node.dividend)} {'/' if type(node) is FloorDiv else '%'} {self.operand(node.divisor)}"


class _TritonWriter(_PythonWriter):
    def is_call(self, node: Expr) -> bool:
        return type(node) in (FloorDiv, Mod) and not is_nonnegative(node.dividend)

    def division(self, node: FloorDiv | Mod) -> str:
        if self.is_call(node):
            name = "floor_quotient" if type(node) is FloorDiv else "floor_remainder"
            return f"{name}({self.write(node.dividend)}, {self.write(node.divisor)})"
        return super().division(node)


_PYTHON, _CPP, _TRITON = _PythonWriter(), _CppWriter(), _TritonWriter()


def to_python(expression: Expr) -> str:
    """Return the expression as Python source over its variables' names."""
    return _PYTHON.write(expression)


def to_cpp(expression: Expr) -> str:
    """Return the expression as C++ source on 64-bit integers over its variables' names.

    C++ division rounds towards zero; `/` and `%` are used only where the dividend is provably nonnegative, and
    `rl::floor_div(a, b)` and `rl::floor_mod(a, b)` elsewhere.
    """
    return _CPP.write(expression)


def to_triton(expression: Expr) -> str:
    """Return the expression as Triton source over its variables' names.

    Triton's `//` and `%` round towards zero; they are used only where the dividend is provably nonnegative, and
    `floor_quotient(a, b)` and `floor_remainder(a, b)` elsewhere.
    """
    return _TRITON.write(expression)


Expr.__str__ = to_python
