"""Size checks of graphs with symbolic sizes: generated Python functions, because they run at every call.

In: `SizeSymbols` and expressions. Out: Python functions. Stage: inductor, calling.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.algebra import Expr, to_python
from rushlight.core.tensor import Tensor
from rushlight.inductor.launch import bytes_needed, has_no_data
from rushlight.inductor.size_symbols import SizeSymbols, TensorInput


def make_binder(symbols: SizeSymbols) -> Callable[[tuple], tuple[int, ...]]:
    """Return `bind(inputs)`: checks inputs and returns the symbols' values. RuntimeError for inputs that the graph was not
    compiled for."""
    inputs, reporter = symbols.inputs, _Reporter(symbols)
    lines = [f"if len(inputs) != {len(inputs)}:", "    raise count(inputs)"]
    if inputs:
        lines.append(f"{', '.join(f'a{position}' for position in range(len(inputs)))}, = inputs")
    for position, given in enumerate(inputs):
        lines += _check_kind(position, given)
    lines += [f"{symbol} = {to_python(value)}" for symbol, value in symbols.definitions.items()]
    values = numbers_text(symbols.names)
    for number, condition in enumerate(reporter.conditions):
        lines += [f"if not ({condition}):", f"    raise outside({number}, {values})"]
    for position, given in enumerate(inputs):
        lines += [f"if {_mismatch_test(position, given)}:", f"    raise wrong(inputs, {position}, {values})"]
        if isinstance(given, TensorInput):
            lines += [f"if needed(i{position}) > i{position}.storage.nbytes:", f"    raise short(inputs, {position})"]
    lines.append(f"return {values}")
    names = {"count": reporter.count, "wrong": reporter.wrong, "outside": reporter.outside, "short": reporter.short}
    names |= {"needed": bytes_needed, "has_no_data": has_no_data}
    names |= {f"d{position}": given.dtype for position, given in enumerate(inputs) if isinstance(given, TensorInput)}
    return _make_python_function("bind", "inputs", lines, names)


def make_function(symbols: SizeSymbols, result: object) -> Callable[..., tuple]:
    """Return a function of the symbols' values that returns `result`, nested tuples of sizes and other constants."""
    return _make_python_function("sizes", ", ".join(symbols.names), [f"return {numbers_text(result)}"], {})


def numbers_text(value: object) -> str:
    """Return nested tuples of sizes, names and None as Python text."""
    if isinstance(value, tuple | list):
        return f"({''.join(f'{numbers_text(item)}, ' for item in value)})"
    return to_python(value) if isinstance(value, Expr) else str(value)


def _make_python_function(name: str, parameters: str, lines: list[str], names: dict[str, object]) -> Callable:
    body = "\n".join(f"    {line}" for line in lines)
    exec(compile(f"def {name}({parameters}):\n{body}\n", f"<{name} of a graph with symbolic sizes>", "exec"), names)
    return names[name]


def _check_kind(position: int, given: object) -> list[str]:
    """Return statements that check an input's type, before its sizes are read."""
    if isinstance(given, TensorInput):
        impl = f"(i{position} := getattr(a{position}, '_impl', None))"
        test = f"{impl} is None or len(i{position}.sizes) != {len(given.size)}"
    else:
        test = f"type(a{position}) is not int"
    return [f"if {test}:", f"    raise wrong(inputs, {position}, ())"]


def _mismatch_test(position: int, given: object) -> str:
    if not isinstance(given, TensorInput):
        return f"a{position} != {given}"
    strides, wanted = f"i{position}.strides", given.stride
    if len(given.stepped) < len(given.size):
        wanted = [given.stride[dim] for dim in given.stepped]
        strides = numbers_text([f"{strides}[{dim}]" for dim in given.stepped])
    return (
        f"i{position}.sizes != {numbers_text(given.size)} or {strides} != {numbers_text(wanted)} "
        f"or i{position}.dtype is not d{position} or has_no_data(i{position})"
    )


class _Reporter:
    """Makes the errors that a binder raises."""

    def __init__(self, symbols: SizeSymbols):
        self.inputs = symbols.inputs
        self.names = symbols.names
        self.conditions = [str(relation) for relation in symbols.relations]
        for symbol in symbols.definitions:
            if symbol.least is not None:
                self.conditions.append(f"{symbol} >= {symbol.least}")
            if symbol.extent is not None:
                self.conditions.append(f"{symbol} < {symbol.extent}")

    def count(self, inputs: tuple) -> RuntimeError:
        """Return the error for a wrong number of inputs."""
        return RuntimeError(f"the compiled graph takes {len(self.inputs)} inputs, got {len(inputs)}")

    def outside(self, number: int, values: tuple[int, ...]) -> RuntimeError:
        """Return the error for sizes that violate a condition."""
        return RuntimeError(
            f"the compiled graph is for sizes with {self.conditions[number]}, got {self._values(values)}; compile it for these"
        )

    def wrong(self, inputs: tuple, position: int, values: tuple[int, ...]) -> RuntimeError:
        """Return the error for an input of the wrong type, dtype, size or stride."""
        expected, got, where = self.inputs[position], inputs[position], self._values(values)
        if isinstance(expected, TensorInput):
            wanted = f"a {expected.dtype} CPU tensor of size {list(expected.size)} and stride {list(expected.stride)}"
        else:
            wanted = f"the integer {expected}"
        if isinstance(got, Tensor):
            had = f"{got.dtype} of size {list(got.shape)} and stride {list(got.stride())}"
        else:
            had = repr(got)
        return RuntimeError(f"input {position} of the compiled graph must be {wanted}{where and f' with {where}'}, got {had}")

    def short(self, inputs: tuple, position: int) -> RuntimeError:
        """Return the error for a storage that is too small."""
        impl = inputs[position]._impl
        return RuntimeError(
            f"input {position} of the compiled graph needs a storage of {bytes_needed(impl)} bytes, got {impl.storage.nbytes}"
        )

    def _values(self, values: tuple[int, ...]) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(self.names, values, strict=False))
