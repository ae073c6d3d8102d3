"""Open floats: floats from outside that change from call to call, and results computed from them or from open sizes.

Arithmetic on them becomes a Python expression, which generated code evaluates before the graph runs. A comparison is guarded by
its outcome, rounding by its result. Any other use specializes the float to its example value.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.core.algebra import Var, bounds
from rushlight.core.symbolic import SymInt
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import BINARY, COMPARISONS, MAKERS, Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold
from rushlight.dynamo.values.open_quotients import OpenQuotientValue, fraction, is_open_number, quotient
from rushlight.dynamo.values.symbolic import SymbolicValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

_MAX_EXPONENT = 8  # a size to the power of 8 fits in a float
_SYMBOL = re.compile(r"\b__(s\d+)\b")
_ROUND = {
    "__int__": "int({0})", "__trunc__": "int({0})", "__floor__": "int({0} // 1)", "__ceil__": "-int(-{0} // 1)",
    "__round__": "round({0})",
}  # fmt: skip


class OpenFloat:
    """A number as a Python expression. `hint` is its example value. `sign` is 1 or -1 if all its values have that sign, else 0.
    The expression uses `symbols` under their names in generated code. `fix` guards the example value."""

    __slots__ = ("hint", "text", "sign", "symbols", "_fix")

    def __init__(
        self, hint: float, text: str, fix: Callable[[], object], sign: int = 0, symbols: frozenset[Var] = frozenset()
    ) -> None:
        self.hint = hint
        self.text = text
        self.sign = sign
        self.symbols = symbols
        self._fix = fix

    def __float__(self) -> float:
        """Return the example value, which is guarded from now on."""
        self._fix()
        return float(self.hint)

    def assume(self, tx: Following, form: str) -> None:
        """Guard a condition, given as a format with a place for the number."""
        places = {symbol.name: source for symbol, source in tx.session.sizes.places().items()}
        text = _SYMBOL.sub(lambda name: places[name[1]].expression(), self.text)
        tx.guards.add(form.format(text), None, "open float")


def _is_written(number: Any) -> bool:
    return type(number) in (int, float) and math.isfinite(number)


def _sign_of(number: float) -> int:
    return (number > 0) - (number < 0)


def _float_of_symbol(number: SymInt) -> OpenFloat:
    expression = number.expr
    symbols = frozenset(expression.free_variables())
    text = f"({expression.substitute({symbol: Var(f'__{symbol.name}') for symbol in symbols})})"
    least, most = bounds(expression)
    sign = (least is not None and least > 0) - (most is not None and most < 0)
    return OpenFloat(number.hint, text, number.__index__, sign, symbols)


def open_float(value: Value) -> OpenFloat | None:
    """Return a number as an expression; None if it has none."""
    if type(value) is OpenFloatValue:
        return value.number
    if type(value) is SymbolicValue:
        return _float_of_symbol(value.number)
    if type(value) is OpenQuotientValue:
        numbers = value.numerator, value.denominator
        parts = [_float_of_symbol(number) if type(number) is SymInt else _float_of_number(number) for number in numbers]
        return _combine_floats(operator.truediv, "{} / {}", parts, parts[0].sign)
    known = value.constant() if type(value) is ConstantValue else None
    return _float_of_number(known) if _is_written(known) else None


def _float_of_number(number: float) -> OpenFloat:
    return OpenFloat(number, f"({number!r})" if number < 0 else repr(number), lambda: None, _sign_of(number))


def _combine_floats(function: Callable, form: str, parts: list[OpenFloat], sign: int) -> OpenFloat:
    hint = function(*[part.hint for part in parts])
    text = f"({form.format(*[part.text for part in parts])})"
    symbols = frozenset().union(*[part.symbols for part in parts])
    return OpenFloat(hint, text, lambda: [part._fix() for part in parts], sign, symbols)


# Operator -> function that gives the result's sign from the operands' signs.
_SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left if left == right else 0,
    "-": lambda left, right: left if left == -right else 0,
    "*": operator.mul,
    "/": operator.mul,
    "//": lambda left, right: 0,
    "%": lambda left, right: 0,
    "**": lambda base, exponent: int(base > 0),
}


def arithmetic(symbol: str, left: Value, right: Value) -> Value | None:
    """Evaluate `left symbol right` as an open float. None for other operands, and if it might raise for other values."""
    if not (is_open_float(left) or is_open_float(right)) or symbol not in _SIGNS:
        return None
    parts = [open_float(left), open_float(right)]
    if any(part is None for part in parts) or (symbol not in ("/", "**") and not _is_float(left, right)):
        return None
    if symbol in ("/", "//", "%", "**"):
        parts = [_with_sign(value, part) for value, part in zip((left, right), parts, strict=True)]
    if (symbol in ("/", "//", "%") and not parts[1].sign) or (symbol == "**" and not _is_safe_power(left, right, *parts)):
        return None
    sign = _SIGNS[symbol](parts[0].sign, parts[1].sign)
    return OpenFloatValue(_combine_floats(BINARY[symbol], f"{{}} {symbol} {{}}", parts, sign))


def _with_sign(value: Value, number: OpenFloat) -> OpenFloat:
    """Return an open integer with its example's sign, which is guarded unless proven."""
    if type(value) is SymbolicValue and not number.sign:
        number.sign = int(bool(value.number >= 1)) or -int(bool(value.number <= -1))
    return number


