"""Writes a whole graph as one C++ translation unit with one entry.

`rushlight_entry(void** buffers)` runs all kernels. `buffers` holds inputs, constants, folded and packed constants, outputs and
the arena, in the order of `Program.slots`, followed by the values of the size symbols.
`rushlight_fold(void** buffers)` runs the loops over constants. `rushlight_pack(void** buffers)` packs constants, including
those that loops compute only for packing. Their `buffers` begin with the constants. If constants are packed, the slot `panels`
may hold `Program.panel_bytes` of memory: then the slots of packed constants are null, and the entry packs each constant there
just before its use, at once or panel by panel. For `rushlight_pack` that slot holds `Program.passing_bytes`.
`rushlight_arena_bytes()` is the arena's size; if that depends on size symbols, it is `rushlight_arena_bytes_for(const int64_t*
sizes)`.
In programs for any number of threads, each function takes an additional `int threads`, and the slot `panels` stays null.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from rushlight.core.storage import ALIGNMENT, aligned
from rushlight.inductor.codegen.cpp.columns import ColumnKernel, run_of_results
from rushlight.inductor.codegen.cpp.families import share
from rushlight.inductor.codegen.cpp.kernels import Kernel, KernelWriter, LoopKernel
from rushlight.inductor.codegen.cpp.ordered import ordered_kernel
from rushlight.inductor.codegen.cpp.packing import OWN_PANELS, THREADS, PackedOperand
from rushlight.inductor.codegen.cpp.templates import TemplateKernel
from rushlight.inductor.codegen.cpp.turned_rows import TurnedRowsKernel, turned_rows_of
from rushlight.inductor.codegen.cpp.turning import TurningKernel, turning_of
from rushlight.inductor.codegen.cpp.types import CPP_WORDS, c_type, size_text
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer, ConstantBuffer, InputBuffer
from rushlight.inductor.memory import ArenaPlan, Lifetime, SlotPlan, plan, plan_slots
from rushlight.inductor.scheduler import Group, is_ordered, schedule
from rushlight.inductor.sizes import as_size
from rushlight.inductor.write_backs import changed_in_place, written_in_place

# A barrier between kernels costs about a microsecond, so kernels must have at least this many operations on average.
PARALLEL_WORK = 200_000

MAX_OPTIMIZED_LINES = 200  # entries with more lines compile without optimization, because compile time matters more there

PANELS = "<panels>"  # the slot of the memory for packing during a run

# Variable names that the functions with C linkage use themselves.
_OWN_NAMES = {"buffers", "panels", "own_panels", "status", "status_value", "at", "clock", "runs", "member"}

HEADERS = ("vec", "elementwise", "math", "reduce", "parallel", "checks")

# Headers included only for templates that need them: a program with only loops then compiles in half the time.
TEMPLATE_HEADERS = {
    "gemm": "gemm", "bgemm": "gemm", "word_gemm": "word_gemm", "attention": "attention", "convolution": "conv",
    "attention_backward": "attention_backward", "direct_convolution": "image", "winograd": "winograd",
    "convolution_input": "convolution_input", "convolution_weight": "convolution_weight",
    "depthwise": "depthwise", "depthwise_input": "depthwise", "depthwise_weight": "depthwise", "grouped": "grouped",
    "grouped_input": "grouped", "volumes": "volume", "volumes_input": "volume", "recurrent": "recurrent",
    "recurrent_backward": "recurrent_backward", "block_gemm": "block_gemm", "block_rows": "block_gemm",
    "byte_layer": "byte_convolution", "word_convolution": "word_convolution",
}  # fmt: skip


@dataclass
class Program:
    """A program for a number of threads (None: any number): its text, the order of its arguments, and the decisions made."""

    threads: int | None
    source: str = ""
    slots: list[str] = field(default_factory=list)
    constants: list[ConstantBuffer] = field(default_factory=list)
    folded: list[Buffer] = field(default_factory=list)
    packed: list[PackedOperand] = field(default_factory=list)
    passing: list[Buffer] = field(default_factory=list)
    packed_offsets: dict[str, int] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    arena: ArenaPlan | SlotPlan | None = None
    groups: list[Group] = field(default_factory=list)
    calls: list[tuple[Group, str, Kernel]] = field(default_factory=list)
    write_timed: Callable[[str], str] = str  # declaration of the counters -> the text of a variant that measures itself

    @property
    def times(self) -> int:
        """The number of counters of the variant that measures itself: nanoseconds of each call, then the number of runs."""
        return len(self.calls) + 1

    def timed_source(self) -> str:
        """The text of a variant that measures its kernels."""
        return self.write_timed(times_declaration(self.times))

    @property
    def panels(self) -> tuple[str, ...]:
        """The slot of memory for packing during a run, if anything is packed."""
        return (PANELS,) if self.packed else ()

    @property
    def passing_bytes(self) -> int:
        """The size of the largest value that loops over constants compute only for packing."""
        sizes = [buffer.layout.numel * buffer.layout.dtype.itemsize for buffer in self.passing]
        return aligned(max(sizes, default=0))

    @property
    def panel_bytes(self) -> int:
        """The memory for packing during a run: an operand before and after packing. Programs for any number of threads do not
        pack there."""
        if self.threads is None:
            return 0
        alone = [operand.nbytes_in_run(self.threads) for operand in self.packed]
        together = sum(operand.aligned_nbytes for operand in self.packed if operand.name in self.packed_offsets)
        return self.passing_bytes + max([*alone, together])

    @property
    def kept(self) -> int:
        """The number of slots that stay the same between calls: constants, folded and packed ones, and `panels`."""
        return len(self.constants) + len(self.folded) + len(self.packed) + len(self.panels)


class ProgramWriter:
    """Writes the program of a lowered graph for a number of threads; None for any number."""

    def __init__(self, lowered: LoweredGraph, threads: int | None):
        self.lowered = lowered
        self.threads = threads
        self.parameter = ", int threads" if threads is None else ""
        self.symbols = lowered.symbols
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in lowered.buffers}
        self.external = {buffer.name for buffer in lowered.buffers if isinstance(buffer, InputBuffer | ConstantBuffer)}
        self.outputs = [name for name in dict.fromkeys(view.buffer for view in lowered.outputs) if name]
        self.packed: dict[str, PackedOperand] = {}
        self.packed_offsets: dict[str, int] = {}
        self.scratch: dict[str, str] = {}
        self.functions: dict[str, str] = {}  # name -> text
        self.calls: list[tuple[Group, str, Kernel]] = []
        self.in_place: dict[str, str] = {}
        self.passing: dict[str, tuple[str, Kernel]] = {}

    def write(self) -> Program:
        """Return the program."""
        own_outputs = [name for name in self.outputs if name not in self.external]
        written = {write.buffer for write in self.lowered.writes}
        groups = schedule(self.lowered.buffers, set(own_outputs) | written)
        self.in_place = changed_in_place(groups, self.lowered.writes, set(own_outputs))
        self._assign_functions([(group, self._write_kernel(group)) for group in groups])
        if not any(kernel.uses_status for _, _, kernel in self.calls):  # a program that may fail must not change its inputs
            self.in_place |= written_in_place(groups, self.lowered.writes, set(own_outputs))
        lifetimes = self._lifetimes(groups, set(own_outputs) | set(self.in_place), written)
        arena = plan_slots(lifetimes, self.symbols.hints) if self.symbols else plan(lifetimes)
        constants = self._used_constants()
        packed = [operand for operand in self.packed.values() if operand.constant]
        self.passing = self._find_only_packed()
        made = [member for group in groups if group.constant for member in group.members if member.name in group.stored]
        folded = [member for member in made if member.name not in self.passing]
        passing = [member for member in made if member.name in self.passing]
        program = Program(
            self.threads, constants=constants, folded=folded, packed=packed, passing=passing,
            packed_offsets=self.packed_offsets, outputs=own_outputs, arena=arena, groups=groups,
        )
        program.slots = [
            *(buffer.name for buffer in self.lowered.inputs), *(buffer.name for buffer in constants),
            *(buffer.name for buffer in folded), *(operand.name for operand in packed), *program.panels, *own_outputs,
        ]  # fmt: skip
        program.source = self._source_text(program)
        program.calls = [call for call in self.calls if not call[0].constant]
        program.write_timed = partial(self._source_text, program)
        return program

    def _find_only_packed(self) -> dict[str, tuple[str, Kernel]]:
        """Return result name -> call, for loops over constants whose result is only read by packing."""
        sources = {operand.source.buffer for operand in self.packed.values() if operand.constant}
        uses = Counter(name for _, _, kernel in self.calls for name in kernel.arguments)
        return {
            name: (called, kernel) for group, called, kernel in self.calls if group.constant and len(group.stored) == 1
            for name in group.stored if name in sources and uses[name] == 1
        }  # fmt: skip

    def _write_kernel(self, group: Group) -> Kernel:
        if group.template is not None:
            writer = TemplateKernel(group, self.buffers)
            kernel = writer.write()
            self._note_packed(kernel, writer.packed)
        else:
            writer = self._make_loop_writer(group)
            kernel = writer.write()
        if writer.scratch is not None:
            self.scratch[writer.scratch[0]] = writer.scratch[1]
        kernel.sizes = self._symbols_in(kernel.body)
        group.stored = writer.stored
        return kernel

    def _note_packed(self, kernel: Kernel, operands: list[PackedOperand]) -> None:
        """Record a kernel's packed operands. Operands of one kernel get separate parts of the memory for packing during a run;
        operands of different kernels reuse the same part."""
        for asked in operands:
            operand = self._with_own_name(asked)
            names = {asked.name: operand.name, asked.unpacked: operand.unpacked}
            kernel.arguments = [names.get(argument, argument) for argument in kernel.arguments]
            self.packed[operand.name] = operand
            if len(operands) > 1 and operand.constant and operand.name not in self.packed_offsets:
                self.packed_offsets[operand.name] = sum(self.packed[name].aligned_nbytes for name in self.packed_offsets)

    def _with_own_name(self, operand: PackedOperand) -> PackedOperand:
        """Give an operand a unique name: parts of one matrix may start at the same address but are packed separately."""
        found, number = operand, 0
        while self.packed.get(found.name, found) != found:
            number += 1
            found = replace(operand, name=f"{operand.name}_{number}")
        return found

    def _assign_functions(self, kernels: list[tuple[Group, Kernel]]) -> None:
        """Write one function for all kernels that are equal or differ only in numbers, and assign it to them."""
        texts = [kernel.text("@") for _, kernel in kernels]
        functions, members = share(texts)
        self.functions = {f"kernel_{number}": function for number, function in enumerate(functions)}
        for (group, kernel), text in zip(kernels, texts, strict=True):
            member = members[text]
            kernel.numbers = member.passed
            self.calls.append((group, f"kernel_{member.number}", kernel))

    def _make_loop_writer(self, group: Group) -> KernelWriter:
        if is_ordered(group.members[0]):
            return ordered_kernel(group, self.buffers, group.members[0].name in self.in_place)
        run = run_of_results(group, self.symbols.hints)
        if run:
            return ColumnKernel(group, self.buffers, run)
        rows = turned_rows_of(group, self.buffers)
        if rows:
            return TurnedRowsKernel(group, self.buffers, rows)
        turning = turning_of(group, self.buffers)
        return TurningKernel(group, self.buffers, turning) if turning else LoopKernel(group, self.buffers)

    def _symbols_in(self, lines: list[str]) -> list[str]:
        """Return the size symbols in C++ text."""
        words = set(re.findall(r"\w+", "\n".join(lines))) if self.symbols else ()
        return [name for name in self.symbols.names if name in words]

    def _lifetimes(self, groups: list[Group], elsewhere: set[str], written: set[str]) -> list[Lifetime]:
        """Return the lifetimes of buffers in the arena. Values that are written back to inputs live until the end."""
        last = {name: group.order for group in groups for name in group.reads()} | dict.fromkeys(written, len(groups))
        blocks = []
        for group in groups:
            for member in group.members:
                if member.name in group.stored and member.name not in elsewhere and not group.constant:
                    nbytes = as_size(member.layout.numel * member.layout.dtype.itemsize)
                    blocks.append(Lifetime(member.name, nbytes, group.order, last.get(member.name, group.order)))
        orders = {argument: group.order for group, _, kernel in self.calls for argument in kernel.arguments}
        for name, operand in self.packed.items():
            if not operand.constant:
                blocks.append(Lifetime(name, operand.nbytes, orders[name], orders[name]))
        return blocks

    def _used_constants(self) -> list[ConstantBuffer]:
        used = {argument for _, _, kernel in self.calls for argument in kernel.arguments}
        used |= {operand.source.buffer for operand in self.packed.values()} | set(self.outputs)
        return [buffer for buffer in self.lowered.constants if buffer.name in used]

    # Text

    def _source_text(self, program: Program, times: str = "") -> str:
        """Return the translation unit. `times` declares the counters `rushlight_times` of a variant that measures itself."""
        random = ("philox",) if any(kernel.streams for _, _, kernel in self.calls) else ()
        clock = ("clock",) if times else ()
        kinds = {group.template.kind for group, _, _ in self.calls if group.template is not None}
        needed = {TEMPLATE_HEADERS.get(kind, "") for kind in kinds} | {kernel.header for _, _, kernel in self.calls}
        special = sorted(needed - {""})
        includes = "\n".join(f"#include <rushlight/{name}.h>" for name in (*HEADERS, *special, *random, *clock))
        functions = []
        for name, text in self.functions.items():
            comment = "".join(f"// {line}\n" for line in self._source_comments(name))
            functions.append(comment + text.replace("@", name, 1))
        parts = [includes, *functions, self._fold_function(program), self._pack_function(program)]
        parts.append(self._entry_function(program, times))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _source_comments(self, name: str) -> list[str]:
        """Return comments with the operators and the user's source lines of a function's first use."""
        group = next(group for group, called, _ in self.calls if called == name)
        return [", ".join(group.origins()), *group.lines()]

    def _fold_function(self, program: Program) -> str:
        declared: list[str] = []
        names = self._declare_constants([*program.constants, *program.folded], declared)
        return self._function("fold", declared, [line for call in self._kernel_calls(names, constant=True) for line in call])

    def _pack_function(self, program: Program) -> str:
        declared: list[str] = []
        names = self._declare_constants([*program.constants, *program.folded, *program.packed], declared)
        names |= self._declare_passing(program, f"buffers[{program.kept - 1}]", declared)
        lines = [line for operand in program.packed for line in self._pack_constant(operand, names)]
        return self._function("pack", declared, lines)

    def _declare_passing(self, program: Program, address: str, lines: list[str]) -> dict[str, str]:
        """Declare values that are computed only to be packed: they all start at the beginning of slot `panels`."""
        return {buffer.name: self._declare(buffer.name, address, lines) for buffer in program.passing}

    def _declare_constants(self, kept: list[Buffer | PackedOperand], lines: list[str]) -> dict[str, str]:
        """Declare constants, and folded and packed ones."""
        return {item.name: self._declare(item.name, f"buffers[{index}]", lines) for index, item in enumerate(kept)}

    def _function(self, name: str, declared: list[str], calls: list[str]) -> str:
        """Return a function that folds or packs constants; empty if there is nothing to do."""
        if not calls:
            return ""
        body = "\n".join(f"  {line}" for line in [*self._run_in_all_threads(declared + calls), "return 0;"])
        return f'extern "C" RL_UNOPTIMIZED int rushlight_{name}(void** buffers{self.parameter}) {{\n{body}\n}}'

    def _entry_function(self, program: Program, times: str) -> str:
        lines = ["int status_value = 0;", "int* status = &status_value;"]
        names: dict[str, str] = {}
        pointers: list[str] = []
        for slot in program.panels:
            pointers.append(f"void* panels = buffers[{program.slots.index(slot)}];")
        panels = _address("panels", program.passing_bytes)
        for index, slot in enumerate(program.slots):
            if slot not in program.panels:
                at_once = slot in self.packed and not self.packed[slot].by_panels
                own = _address("panels", program.passing_bytes + program.packed_offsets.get(slot, 0))
                address = f"(panels ? {own} : buffers[{index}])" if at_once else f"buffers[{index}]"
                names[slot] = self._declare(slot, address, pointers)
        if any(operand.by_panels for operand in program.packed):
            pointers.append(f"void* own_panels = {panels};")
            names[OWN_PANELS] = "own_panels"
        names |= self._declare_passing(program, "panels", pointers)
        names |= {operand.unpacked: self._source_of(operand, names) for operand in program.packed}
        arena = f"((char*)buffers[{len(program.slots)}])"
        lines += self._read_symbols(f"(buffers + {len(program.slots) + 1})")
        arena_size = self._declare_arena_buffers(program.arena, arena, names, lines, pointers)
        names |= {name: names[target] for name, target in self.in_place.items()}
        runs = self._kernel_calls(names)
        if times:
            lines.append(f"rl::kernel_clock clock(rushlight_times, {len(runs)});")
            runs = [["clock.start();"], *([*run, f"clock.stop({number});"] for number, run in enumerate(runs))]
        calls = [line for run in runs for line in run]
        calls = self._in_parallel(pointers, [*calls, *self._write_backs(names)])
        body = "\n".join(f"  {line}" for line in [*lines, *calls, "(void)status;", "return status_value;"])
        quickly = "RL_UNOPTIMIZED " if len(calls) > MAX_OPTIMIZED_LINES else ""
        entry = f'extern "C" {quickly}int rushlight_entry(void** buffers{self.parameter}) {{\n{body}\n}}'
        return "\n\n".join(part for part in (times, arena_size, entry) if part)

    def _declare_arena_buffers(
        self, plan: ArenaPlan | SlotPlan, arena: str, names: dict[str, str], lines: list[str], pointers: list[str]
    ) -> str:
        """Declare the buffers in the arena; returns the function for its size. `lines` run once, `pointers` in each thread."""
        if isinstance(plan, SlotPlan):
            return self._declare_slot_buffers(plan, arena, names, lines, pointers)
        for name, offset in plan.offsets.items():
            names[name] = self._declare(name, f"({arena} + {offset}L)", pointers)
        for name in self.scratch:
            pointers.append(f"char* {name} = {arena} + {plan.nbytes};")
            names[name] = name
        scratch = self._scratch_sizes()
        total = f"{plan.nbytes} + rl::largest({', '.join(scratch)})" if scratch else str(plan.nbytes)
        return f'extern "C" long rushlight_arena_bytes({self.parameter[2:]}) {{ return {total}; }}'

    def _declare_slot_buffers(
        self, plan: SlotPlan, arena: str, names: dict[str, str], lines: list[str], pointers: list[str]
    ) -> str:
        """Do the same as `_declare_arena_buffers` for offsets that depend on size symbols."""
        slots = [list(map(size_text, slot.sizes)) for slot in plan.slots]
        scratch = self._scratch_sizes()
        slots += [scratch] if scratch else []
        given = ", threads" if self.threads is None else ""
        lines += [f"long at[{max(1, len(slots))}];", f"rushlight_place_blocks({', '.join(self.symbols.names)}, at{given});"]
        for number, slot in enumerate(plan.slots):
            for block in slot.blocks:
                names[block.name] = self._declare(block.name, f"({arena} + at[{number}])", pointers)
        for name in self.scratch:
            names[name] = name
            pointers.append(f"char* {name} = {arena} + at[{len(plan.slots)}];")
        return _placing_functions(slots, self.symbols.names, self.parameter)

    def _scratch_sizes(self) -> list[str]:
        """Return the scratch bytes of each kernel for all threads. All kernels use the same scratch memory, because they run
        one after the other."""
        sizes, threads = dict.fromkeys(self.scratch.values()), "(long)threads" if self.threads is None else f"{self.threads}L"
        shared = [size.replace(THREADS, threads) for size in sizes if THREADS in size]
        return [*shared, *(f"{threads} * ({size})" for size in sizes if THREADS not in size)]

    def _read_symbols(self, sizes: str) -> list[str]:
        return [f"const int64_t {name} = (int64_t){sizes}[{index}];" for index, name in enumerate(self.symbols.names)]

    def _in_parallel(self, pointers: list[str], calls: list[str]) -> list[str]:
        """Run the calls in parallel if there is enough work.

        Each thread reads the pointers itself, because sharing them takes the compiler longer than the rest of this function.
        """
        calls = [*pointers, *calls]
        kernels = [kernel for group, _, kernel in self.calls if not group.constant]
        work = as_size(sum(kernel.work for kernel in kernels))
        enough = PARALLEL_WORK * len(kernels)
        if self.threads == 1 or (isinstance(work, int) and work < enough):
            return calls
        condition = "" if isinstance(work, int) else f" if ({size_text(work)} >= {enough}L)"
        return self._run_in_all_threads(calls, condition)

    def _run_in_all_threads(self, lines: list[str], condition: str = "") -> list[str]:
        """Run lines in all threads."""
        if self.threads is None:
            count = f"{condition.removeprefix(' if ')} ? threads : 1" if condition else "threads"
            return [f"rl::in_team({count}, [&] {{", *(f"  {line}" for line in lines), "});"]
        return [
            f"rl::loop_progress runs[{self.threads}];",
            f"#pragma omp parallel num_threads({self.threads}){condition}",
            "{",
            "  rl::team_member member(runs);",
            *(f"  {line}" for line in lines),
            "}",
        ]

    def _declare(self, name: str, address: str, lines: list[str]) -> str:
        kind = self.packed[name].element if name in self.packed else c_type(self.buffers[name].layout.dtype)
        called = self._choose_name(name)
        lines.append(f"{kind}* {called} = ({kind}*){address};")
        return called

    def _choose_name(self, name: str) -> str:
        """Choose a buffer's C++ name: its name in the graph, unless the text uses that for something else. Users may choose
        such names."""
        taken, called = {*self.symbols.names, *self.functions, *_OWN_NAMES}, name
        while called in taken or called in CPP_WORDS or called != name and called in self.buffers:
            called += "_"
        return called

    def _write_backs(self, names: dict[str, str]) -> list[str]:
        """Return copies to inputs whose new values were computed elsewhere."""
        copies = []
        for write in self.lowered.writes:
            if write.buffer not in self.in_place:
                count = size_text(self.buffers[write.buffer].layout.numel)
                copies.append(f"rl::copy_shared({names[write.target]}, {names[write.buffer]}, {count});")
        return ["if (*status == 0) {", *(f"  {copy}" for copy in copies), "}"] if copies else []

    def _kernel_calls(self, names: dict[str, str], constant: bool = False) -> list[list[str]]:
        """Return the calls of the kernels that run each time, or of the kernels that fold constants. Each call comes after the
        packing of its operands during a run."""
        calls = []
        for group, name, kernel in self.calls:
            if group.constant is not constant or group.stored & self.passing.keys():
                continue
            packed = [self.packed[argument] for argument in kernel.arguments if argument in self.packed]
            line = next((line for member in group.members[::-1] for line in member.lines), "")
            kept = [step for operand in packed if operand.constant for step in self._pack_in_run(operand, names)]
            calls.append([
                *(f"if (panels) {step}" for step in kept),
                _call_text(name, kernel, names) + (f"  // {line}" if line else ""),
            ])  # fmt: skip
        return calls

    def _pack_constant(self, operand: PackedOperand, names: dict[str, str]) -> list[str]:
        """Return the statements that pack a constant, after the loop that computes it, if there is one."""
        packing = operand.call(self._source_of(operand, names), names[operand.name])
        return [*self._compute_before_packing(operand, names), packing]

    def _pack_in_run(self, operand: PackedOperand, names: dict[str, str]) -> list[str]:
        """Return the statements before a kernel that pack its operand during a run; a kernel with `by_panels` packs itself."""
        return self._compute_before_packing(operand, names) if operand.by_panels else self._pack_constant(operand, names)

    def _compute_before_packing(self, operand: PackedOperand, names: dict[str, str]) -> list[str]:
        """Return the loop that computes the value to pack, if there is one."""
        source = operand.source.buffer
        return [_call_text(*self.passing[source], names)] if source in self.passing else []

    def _source_of(self, operand: PackedOperand, names: dict[str, str]) -> str:
        """Return the address of the first element to pack."""
        offset = operand.source.offset
        return f"{names[operand.source.buffer]} + {offset}L" if offset else names[operand.source.buffer]


def times_declaration(count: int) -> str:
    """C++ that declares the counters of a library that measures itself, to which `Library.times` points."""
    return f'extern "C" {{ int64_t rushlight_times[{count}]; }}'


def _address(pointer: str, offset: int) -> str:
    return f"(char*){pointer} + {offset}L" if offset else pointer


def _call_text(name: str, kernel: Kernel, names: dict[str, str]) -> str:
    """Return the call of a kernel."""
    arguments = [names[argument] for argument in kernel.arguments]
    if kernel.uses_status:
        arguments.append("status")
    return f"{name}({', '.join([*arguments, *kernel.sizes, *kernel.numbers])});"


def _placing_functions(slots: list[list[str]], symbols: list[str], parameter: str) -> str:
    """Return C++ functions for the slots' offsets. A slot is as long as its largest block; the end of the last slot is the
    total size."""
    lines = ["long end = 0, bytes = 0;"]
    for number, (first, *others) in enumerate(slots):
        lines += [f"at[{number}] = end;", f"bytes = {first};"]
        lines += [f"if (bytes < {size}) bytes = {size};" for size in others]
        lines.append(f"end += (bytes + {ALIGNMENT - 1}L) / {ALIGNMENT}L * {ALIGNMENT}L;")
    body = "\n".join(f"  {line}" for line in [*lines, "(void)bytes;", "return end;"])
    head = ", ".join(f"int64_t {name}" for name in symbols)
    blocks = f'extern "C" long rushlight_place_blocks({head}, long* at{parameter}) {{\n{body}\n}}'
    values = ", ".join(f"sizes[{index}]" for index in range(len(symbols)))
    given = ", threads" if parameter else ""
    size = f"  long at[{max(1, len(slots))}];\n  return rushlight_place_blocks({values}, at{given});"
    return f'{blocks}\n\nextern "C" long rushlight_arena_bytes_for(const int64_t* sizes{parameter}) {{\n{size}\n}}'
