"""Print what Triton's compiler makes of common kernels: `python -m tools.triton_kernels`. Needs Triton, but no GPU.

Each case is a function at a size that fills a GPU. Its kernels are compiled with their default tiles, and the machine code is
read: the widths of loads and stores of global memory, the registers of a thread and the bytes that it spills, shared memory,
the matrix instructions, and how many programs one multiprocessor holds.

    python -m tools.triton_kernels --only softmax,product --capabilities 90 --show
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.fx.proxy_tensor import capture, make_fx
from rushlight.inductor.codegen.triton.kernels import Choice, Launch, Limits
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.triton.compiler import compile_kernel, spec_of
from rushlight.inductor.triton.interpreter import load_text
from rushlight.inductor.triton.pieces import TritonCompiler, TritonPieces

F = torch.nn.functional
SIDE = 4096
HEADS, LENGTH = (4, 16), 2048
REGISTERS, THREADS = 65536, 2048  # what a multiprocessor has
SHARED = {80: 164 << 10, 90: 228 << 10}  # a multiprocessor's bytes; a program takes 1 KB more than it asks for
RESERVED = 1 << 10
LIMITS = {80: Limits(163 << 10, 108), 90: Limits(227 << 10, 132)}  # an A100 and an H100


class Case(NamedTuple):
    """A function with inputs; `precision` is how float32 matrices are multiplied. With `is_open` sizes stay open; those of the
    inputs count as multiples of 16."""

    function: Callable
    inputs: tuple
    precision: str = "ieee"
    is_open: bool = False


def matrix(kind: Any = torch.float32) -> Any:
    return torch.zeros(SIDE, SIDE, dtype=kind)


def chain(x: Any, y: Any) -> Any:
    return F.gelu(x * 1.5 + y).tanh() * y


def norm(x: Any, weight: Any, bias: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def attended(depth: int, backward: bool) -> Case:
    q, k, v, out, grad = (torch.zeros(*HEADS, LENGTH, depth, dtype=torch.bfloat16) for _ in range(5))
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if not backward:
        return Case(lambda q, k, v: forward(q, k, v, 0.0, True)[0], (q, k, v))
    gradients = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    sums = torch.zeros(*HEADS, LENGTH)
    return Case(lambda g, q, k, v, o, s: gradients(g, q, k, v, o, s, 0.0, True), (grad, q, k, v, out, sums))


def updated(*tensors: Any) -> tuple:
    """Adam's update of several parameters: given as parameters, gradients, means and means of squares."""
    count = len(tensors) // 4
    lists = [tensors[start : start + count] for start in range(0, 4 * count, count)]
    for parameter, gradient, mean, square in zip(*lists, strict=True):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.addcdiv_(mean, square.sqrt().add_(1e-8), value=-1e-3)
    return ()


def convolved(memory_format: Any) -> Case:
    x = torch.zeros(32, 128, 56, 56, dtype=torch.bfloat16).contiguous(memory_format=memory_format)
    weight = torch.zeros(128, 128, 3, 3, dtype=torch.bfloat16).contiguous(memory_format=memory_format)
    return Case(lambda x, w: torch.relu(F.conv2d(x, w, padding=1)), (x, weight))


