"""A compiled graph as a standalone Python file: `python FILE` times it.

In: a lowered graph and its program. Out: the text. Symbolic sizes take the example's values.
"""

from __future__ import annotations

from rushlight.inductor.codegen.cpp.program import Program
from rushlight.inductor.codegen.module_parts import ModuleParts
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.sizes import evaluate

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
    parts = ModuleParts(lowered, program.outputs)
    return _TEXT.format(
        source=_literal(program.source),
        arguments=parts.arguments(program.constants),
        constants=len(program.constants),
        kept=[*map(parts.nbytes, program.folded), *(evaluate(operand.nbytes, parts.hints) for operand in program.packed)],
        passing_bytes=program.passing_bytes,
        outputs=[parts.nbytes(parts.buffers[name]) for name in program.outputs],
        results=parts.results(),
        sizes=parts.sizes,
    )


def _literal(source: str) -> str:
    """Return the C++ text as a readable literal, if Python's grammar allows it."""
    if "'''" in source or source.endswith("\\"):
        return repr(source)
    return f"r'''\n{source}'''.lstrip()"
