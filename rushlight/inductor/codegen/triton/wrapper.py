"""The functions of a program's text that launch its kernels: memory by the plan, launches in order.

Addresses are integers. `launcher.allocate(nbytes)` returns memory with an attribute `data_ptr`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rushlight.core.algebra import Expr, Var, to_python
from rushlight.inductor.codegen.triton.kernels import INDEX, STATUS, Axis, Choice, Launch, indented
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.codegen.triton.types import LIMIT
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer
from rushlight.inductor.memory import ArenaPlan
from rushlight.inductor.sizes import Size, as_size, evaluate


def grid_sizes(launch: Launch, values: Mapping[Var, int], choice: Choice | None = None) -> tuple[int, ...]:
    """Return the numbers of programs of a launch for these values of the size symbols, with its constants unless `choice` gives
    others."""
    if launch.members:
        return (sum(math.prod(grid_sizes(member, values, choice or launch.choice)) for member in launch.members),)
    constants = (choice or launch.choice).constants
    sizes = []
    for axis in launch.grid:
        count = 1
        for size, constant in axis:
            block = constants[constant] if constant else 1
            count *= -(-evaluate(size, values) // block)
        sizes.append(count)
    return tuple(sizes)


def wrapper_text(lowered: LoweredGraph, program: TritonProgram) -> str:
    """Return the text of the functions that launch a program's kernels."""
    buffers = {buffer.name: buffer for buffer in lowered.buffers}
    return "\n\n\n".join(WrapperWriter(lowered, program, buffers).write()) + "\n"


class WrapperWriter:
    """Writes `call`, and `fold` if there is something to fold."""

    def __init__(self, lowered: LoweredGraph, program: TritonProgram, buffers: dict[str, Buffer]):
        self.lowered = lowered
        self.program = program
        self.buffers = buffers
        self.names: dict[str, str] = {}

    def write(self) -> list[str]:
        """Return the functions' texts."""
        fold = [self._fold()] if self.program.fold_launches else []
        return [*fold, self._call()]

    def _fold(self) -> str:
        program = self.program
        lines = []
        for buffer in program.folded:
            lines.append(f"{buffer.name} = launcher.allocate({self._bytes_of(buffer.name)})")
        self.names = {buffer.name: f"{buffer.name}.data_ptr" for buffer in program.folded}
        lines += [self._launch(launch) for launch in program.fold_launches]
        lines.append(_returned([buffer.name for buffer in program.folded]))
        return _function("fold", ["launcher", *(buffer.name for buffer in program.constants)], lines)

    def _call(self) -> str:
        program = self.program
        parameters = [*(buffer.name for buffer in self.lowered.inputs), *(buffer.name for buffer in program.constants)]
        parameters += [buffer.name for buffer in program.folded]
        lines = [f"{name} = launcher.allocate({self._bytes_of(name)})" for name in program.outputs]
        self.names = {name: f"{name}.data_ptr" for name in program.outputs}
        self.names |= {name: target for name, target in program.in_place.items()}
        lines += self._arena_lines()
        if program.uses_status:
            lines.append("status = launcher.clear_status()")
            self.names[STATUS] = "status"
        lines += [self._launch(launch) for launch in program.launches]
        lines += self._free_lines()
        lines.append(_returned(program.outputs))
        return _function("call", ["launcher", *parameters, *self.lowered.symbols.names], lines)

    def _bytes_of(self, name: str) -> str:
        layout = self.buffers[name].layout
        return _text(as_size(layout.numel * layout.dtype.itemsize))

    def _arena_lines(self) -> list[str]:
        """Return the lines that allocate the arena and name the buffers in it."""
        arena = self.program.arena
        if isinstance(arena, ArenaPlan):
            if not arena.offsets:
                return []
            lines = [f"arena = launcher.allocate({arena.nbytes})"]
            for name, offset in arena.offsets.items():
                self.names[name] = _buffer_name(name)
                lines.append(f"{_buffer_name(name)} = arena.data_ptr + {offset}")
            return lines
        lines = []
        for number, slot in enumerate(arena.slots):
            most = ", ".join(_text(size) for size in slot.sizes)
            lines.append(f"slot{number} = launcher.allocate({f'max({most})' if len(slot.sizes) > 1 else most})")
            for block in slot.blocks:
                self.names[block.name] = _buffer_name(block.name)
                lines.append(f"{_buffer_name(block.name)} = slot{number}.data_ptr")
        return lines

    def _free_lines(self) -> list[str]:
        """Return the lines after the last launch: copies to mutated inputs, and the release of memory."""
        program, lines = self.program, []
        copies = [write for write in self.lowered.writes if write.buffer not in program.in_place]
        texts = [
            f"launcher.copy({write.target}, {self.names.get(write.buffer, write.buffer)}, {self._bytes_of(write.buffer)})"
            for write in copies
        ]
        if program.uses_status:
            lines.append("failed = launcher.has_failed(status)")
            texts = ["if not failed:", *indented(texts)] if texts else []
        if isinstance(program.arena, ArenaPlan):
            freed = ["launcher.free(arena)"] if program.arena.offsets else []
        else:
            freed = [f"launcher.free(slot{number})" for number in range(len(program.arena.slots))]
        return [*lines, *texts, *freed, *(["if failed:", "    return None"] if program.uses_status else [])]

    def _launch(self, launch: Launch) -> str:
        arguments = [
            self.names.get(each, _buffer_name(each)) if isinstance(each, str) else _text(each) for each in launch.arguments
        ]
        axes = map(str, grid_sizes(launch, {})) if launch.members else (_axis_text(axis, launch) for axis in launch.grid)
        grid = ", ".join(axes)
        constants = ", ".join(f'"{name}": {value}' for name, value in launch.choice.constants.items())
        if launch.open:
            largest = f"max({', '.join(map(_text, launch.open))})" if len(launch.open) > 1 else _text(launch.open[0])
            constants += f', "{INDEX}": 64 if {largest} >= {LIMIT} else 32'
        call = ", ".join([f'"{launch.kernel}"', f"({grid},)", f"({''.join(f'{each}, ' for each in arguments)})"])
        return f"launcher.launch({call}, {{{constants}}}, warps={launch.choice.warps}, stages={launch.choice.stages})"


def _axis_text(axis: Axis, launch: Launch) -> str:
    """Return the number of programs along an axis of the grid as Python text."""
    known, factors = 1, []
    for size, constant in axis:
        block = launch.choice.constants[constant] if constant else 1
        if isinstance(size, int):
            known *= -(-size // block)
        else:
            factors.append(f"(({_text(as_size(size + (block - 1)))}) // {block})" if block > 1 else f"({_text(size)})")
    return " * ".join([*factors, *([str(known)] if known != 1 or not factors else [])])


def _text(size: Size) -> str:
    return to_python(size) if isinstance(size, Expr) else str(size)


def _buffer_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)


def _returned(names: list[str]) -> str:
    return f"return ({''.join(f'{name}, ' for name in names)})"


def _function(name: str, parameters: list[str], lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {name}({', '.join(parameters)}):\n{body}"