def is_open_float(value: Value) -> bool:
    """Return whether a value is an open number on which arithmetic yields open floats."""
    return type(value) is OpenFloatValue or is_open_number(value)


def _is_float(*values: Value) -> bool:
    return any(value.python_type() is float for value in values)


def _is_safe_power(left: Value, right: Value, base: OpenFloat, exponent: OpenFloat) -> bool:
    """Return whether a power is a float within range for all values."""
    if not (_is_float(left, right) or exponent.sign < 0):
        return False
    if type(right) is ConstantValue:
        is_defined = base.sign > 0 or (type(exponent.hint) is int and exponent.hint >= 0)
        return is_defined and abs(exponent.hint) <= _MAX_EXPONENT
    return type(left) is ConstantValue and 0 < base.hint <= 1 and exponent.sign > 0


# Functions of math -> signs of arguments for which they never raise.
_FUNCTIONS: dict[Callable, tuple[int, ...]] = {
    math.sqrt: (1,), math.log: (1,), math.log2: (1,), math.log10: (1,), math.exp: (-1,),
    **dict.fromkeys((math.sin, math.cos, math.tanh, math.atan), (-1, 0, 1)),
}  # fmt: skip


def function_of(tx: Following, function: Callable, args: list[Value]) -> Value | None:
    """Return a call of a math function on an open number, as an open float. None for other calls, and if it might raise."""
    if function not in (*_FUNCTIONS, round) or not args or not is_open_float(args[0]):
        return None
    if function is round:
        return _to_digits(tx, *args)
    if len(args) != 1:
        return None
    number = open_float(args[0])
    if number.sign not in _FUNCTIONS[function]:
        return None
    form = f"{tx.guards.name(function, function.__name__)}({{}})"
    return OpenFloatValue(_combine_floats(function, form, [number], int(function in (math.sqrt, math.exp))))


def _to_digits(tx: Following, value: Value, digits: Value = NONE) -> Value | None:
    """Evaluate `round(value, digits)`."""
    if type(value) is SymbolicValue:
        return value if digits is NONE else None
    number, count = open_float(value), digits.constant()
    if count is None:
        return OpenFloatValue(number).method(tx, "__round__", [], {})
    return OpenFloatValue(_combine_floats(lambda hint: round(hint, count), f"round({{}}, {count!r})", [number], 0))


def extreme(name: str, values: list[Value]) -> Value | None:
    """Return the "min" or "max" of open floats; None if integers are among them, because then the type depends on the
    outcome.
    """
    if not any(map(is_open_float, values)) or not all(value.python_type() is float for value in values):
        return None
    parts = [open_float(value) for value in values]
    if len(parts) < 2 or any(part is None for part in parts):
        return None
    signs = {part.sign for part in parts}
    form = f"{name}({', '.join(['{}'] * len(parts))})"
    return OpenFloatValue(_combine_floats({"min": min, "max": max}[name], form, parts, signs.pop() if len(signs) == 1 else 0))


