"""A compiled graph as a standalone Python file: `python FILE` times it.

In: a lowered graph and its program. Out: the text. Symbolic sizes take the example's values.
"""

from __future__ import annotations

from rushlight.inductor.codegen.cpp.program import Program
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer
from rushlight.inductor.sizes import Size, evaluate

_TEXT = '''\
"""A graph that Rushlight compiled. Run this file to time it; `call` takes the tensors that `module.arguments` describes."""

from rushlight.inductor.standalone import Argument, Result, StandaloneModule

SOURCE = {source}

module = StandaloneModule(
    SOURCE,
    arguments=[{arguments}],
    constants={constants},
    kept={kept},
    passing_bytes={passing_bytes},
    outputs={outputs},
    results=[{results}],
    sizes={sizes},
)


def call(arguments):
    return module(arguments)


def benchmark_compiled_module(times=10, repeat=10):
    return module.benchmark(times, repeat)


if __name__ == "__main__":
    benchmark_compiled_module()
'''


def module_text(lowered: LoweredGraph, program: Program) -> str:
    """Return the file's text."""
    hints, buffers = lowered.symbols.hints, {buffer.name: buffer for buffer in lowered.buffers}

    def known(sizes: tuple[Size, ...]) -> tuple[int, ...]:
        return tuple(evaluate(size, hints) for size in sizes)

    def argument(buffer: Buffer) -> str:
        layout = buffer.layout
        return f"Argument({buffer.name!r}, {known(layout.size)}, {known(layout.stride)}, {layout.dtype.name!r})"

    def result(view) -> str:
        kind = buffers[view.buffer].layout.dtype.name
        number, offset = program.outputs.index(view.buffer), evaluate(view.offset, hints)
        return f"Result({number}, {known(view.size)}, {known(view.stride)}, {offset}, {kind!r})"

    def nbytes(buffer: Buffer) -> int:
        return evaluate(buffer.layout.numel, hints) * buffer.layout.dtype.itemsize

    own = [view for view in lowered.outputs if view.buffer in program.outputs]
    return _TEXT.format(
        source=_literal(program.source),
        arguments=_list_literal([argument(buffer) for buffer in [*lowered.inputs, *program.constants]]),
        constants=len(program.constants),
        kept=[*map(nbytes, program.folded), *(evaluate(operand.nbytes, hints) for operand in program.packed)],
        passing_bytes=program.passing_bytes,
        outputs=[nbytes(buffers[name]) for name in program.outputs],
        results=_list_literal([result(view) for view in own]),
        sizes=list(hints.values()),
    )


def _literal(source: str) -> str:
    """Return the C++ text as a readable literal, if Python's grammar allows it."""
    if "'''" in source or source.endswith("\\"):
        return repr(source)
    return f"r'''\n{source}'''.lstrip()"


def _list_literal(items: list[str]) -> str:
    return "".join(f"\n        {item}," for item in items) + ("\n    " if items else "")
