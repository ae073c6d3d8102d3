"""Writes a structured program as one C++ translation unit.

`rushlight_entry(void** buffers)` runs it: `buffers[0]` is an array of 64-bit cells for inputs and then outputs, `buffers[1]`
the arena. A cell contains a number or a tensor's address. A list is passed as a length followed by its elements; lists and
tensors in lists are addresses. The status is 1 if the program gave up. Each region is a namespace with the code that inductor
writes for it. If the program calls Python functions, the last cell is the address of the function that calls them.
For repeated calls by a caller that keeps memory, `rushlight_prepare(void** buffers, int threads)` folds and packs constant
inputs of regions: `buffers[0]` has their cells, `buffers[1]` is memory of `rushlight_kept_bytes()`. The entry then takes that
memory in `buffers[2]`; it and the arena's size take the number of threads as a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.core.storage import aligned
from rushlight.inductor.codegen.cpp.program import times_declaration
from rushlight.inductor.codegen.cpp.structured_lists import LISTS, ListWriter
from rushlight.inductor.codegen.cpp.structured_memory import MemoryWriter
from rushlight.inductor.codegen.cpp.structured_parts import SCALARS, declared, width_of
from rushlight.inductor.codegen.cpp.structured_scalars import spelled
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    Branch,
    Call,
    Compute,
    Copy,
    Kind,
    ListOf,
    Null,
    Operand,
    Read,
    Region,
    Repeat,
    Run,
    Statement,
    Stop,
    StructuredProgram,
    TensorOf,
    Var,
    View,
    Write,
)


class StructuredWriter(ListWriter, MemoryWriter):
    """Writes the text of one program. `is_kept`: the caller keeps the folded and packed constant inputs. `is_timed`: the
    regions measure their kernels; the counters of each one in `rushlight_times` come after those of the regions before."""

    def __init__(self, program: StructuredProgram, is_kept: bool = False, is_timed: bool = False):
        super().__init__(program)
        self.is_kept = is_kept
        self.is_timed = is_timed
        self.kept_bytes = 0
        self.parameter, self.threads = (", int threads", ", threads") if is_kept else ("", "")

    def write(self) -> str:
        """Return the translation unit."""
        regions = [self._region(number, region) for number, region in enumerate(self.program.regions)]
        inputs = list(self._inputs())
        kept, prepared = self._declare_constants(), self._prepare()
        if self.is_kept:
            first = ["char* const kept = (char*)buffers[2];", "(void)kept; (void)threads;", *kept]
        else:
            first = [*kept, *prepared]
        work = [*first, *self._block(self.program.body), *self._outputs()]
        body = [*inputs, f"char* const scratch = arena + {self.arena}L;", "(void)scratch;", *work]
        entry = self._function_text("int rushlight_entry(void** buffers", body)
        scratch = [f"region_{number}::arena_bytes({self.threads[2:]})" for number in range(len(regions))]
        total = f"{self.arena}L + rl::largest(0L{''.join(f', {each}' for each in scratch)})"
        size = f'extern "C" long rushlight_arena_bytes({self.parameter[2:]}) {{ return {total}; }}'
        parts = [self._includes(), *self._times(), *regions, size, entry]
        return "\n\n".join([*parts, *(self._prepare_functions(kept, prepared) if self.is_kept else [])]) + "\n"

    def _function_text(self, head: str, lines: Sequence[str]) -> str:
        text = "\n".join(f"  {line}" for line in lines)
        return f'extern "C" {head}{self.parameter}) {{\n{text}\n}}'

    def _prepare_functions(self, kept: list[str], prepared: list[str]) -> Iterator[str]:
        """Yield the functions for a caller that keeps prepared constants."""
        yield f'extern "C" long rushlight_kept_bytes() {{ return {self.kept_bytes}L; }}'
        lines = ["int64_t* cells = (int64_t*)buffers[0];", "char* const kept = (char*)buffers[1];", "(void)cells; (void)kept;"]
        constant = {var for region in self.program.regions for var in region.constants}
        for number, var in enumerate(self.program.inputs):
            if var in constant:
                lines += self._input(var, f"cells[{number}]")
        lines += [*kept, *prepared, "(void)threads;", "return 0;"]
        yield self._function_text("int rushlight_prepare(void** buffers", lines)

    def _includes(self) -> str:
        found: dict[str, None] = {"#include <rushlight/vec.h>": None, "#include <rushlight/parallel.h>": None}
        for region in self.program.regions:
            lines = self._source_of(region, 0).splitlines()
            found.update(dict.fromkeys(line for line in lines if line.startswith("#include")))
        return "\n".join([*found, "#include <rushlight/program.h>"])

    def _source_of(self, region: Region, first: int) -> str:
        """Return a region's text, which measures itself by the counters from number `first` on where the unit is timed."""
        if not self.is_timed:
            return region.program.source
        return region.program.write_timed(f"static int64_t* const rushlight_times = ::rushlight_times + {first};")

    def _times(self) -> Iterator[str]:
        if self.is_timed:
            yield times_declaration(sum(region.program.times for region in self.program.regions))

    def _region(self, number: int, region: Region) -> str:
        """Return a region's functions in a namespace."""
        first = sum(each.program.times for each in self.program.regions[:number])
        lines = [line for line in self._source_of(region, first).splitlines() if not line.startswith("#include")]
        text = "\n".join(lines).strip("\n")
        text = text.replace('extern "C" ', "static ").replace("static void kernel_", "static inline void kernel_")
        for name in ("entry", "fold", "pack", "arena_bytes"):
            text = text.replace(f"rushlight_{name}(", f"{name}(")
        return f"namespace region_{number} {{\n{text}\n}}"

    # Inputs, constants, outputs

    def _inputs(self) -> Iterator[str]:
        yield "int64_t* cells = (int64_t*)buffers[0];"
        yield "char* const arena = (char*)buffers[1];"
        yield "rl::program::heap memory;"
        yield "(void)cells; (void)arena;"
        if self.program.calls:
            last = len(self.program.inputs) + len(self.program.outputs)
            yield f"int (*const call)(int64_t, int64_t*) = (int (*)(int64_t, int64_t*))cells[{last}];"
        for number, var in enumerate(self.program.inputs):
            yield from self._input(var, f"cells[{number}]")
        for var, copy in self.program.written:
            address = self._allocate(var.kind.nbytes)
            yield f"{declared(copy.kind)} {copy} = ({declared(copy.kind)}){address};"
            yield f"memcpy({copy}, {var}, {var.kind.nbytes}L);"

    def _input(self, var: Var, cell: str) -> Iterator[str]:
        if isinstance(var.kind, ListOf):
            depth, element = _nesting(var.kind)
            arguments = f"{depth}, {width_of(element)}, {str(isinstance(element, TensorOf)).lower()}, (const int64_t*){cell}"
            yield f"rl::program::list* {var} = rl::program::received(memory, {arguments});"
            yield f"if (!{var}) return 1;"
        elif isinstance(var.kind, TensorOf):
            yield f"{declared(var.kind)} {var} = ({declared(var.kind)}){cell};"
        elif var.kind == FLOAT:
            yield f"const double {var} = rl::program::from_bits({cell});"
        else:
            yield f"const {SCALARS[var.kind.name]} {var} = {cell}{' != 0' if var.kind == BOOL else ''};"

    def _declare_constants(self) -> list[str]:
        """Declare the addresses of regions' constant inputs, and of the folded and packed ones."""
        lines = []
        for number, region in enumerate(self.program.regions):
            program = region.program
            sizes = {buffer.name: buffer.layout.numel * buffer.layout.dtype.itemsize for buffer in program.folded}
            sizes |= {operand.name: 4 * operand.depth * (operand.columns + 64) for operand in program.packed}
            addresses = [f"(void*){var}" for var in region.constants]
            addresses += [f"(void*){self._allocate_kept(int(nbytes))}" for nbytes in sizes.values()]
            lines += [f"void* kept_{number}[] = {{{', '.join([*addresses, 'nullptr'])}}};", f"(void)kept_{number};"]
        return lines

    def _allocate_kept(self, nbytes: int) -> str:
        """Return the address of memory for a folded or packed constant input."""
        if not self.is_kept:
            return self._allocate(nbytes)
        offset = self.kept_bytes
        self.kept_bytes += aligned(nbytes)
        return f"(kept + {offset}L)"

    def _prepare(self) -> list[str]:
        """Fold and pack the regions' constant inputs."""
        lines = []
        for number, region in enumerate(self.program.regions):
            program = region.program
            if program.folded:
                lines.append(f"region_{number}::fold(kept_{number}{self.threads});")
            if program.packed:
                last = program.kept - 1
                lines += [
                    f"kept_{number}[{last}] = (void*){self._allocate_kept(program.passing_bytes)};",
                    f"region_{number}::pack(kept_{number}{self.threads});",
                    f"kept_{number}[{last}] = nullptr;",
                ]
        return lines

    def _outputs(self) -> Iterator[str]:
        yield from self._check_outputs_share_no_memory()
        first = len(self.program.inputs)
        for number, operand in enumerate(self.program.outputs):
            cell = f"cells[{first + number}]"
            kind = operand.kind
            if isinstance(operand, Null):
                yield f"{cell} = 0;"
            elif isinstance(kind, TensorOf):
                yield f"if ({operand}) {{"
                yield from self._copy_tensor(f"(({declared(kind)}){cell})", TensorOf(kind.dtype, kind.size), str(operand), kind)
                yield "}"
            elif isinstance(kind, ListOf):
                depth, element = _nesting(kind)
                made = f"rl::program::returned({operand}, {depth}, {width_of(element)})"
                yield f"{cell} = {operand} ? (int64_t){made} : 0;"
                yield f"if ({operand} && !{cell}) return 1;"
            elif kind == FLOAT:
                yield f"{cell} = rl::program::to_bits({self._text(operand)});"
            else:
                yield f"{cell} = (int64_t){self._text(operand)};"
        for var, copy in self.program.written:
            yield f"memcpy({var}, {copy}, {var.kind.nbytes}L);"
        yield "return 0;"

    def _check_outputs_share_no_memory(self) -> Iterator[str]:
        """Give up if an output shares memory with an input or another output, because outputs must be copies. A caller that
        keeps memory wants copies of inputs anyway, so then only outputs are compared."""
        tensors = [each for each in self.program.outputs if isinstance(each, Var) and isinstance(each.kind, TensorOf)]
        old = [var for var in self.program.inputs if isinstance(var.kind, TensorOf) and not self.is_kept]
        for position, output in enumerate(tensors):
            for var in [*old, *(copy for _, copy in self.program.written if not self.is_kept)]:
                at, first = f"(const char*){output}", f"(const char*){var}"
                if var.kind.nbytes:
                    yield f"if ({at} >= {first} && {at} < {first} + {var.kind.nbytes}L) return 1;"
            for other in tensors[:position]:
                if output.kind.numel:
                    yield f"if ({output} && (const void*){output} == (const void*){other}) return 1;"

    # Statements

    def _block(self, statements: Sequence[Statement]) -> Iterator[str]:
        for statement in statements:
            yield from _WRITERS[type(statement)](self, statement)

    def _indent_block(self, statements: Sequence[Statement]) -> Iterator[str]:
        return (f"  {line}" for line in self._block(statements))

    def _compute(self, statement: Compute) -> Iterator[str]:
        special = LISTS.get(statement.op)
        if special is not None:
            yield from special(self, statement)
            return
        text, stops = spelled(statement.op, statement.operands, self._text)
        if stops is not None:
            yield f"if ({stops}) return 1;"
        yield f"{self._target(statement.target)} = {text};"

    def _stop(self, statement: Stop) -> Iterator[str]:
        yield "return 1;"

    def _branch(self, statement: Branch) -> Iterator[str]:
        for var, _, _ in statement.results:
            yield f"{declared(var.kind)} {var}{' = nullptr' if isinstance(var.kind, TensorOf | ListOf) else ' = 0'};"
        yield f"if ({self._text(statement.condition)}) {{"
        yield from self._indent_block(statement.then)
        yield from (f"  {line}" for line in self._assignments([(var, then) for var, then, _ in statement.results]))
        yield "} else {"
        yield from self._indent_block(statement.otherwise)
        yield from (f"  {line}" for line in self._assignments([(var, other) for var, _, other in statement.results]))
        yield "}"

    def _assignments(self, pairs: list[tuple[Var, Operand | None]]) -> Iterator[str]:
        for var, operand in pairs:
            if operand is not None and not isinstance(operand, Null):
                yield f"{var} = {self._text(operand, var.kind)};"

    def _repeat(self, statement: Repeat) -> Iterator[str]:
        going, round_ = self._temporary("going"), self._temporary("round")
        for var, initial, _ in statement.carried:
            yield f"{declared(var.kind)} {var} = {self._text(initial, var.kind)};"
        yield f"bool {going} = {self._text(statement.condition)};"
        yield f"for (int64_t {round_} = 0; {round_} < {self._text(statement.limit)} && {going}; ++{round_}) {{"
        yield f"  const int64_t {statement.counter} = {round_};"
        yield f"  (void){statement.counter};"
        yield from self._indent_block(statement.body)
        yield f"  {going} = {self._text(statement.next_condition)};"
        yield from (f"  {line}" for line in self._carry(statement))
        yield "}"

    def _carry(self, statement: Repeat) -> Iterator[str]:
        """Assign all loop-carried variables at once. Tensors are copied, because the next round overwrites their memory, except
        tensors whose memory is older than the loop. Lists are not copied."""
        changed = [(var, following) for var, _, following in statement.carried if var is not following]
        copied = [(var, following) for var, following in changed if self._is_copied(var, statement)]
        fresh = _tensors_made_by_regions(statement.body)
        names = []
        for var, following in changed:
            if not self._is_copied(var, statement):
                names.append((var, self._temporary("next")))
                yield f"{declared(var.kind)} const {names[-1][1]} = {self._text(following, var.kind)};"
        yield from self._copy_carried(copied, fresh)
        for var, name in names:
            yield f"{var} = {name};"

    def _is_copied(self, var: Var, statement: Repeat) -> bool:
        return isinstance(var.kind, TensorOf) and var not in statement.pointers

    def _copy_carried(self, pairs: list[tuple[Var, Operand]], fresh: set[Var]) -> Iterator[str]:
        addresses = {var: self._allocate(var.kind.nbytes) for var, _ in pairs}
        sources = {}
        for var, following in pairs:
            sources[var] = (self._text(following), following.kind)
            if following not in fresh and len(pairs) > 1 and not isinstance(following, Null):
                staged, whole = self._allocate(var.kind.nbytes), TensorOf(var.kind.dtype, var.kind.size)
                held = self._temporary("held")
                yield f"char* const {held} = {following} ? {staged} : nullptr;"
                yield f"if ({held}) {{"
                yield from self._copy_tensor(staged, whole, str(following), following.kind)
                yield "}"
                sources[var] = (held, whole)
        for var, following in pairs:
            source, kind = sources[var]
            if following in fresh:
                yield from self._copy_tensor(addresses[var], var.kind, source, kind)
                yield f"{var} = ({declared(var.kind)}){addresses[var]};"
            elif isinstance(following, Null):
                yield f"{var} = nullptr;"
            else:
                yield f"if ({source}) {{"
                yield from self._copy_tensor(addresses[var], var.kind, source, kind)
                yield f"  {var} = ({declared(var.kind)}){addresses[var]};"
                yield f"}} else {var} = nullptr;"


_WRITERS = {
    Compute: StructuredWriter._compute, Run: StructuredWriter._run, View: StructuredWriter._view,
    Read: StructuredWriter._emit_read, Call: StructuredWriter._call, Write: StructuredWriter._write,
    Copy: StructuredWriter._copy, Stop: StructuredWriter._stop,
    Branch: StructuredWriter._branch, Repeat: StructuredWriter._repeat,
}  # fmt: skip


def _nesting(kind: ListOf) -> tuple[int, Kind]:
    """Return the nesting depth of lists in a list, and the type of innermost elements."""
    depth, element = 0, kind.element
    while isinstance(element, ListOf):
        depth, element = depth + 1, element.element
    return depth, element


def _tensors_made_by_regions(body: Sequence[Statement]) -> set[Var]:
    """Return the tensors that regions directly in a loop's body write anew in each round."""
    return {var for statement in body if isinstance(statement, Run) for var in statement.outputs}