def compared(tx: Following, symbol: str, left: Value, right: Value) -> Value | None:
    """Return a comparison with an open float; its outcome is guarded. None for other operands."""
    if not any(type(value) in (OpenFloatValue, OpenQuotientValue) for value in (left, right)):
        return None
    exact = [fraction(left), fraction(right)]
    if None not in exact:
        (over, under), (other_over, other_under) = exact
        return ConstantValue(bool(COMPARISONS[symbol](over * other_under, other_over * under)))
    parts = [open_float(left), open_float(right)]
    if any(part is None for part in parts):
        return None
    question = _combine_floats(COMPARISONS[symbol], f"{{}} {symbol} {{}}", parts, 0)
    question.assume(tx, "{}" if question.hint else "not {}")
    return ConstantValue(question.hint)


def converted(tx: Following, kind: type, value: Value) -> Value:
    """Evaluate `int(value)` or `float(value)` of an open number."""
    if kind is int:
        return value.method(tx, "__int__", [], {})
    if type(value) is not SymbolicValue:
        return value
    made = quotient("/", value, ConstantValue(1))
    return fold(float, value) if made is None else made


def _define_unary() -> None:
    def define(name: str, function: Callable, form: str, sign: Callable[[int], int]) -> None:
        setattr(OpenFloat, f"__{name}__", lambda self: _combine_floats(function, form, [self], sign(self.sign)))

    define("neg", operator.neg, "-{}", operator.neg)
    define("pos", operator.pos, "+{}", operator.pos)
    define("abs", abs, "abs({})", abs)


_FIXED_ARITHMETIC = "add sub mul truediv floordiv mod pow".split()


def _define_fixed() -> None:
    """Define the operators of OpenFloat that specialize: they compute with the example value."""

    def plain(number: Any) -> Any:
        return float(number) if type(number) is OpenFloat else number

    def define(name: str, function: Callable) -> None:
        setattr(OpenFloat, f"__{name}__", lambda self, other: function(float(self), plain(other)))

    for name, function in (*((name, getattr(operator, name)) for name in _FIXED_ARITHMETIC), ("divmod", divmod)):
        define(name, function)
        setattr(OpenFloat, f"__r{name}__", lambda self, other, function=function: function(plain(other), float(self)))
    for function in COMPARISONS.values():
        define(function.__name__, function)
    OpenFloat.__bool__ = lambda self: bool(float(self))


_define_unary()
_define_fixed()


class OpenFloatValue(ConstantValue):
    """An open float. Its use as a constant specializes it."""

    def __init__(self, number: OpenFloat, source: Source | None = None) -> None:
        self.number = number
        self.source = source

    @property
    def value(self) -> float:
        """Return the example value, which is guarded from now on."""
        return float(self.number)

    def operand(self) -> Any:
        return self.number

    def python_type(self) -> type:
        return float

    def truth(self, tx: Following) -> bool:
        return compared(tx, "!=", self, ConstantValue(0)).value

    def same_as(self, other: Value) -> bool:
        return self is other or super().same_as(other)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in _ROUND and not args and math.isfinite(self.number.hint):
            return self._round_to_int(tx, name)
        return super().method(tx, name, args, kwargs)

    def _round_to_int(self, tx: Following, name: str) -> Value:
        """Round, and guard the resulting integer: the float may differ. A float that is not finite fails the guard."""
        found = getattr(float, name)(self.number.hint)
        self.number.assume(tx, f"abs({{0}}) < 1e308 and {_ROUND[name]} == {found}")
        return ConstantValue(found)

    def write(self, writer: Writer) -> str:
        writer.symbols.update(self.number.symbols)
        return writer.keep(self.number.text)  # generated code evaluates the number before the graph writes to its inputs

    def __str__(self) -> str:
        return self.number.text


MAKERS[OpenFloat] = OpenFloatValue
