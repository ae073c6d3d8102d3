"""A program for GPUs as a standalone Python file: `python FILE` times it on the device.

In: a lowered graph and its program. Out: the text. Symbolic sizes take the example's values.
"""

from __future__ import annotations

from rushlight.inductor.codegen.module_parts import ModuleParts
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.graph import LoweredGraph

_TEXT = '''\
"""A graph that Rushlight compiled for GPUs. Run this file to time it; `module` takes the tensors that `module.arguments`
describes. Without a GPU set RUSHLIGHT_CUDA_DRIVER=interpreter and TRITON_INTERPRET=1."""

{source}
from rushlight.inductor.standalone import Argument, Result
from rushlight.inductor.triton.standalone import Kernel, StandaloneProgram

module = StandaloneProgram(
    globals(),
    kernels={kernels},
    arguments=[{arguments}],
    constants={constants},
    results=[{results}],
    sizes={sizes},
)


def benchmark_compiled_module(times=10, repeat=10):
    return module.benchmark(times, repeat)


if __name__ == "__main__":
    benchmark_compiled_module()
'''


def module_text(lowered: LoweredGraph, program: TritonProgram) -> str:
    """Return the file's text."""
    parts = ModuleParts(lowered, program.outputs)
    kernels = [f"{name!r}: Kernel({launch.parameters}, {launch.options})" for name, launch in program.kernels.items()]
    return _TEXT.format(
        source=program.source,
        kernels="".join(["{", *(f"\n        {kernel}," for kernel in kernels), "\n    }" if kernels else "}"]),
        arguments=parts.arguments(program.constants),
        constants=len(program.constants),
        results=parts.results(),
        sizes=parts.sizes,
    )
