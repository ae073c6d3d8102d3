"""The size symbols of a graph: where their values are found at a call, and what must hold of them.

In: the fake values of the graph's inputs. Out: `SizeSymbols`. Stage: inductor, between lowering and the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Var, to_python
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.dtype import dtype
from rushlight.core.symbolic import Relation, ShapeEnv, SymInt
from rushlight.core.tensor import Tensor
from rushlight.inductor.sizes import Size, UnsupportedSize, as_size, as_sizes, symbols_of


@dataclass(frozen=True, slots=True)
class TensorInput:
    """What a tensor among the inputs looks like."""

    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: dtype

    @property
    def stepped(self) -> list[int]:
        """The dimensions whose strides matter: those that may have several elements."""
        return [dim for dim, size in enumerate(self.size) if size != 1]


class SizeSymbols:
    """The symbols of a graph, in the order in which native code takes them. False where there are none.

    `inputs` has a TensorInput or a Size for each input. `definitions` are Python expressions for the symbols' values: over
    `a0`, `a1`, ... for numbers among the inputs, `i0`, `i1`, ... for the impls of tensors, and symbols defined before.
    `relations` is what the capture and lowering took to hold of them.
    """

    def __init__(self, values: Sequence[object] = ()):
        """From the inputs' fake values; UnsupportedSize where an input's size has symbols that no input defines."""
        self.inputs = [_expected(value) for value in values]
        self.definitions: dict[Var, str] = {}
        self.relations: tuple[Relation, ...] = ()
        self.hints: dict[Var, int] = {}
        environment = environment_of(values)
        if environment is not None:
            self._define(environment)

    def __bool__(self) -> bool:
        return bool(self.definitions)

    def __str__(self) -> str:
        lines = (f"SizeSymbol({symbol}, {text}, hint={self.hints[symbol]})" for symbol, text in self.definitions.items())
        return "\n".join(lines)

    @property
    def names(self) -> list[str]:
        """The symbols' names in order."""
        return [symbol.name for symbol in self.definitions]

    def require(self, sizes: Sequence[Size]) -> None:
        """UnsupportedSize unless every symbol in `sizes` is defined."""
        missing = symbols_of(sizes) - self.definitions.keys()
        if missing:
            raise UnsupportedSize(f"no input of the graph gives the value of {', '.join(sorted(map(str, missing)))}")

    def _define(self, environment: ShapeEnv) -> None:
        places = list(self._places())
        for text, size in places:
            if isinstance(size, Var):
                self.definitions.setdefault(size, text)
        for text, size in places:
            self._solve(text, size)
        for symbol, expression in environment.replacements.items():
            if expression.free_variables() <= self.definitions.keys():
                self.definitions.setdefault(symbol, to_python(expression))
        self.require([size for _, size in places])
        self.hints = {symbol: environment.hint_of(symbol) for symbol in self.definitions}
        relations = (guard.relation for guard in environment.relations())
        self.relations = tuple(
            relation for relation in relations if relation.expression.free_variables() <= self.definitions.keys()
        )

    def _places(self) -> Iterator[tuple[str, Size]]:
        """Every size and stride of the inputs, and the Python expression that reads it."""
        for position, given in enumerate(self.inputs):
            if not isinstance(given, TensorInput):
                yield f"a{position}", given
            else:
                yield from ((f"i{position}.sizes[{dim}]", size) for dim, size in enumerate(given.size))
                yield from ((f"i{position}.strides[{dim}]", given.stride[dim]) for dim in given.stepped)

    def _solve(self, text: str, size: Size) -> None:
        """Define the one unknown symbol of a size that is linear in it; that it divides is checked with the inputs."""
        unknown = symbols_of([size]) - self.definitions.keys()
        if len(unknown) != 1:
            return
        (symbol,) = unknown
        scale = dict(linear_form(size)[0]).get(symbol)
        rest = size - symbol * (scale or 0)
        if scale and not rest.contains(symbol):
            self.definitions[symbol] = f"({text} - ({to_python(rest)})) // {scale}"


def _expected(value: object) -> TensorInput | Size:
    if isinstance(value, Tensor):
        return TensorInput(as_sizes(value.shape), as_sizes(value.stride()), value.dtype)
    if isinstance(value, int | SymInt) and not isinstance(value, bool):
        return as_size(value)
    raise UnsupportedSize(f"an input of the graph is {value!r}, neither a tensor nor an integer")


def environment_of(values: Sequence[object]) -> ShapeEnv | None:
    """The environment of the symbols in fake values; None where all sizes are known."""
    for value in values:
        numbers = (*value.shape, *value.stride()) if isinstance(value, Tensor) else (value,)
        for number in numbers:
            if isinstance(number, SymInt):
                return number.environment
    return None