def convolution_gradients() -> Case:
    x = torch.zeros(32, 128, 56, 56, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    weight, ones, zeros = torch.zeros(128, 128, 3, 3, dtype=torch.bfloat16), [1, 1], [0, 0]
    backward = torch.ops.aten.convolution_backward
    steps = (None, ones, zeros, ones, False, zeros, 1, [True, True, False])
    return Case(lambda g, x, w: backward(g, x, w, *steps), (torch.zeros(32, 128, 54, 54, dtype=torch.bfloat16), x, weight))


def cases() -> dict[str, Callable[[], Case]]:
    """Return what makes each case."""
    half = torch.bfloat16
    vectors = lambda kind: (torch.zeros(SIDE, dtype=kind), torch.zeros(SIDE, dtype=kind))  # noqa: E731
    return {
        "pointwise float32": lambda: Case(chain, (matrix(), matrix())),
        "pointwise bfloat16": lambda: Case(chain, (matrix(half), matrix(half))),
        "pointwise open sizes": lambda: Case(lambda x, y: (chain(x, y),), (matrix(), torch.zeros(SIDE)), is_open=True),
        "updates": lambda: Case(updated, tuple(torch.zeros(size) for _ in range(4) for size in (SIDE * 768, 768) * 50)),
        "softmax float32": lambda: Case(lambda x: torch.softmax(x, -1), (matrix(),)),
        "softmax bfloat16": lambda: Case(lambda x: torch.softmax(x, -1), (matrix(half),)),
        "layer norm float32": lambda: Case(norm, (matrix(), *vectors(torch.float32))),
        "layer norm bfloat16": lambda: Case(norm, (matrix(half), *vectors(half))),
        "long softmax float32": lambda: Case(lambda x: torch.softmax(x, -1), (torch.zeros(512, 32768),)),
        "sum of rows": lambda: Case(lambda x: x.sum(1), (matrix(),)),
        "sum of columns": lambda: Case(lambda x: x.sum(0), (matrix(),)),
        "transpose": lambda: Case(lambda x: x.t().contiguous(), (matrix(),)),
        "product bfloat16": lambda: Case(lambda a, b: F.gelu(a @ b), (matrix(half), matrix(half))),
        "linear bfloat16": lambda: Case(lambda a, b: F.gelu(F.linear(a, b)), (matrix(half), matrix(half))),
        "few rows bfloat16": lambda: Case(F.linear, (torch.zeros(16, SIDE, dtype=half), matrix(half))),
        "weight gradient bfloat16": lambda: Case(
            lambda g, x: g.t() @ x, (torch.zeros(8192, 768, dtype=half), torch.zeros(8192, 768, dtype=half)),
        ),
        "product TF32": lambda: Case(lambda a, b: F.gelu(a @ b), (matrix(), matrix()), "tf32"),
        "product float32": lambda: Case(lambda a, b: F.gelu(a @ b), (matrix(), matrix())),
        "attention 64": lambda: attended(64, False),
        "attention 128": lambda: attended(128, False),
        "attention 64 backward": lambda: attended(64, True),
        "attention 128 backward": lambda: attended(128, True),
        "convolution channels last": lambda: convolved(torch.channels_last),
        "gradients of a convolution": convolution_gradients,
        "convolution": lambda: convolved(torch.contiguous_format),
    }  # fmt: skip


def pieces_of(case: Case, capability: int) -> TritonPieces:
    """Return the programs of a case for a generation of GPUs."""
    with torch.no_grad():
        trace = make_fx(case.function, tracing_mode="symbolic") if case.is_open else None
        module = trace(*case.inputs) if trace is not None else capture(case.function, case.inputs).module
    functionalize(module)
    return TritonCompiler(None, Precision(case.precision), limits=LIMITS[capability]).compile(module)[1]


@dataclass
class Facts:
    """What a kernel's machine code says. `spilled` are bytes, `spills_in_loops` instructions. `loads`, `asynchronous` and
    `stores` count instructions by bits; `matrices` counts matrix instructions."""

    registers: int
    spilled: int
    spills_in_loops: int
    shared: int
    warps: int
    loads: collections.Counter
    asynchronous: collections.Counter
    stores: collections.Counter
    matrices: collections.Counter

    def resident(self, capability: int) -> int:
        """Return how many programs one multiprocessor holds."""
        threads = 32 * self.warps
        by_registers = REGISTERS // (threads * -(-self.registers // 8) * 8)
        by_shared = SHARED[capability] // (self.shared + RESERVED)
        return min(THREADS // threads, by_registers, by_shared, 32)


def facts_of(cubin: bytes, shared: int, warps: int) -> Facts:
    """Read a cubin by NVIDIA's tools, which are part of Triton's package."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = _tool("cuobjdump", "-res-usage", file.name)
        code = _tool("nvdisasm", "-c", file.name)
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    count = lambda pattern: collections.Counter(_bits(each) for each in re.findall(pattern, code))  # noqa: E731
    return Facts(
        int(found[1]), int(found[2]), _spills_in_loops(code), shared, warps,
        count(r"\bLDG(\.E[\w.]*)"), count(r"\bLDGSTS(\.E[\w.]*)"),
        count(r"\bSTG(\.E[\w.]*)"), collections.Counter(re.findall(r"\b((?:HMMA|IMMA|HGMMA|IGMMA)\.[\dx]+)", code)),
    )  # fmt: skip


def _spills_in_loops(code: str) -> int:
    """Count the reads and writes of local memory between a label and a jump back to it."""
    lines = code.splitlines()
    labels = {line.strip().rstrip(":"): number for number, line in enumerate(lines) if line.endswith(":")}
    inside: set[int] = set()
    for number, line in enumerate(lines):
        jump = re.search(r"\bBRA\b.*?`\((\S+?)\)", line)
        first = labels.get(jump[1], number) if jump else number
        inside.update(range(first, number))
    return sum(bool(re.search(r"\b(?:LDL|STL)\b", lines[number])) for number in inside)


def _bits(suffixes: str) -> int:
    found = re.search(r"\.(?:[US](8|16)|(64|128))(?!\d)", suffixes)
    return int(found[1] or found[2]) if found else 32


def _tool(name: str, *arguments: str) -> str:
    from triton import knobs

    path = getattr(knobs.nvidia, name).path
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


def rows_of(name: str, case: Case, capabilities: tuple[int, ...], everything: bool) -> Iterator[tuple]:
    """Yield a row per kernel, choice and capability."""
    for capability in capabilities:
        for number, (_, program) in enumerate(pieces_of(case, capability).programs):
            functions = load_text(program.kernel_source, f"<{name} {number} for sm_{capability}>")
            for launch in program.kernels.values():
                for choice in launch.candidates if everything else [launch.choice]:
                    yield launch, choice, capability, _facts(functions, launch, choice, capability)


def _facts(functions: dict, launch: Launch, choice: Choice, capability: int) -> Facts | str:
    try:
        aligned = tuple(name for name, _ in launch.parameters)
        made = compile_kernel(functions, spec_of(launch, choice, aligned), capability)
    except Exception as error:  # the table names each kernel that fails
        return f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    return facts_of(made.cubin, made.shared, choice.warps)


def _counted(counter: collections.Counter) -> str:
    return " ".join(f"{count}x{bits}" for bits, count in sorted(counter.items(), key=lambda item: str(item[0]))) or "-"


def print_row(launch: Launch, choice: Choice, capability: int, facts: Facts | str) -> None:
    """Print a row of the table."""
    tiles = "x".join(map(str, choice.constants.values()))
    start = f"| {launch.kernel[:40]} | {capability} | {tiles} w{choice.warps} s{choice.stages} | "
    if isinstance(facts, str):
        print(f"{start}{facts} |")
        return
    columns = [
        facts.registers, facts.spilled, facts.spills_in_loops, facts.shared, _counted(facts.loads),
        _counted(facts.asynchronous), _counted(facts.stores), _counted(facts.matrices), facts.resident(capability),
    ]  # fmt: skip
    print(start + " | ".join(map(str, columns)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated beginnings of cases' names")
    parser.add_argument("--capabilities", default="80,90", help="compute capabilities, such as 80,90")
    parser.add_argument("--candidates", action="store_true", help="compile all candidates, not only the defaults")
    parser.add_argument("--show", action="store_true", help="print the kernels' text, too")
    arguments = parser.parse_args()
    only = tuple(arguments.only.split(",")) if arguments.only else ("",)
    capabilities = tuple(map(int, arguments.capabilities.split(",")))
    os.environ.pop("TRITON_INTERPRET", None)
    print("| kernel | sm | tile, warps, stages | registers | spilled bytes | spills in loops | shared bytes | loads |"
          " async loads | stores | matrix instructions | programs |\n|---|---|---|---:|---:|---:|---:|---|---|---|---|---:|")
    for name, make in cases().items():
        if name.startswith(only):
            case = make()
            if arguments.show:
                print(pieces_of(case, capabilities[0]).source)
            for row in rows_of(name, case, capabilities, arguments.candidates):
                print_row(*row)


if __name__ == "__main__":
    main()
