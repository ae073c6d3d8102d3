"""Tensors in structured programs as C++: views, reads and writes of memory, and calls of regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.cpp.structured_parts import SCALARS, Parts, declared
from rushlight.inductor.codegen.cpp.structured_scalars import UNORDERED
from rushlight.inductor.codegen.cpp.types import c_type
from rushlight.inductor.ir import Buffer
from rushlight.inductor.structured import FLOAT, Call, Copy, Read, Run, TensorOf, View, Write


class MemoryWriter(Parts):
    """Writes statements on tensors."""

    def _view(self, statement: View) -> Iterator[str]:
        target, terms = statement.target, [f"{statement.offset}L"]
        for term in statement.terms:
            at, index = self._temporary("at"), self._text(term.index)
            found = f"rl::program::position({index}, {term.limit}L)" if term.wraps else index
            yield f"const int64_t {at} = {found};"
            yield f"if ({at} < 0 || {at} >= {term.limit}L) return 1;"
            terms.append(f"{at} * {term.stride}L")
        yield f"{declared(target.kind)} {target} = {statement.source} + ({' + '.join(terms)});"

    def _emit_read(self, statement: Read) -> Iterator[str]:
        target = statement.target
        yield f"{self._target(target)} = ({SCALARS[target.kind.name]})*{statement.source};"

    def _copy(self, statement: Copy) -> Iterator[str]:
        target, address = statement.target, self._allocate(statement.target.kind.nbytes)
        yield f"{declared(target.kind)} {target} = ({declared(target.kind)}){address};"
        yield from self._copy_tensor(str(target), target.kind, str(statement.source), statement.source.kind)

    def _write(self, statement: Write) -> Iterator[str]:
        target, source = statement.target, statement.source
        if isinstance(source.kind, TensorOf):
            yield from self._copy_tensor(str(target), target.kind, str(source), source.kind)
            return
        kind, text, number = c_type(target.kind.dtype), self._text(source), self._temporary("number")
        if target.kind.dtype is bool_:
            yield f"bool {number} = {text} != 0;"
        elif target.kind.dtype.is_floating_point:
            yield f"{kind} {number} = ({kind}){text};"
            if source.kind == FLOAT and target.kind.dtype is float32:
                yield f"if (isinf({number}) && !isinf({text})) return 1;"
        else:
            if source.kind == FLOAT:
                yield f"if ({UNORDERED.format(text)}) return 1;"
            yield f"{kind} {number} = ({kind}){text};"
            yield f"if ((int64_t){number} != (int64_t){text}) return 1;"
        if target.kind.numel == 1:
            yield f"*{target} = {number};"
        else:
            every = TensorOf(target.kind.dtype, target.kind.size, (0,) * len(target.kind.size))
            yield from self._copy_tensor(str(target), target.kind, f"&{number}", every)

    def _call(self, statement: Call) -> Iterator[str]:
        """Pass tensors by address; results go to the arena. The callee knows dtypes and sizes."""
        slots, values = self._temporary("slots"), []
        for operand in statement.inputs:
            if isinstance(operand.kind, TensorOf):
                values.append(f"(int64_t){operand}")
            elif operand.kind == FLOAT:
                values.append(f"rl::program::to_bits({self._text(operand)})")
            else:
                values.append(f"(int64_t){self._text(operand)}")
        addresses = [self._allocate(var.kind.nbytes) for var in statement.outputs]
        values += [f"(int64_t){address}" for address in addresses]
        yield f"int64_t {slots}[] = {{{', '.join([*values, '0'])}}};"
        yield f"if (call({statement.number}L, {slots})) return 1;"
        for var, address in zip(statement.outputs, addresses, strict=True):
            yield f"{declared(var.kind)} {var} = ({declared(var.kind)}){address};"

    def _run(self, statement: Run) -> Iterator[str]:
        region = self.program.regions[statement.region]
        addresses = []
        for operand in statement.inputs:
            if isinstance(operand.kind, TensorOf):
                addresses.append(f"(void*){operand}")
                continue
            name = self._temporary("scalar")
            yield f"{SCALARS[operand.kind.name]} {name} = {self._text(operand)};"
            addresses.append(f"(void*)&{name}")
        program = region.program
        addresses += [f"kept_{statement.region}[{index}]" for index in range(program.kept)]
        outputs = {name: self._allocate(_bytes_of(program.groups, name)) for name in program.outputs}
        addresses += [f"(void*){address}" for address in outputs.values()]
        slots = self._temporary("slots")
        yield f"void* {slots}[] = {{{', '.join([*addresses, '(void*)scratch'])}}};"
        yield f"if (region_{statement.region}::entry({slots}{self.threads})) return 1;"
        for var, name in zip(statement.outputs, region.outputs, strict=True):
            yield f"{declared(var.kind)} {var} = ({declared(var.kind)}){outputs[name]};"


def _bytes_of(groups: Sequence, name: str) -> int:
    """Return the size of an output; no group writes an empty one."""
    members: list[Buffer] = [member for group in groups for member in group.members if member.name == name]
    return int(members[0].layout.numel * members[0].layout.dtype.itemsize) if members else 0
