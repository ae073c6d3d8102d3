"""Compiles a program's kernels to cubins by Triton's compiler, which needs neither a GPU nor a driver.

In: a program's text and its kernels. Out: a cubin for each. A process in which Triton interprets kernels cannot compile them;
`compile_apart` starts another process, which this module's `main` runs.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rushlight.core.algebra import Var
from rushlight.inductor.codegen.triton.kernels import Choice, Launch
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.triton.interpreter import load_text

ALIGNED = [["tt.divisibility", 16]]
WARP = 32  # threads


@dataclass(frozen=True)
class KernelSpec:
    """A kernel to compile: types of its parameters, its constants, and which pointers are multiples of 16."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    constants: dict[str, int]
    warps: int
    stages: int
    options: dict[str, Any] = field(default_factory=dict)
    aligned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel: the cubin, its entry's name, the bytes of shared memory, the threads of a program, and the bytes of
    scratch memory for each program."""

    cubin: bytes
    entry: str
    shared: int
    threads: int
    scratch: int = 0


def spec_of(
    launch: Launch, choice: Choice | None = None, aligned: tuple[str, ...] | None = None,
    values: Mapping[Var, int] | None = None,
) -> KernelSpec:  # fmt: skip
    """Return what to compile for a launch: with its default constants unless `choice` gives others; `aligned` names the
    pointers that are multiples of 16, all by default. Memory of a launcher is aligned, inputs may not be. Open sizes are small
    unless `values` are given."""
    if aligned is None:
        aligned = tuple(name for name, kind in launch.parameters if kind.startswith("*"))
    chosen = choice or launch.choice
    constants = launch.constants(values or {symbol: 1 for size in launch.open for symbol in size.free_variables()}, chosen)
    return KernelSpec(
        launch.kernel, tuple(launch.parameters), constants, chosen.warps, chosen.stages, launch.options, aligned
    )  # fmt: skip


def compile_kernel(functions: Mapping[str, Any], spec: KernelSpec, capability: int) -> Compiled:
    """Compile a kernel of a loaded program for a compute capability such as 80 or 90."""
    import triton
    from triton.backends.compiler import GPUTarget

    signature = dict(spec.parameters) | dict.fromkeys(spec.constants, "constexpr")
    positions = {name: position for position, (name, _) in enumerate(spec.parameters)}
    attributes = {(positions[name],): ALIGNED for name in spec.aligned}
    source = _source_type()(functions[spec.name], signature, constexprs=spec.constants, attrs=attributes)
    options = {"num_warps": spec.warps, "num_stages": spec.stages, "enable_fp_fusion": True, **spec.options}
    made = triton.compile(source, target=GPUTarget("cuda", capability, WARP), options=options)
    facts = made.metadata
    scratch = facts.global_scratch_size + facts.profile_scratch_size
    return Compiled(made.asm["cubin"], facts.name, facts.shared, facts.num_warps * WARP, scratch)


@functools.cache
def _source_type() -> type:
    """Return Triton's class of sources, with one that reads texts one at a time: Python 3.11 may fail if two threads parse."""
    import triton

    lock = threading.RLock()

    class Source(triton.compiler.ASTSource):
        def hash(self) -> str:
            with lock:
                return super().hash()

        def make_ir(self, *args: Any, **kwargs: Any) -> Any:
            with lock:
                return super().make_ir(*args, **kwargs)

    return Source


def version() -> str:
    """Return the compiler's version."""
    import triton

    return triton.__version__


def work_of(program: TritonProgram) -> tuple[str, list[KernelSpec]]:
    """Return a program's text, and what to compile of it."""
    return program.kernel_source, [spec_of(launch) for launch in program.kernels.values()]


def compile_apart(
    work: Iterable[tuple[str, list[KernelSpec]]], capabilities: tuple[int, ...], timeout: float = 600
) -> list[dict]:
    """Compile kernels of programs' texts in another process. Returns for each kernel and capability its name, the cubin's bytes
    and shared memory, or the compiler's error."""
    programs = [{"source": source, "kernels": [asdict(spec) for spec in specs]} for source, specs in work]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.inductor.triton.compiler"], env=environment, timeout=timeout, text=True,
        input=json.dumps({"programs": programs, "capabilities": capabilities}), capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"Triton's compiler failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Compile what standard input describes."""
    work = json.load(sys.stdin)
    results = []
    for number, program in enumerate(work["programs"]):
        functions = load_text(program["source"], f"<Triton program {number}>")
        for given in program["kernels"]:
            spec = KernelSpec(**given)
            for capability in work["capabilities"]:
                result = {"program": number, "kernel": spec.name, "capability": capability}
                try:
                    made = compile_kernel(functions, spec, capability)
                    result |= {"bytes": len(made.cubin), "shared": made.shared}
                except Exception as error:  # the report names each kernel that fails
                    result |= {"error": f"{type(error).__name__}: {error}"[:2000]}
                results.append(result)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
