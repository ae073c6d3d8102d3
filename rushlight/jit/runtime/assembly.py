"""Assemble Code into MachineCode, the form that the C interpreter runs.

In: Code. Out: MachineCode, made once and kept with it. Each instruction becomes four numbers: operation, x, and the numbers of
popped and pushed values. Instructions without an operation of their own are RARE: the machine passes their position and values
to `interpreter.py`. RuntimeError for code that the verifier in `csrc/machine_verify.c` refuses.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight._C import MachineCode, machine_operations
from rushlight.jit.runtime.code import Code, Instruction
from rushlight.jit.runtime.type_checks import exact_class
from rushlight.jit.types.kinds import TupleType

OPERATIONS: dict[str, int] = machine_operations()
Counts = tuple[int, int]
Step = tuple[int, int, int, int]


def assembled(code: Code) -> MachineCode:
    """Return the machine form of a code. RuntimeError for inconsistent instructions."""
    if code.machine_code is None:
        try:
            code.machine_code = _Assembler(code).run()
        except ValueError as error:
            raise RuntimeError(f"the code of '{code.name}' can't be run: {error}") from error
    return code.machine_code


class _Assembler:
    def __init__(self, code: Code):
        self.code = code
        self.types: list[object] = []

    def run(self) -> MachineCode:
        """Assemble the whole code."""
        code = self.code
        steps = tuple(map(self._assemble_step, code.instructions, code.counts))
        return MachineCode(
            code, steps, tuple(code.constants), tuple(map(tuple, code.operators)), tuple(code.functions), tuple(code.names),
            tuple(self.types), code.input_count, code.output_count, code.register_count, code.is_final,
        )  # fmt: skip

    def _assemble_step(self, instruction: Instruction, counts: Counts) -> Step:
        op, x, n = instruction
        if op in _WITHOUT_COUNTS:
            return OPERATIONS[op], x, 0, 0
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, x, n, counts)
        if op in OPERATIONS:
            return OPERATIONS[op], x, n, counts[1]
        return OPERATIONS["RARE"], 0, n, counts[1]

    def _assemble_loop(self, x: int, n: int, counts: Counts) -> Step:
        """Return the round counter is on the stack below the inputs."""
        return OPERATIONS["LOOP"], x, n + 1, 0

    def _assemble_operator(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["OPN"], x, n, counts[1]

    def _assemble_call(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["CALL"], x, *counts

    def _assemble_tail_call(self, x: int, n: int, counts: Counts) -> Step:
        """Assemble a TAIL_CALL, which passes all inputs of the bailout except its template."""
        return OPERATIONS["TAIL_CALL"], x, counts[0] - 1, 0

    def _get_attribute(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["GET_ATTR"], x, 1, 1

    def _set_attribute(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["SET_ATTR"], x, 2, 0

    def _assemble_tuple(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["TUPLE_CONSTRUCT"], 0, x, 1

    def _assemble_named_tuple(self, x: int, n: int, counts: Counts) -> Step:
        kind: TupleType = self.code.types[x]
        if kind.python_class is None:
            return OPERATIONS["TUPLE_CONSTRUCT"], 0, n, 1
        if is_plain_named_tuple(kind.python_class, n):
            return OPERATIONS["NAMED_TUPLE_CONSTRUCT"], self._type(kind.python_class), n, 1
        return OPERATIONS["RARE"], 0, n, 1

    def _assemble_unpack(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["LIST_UNPACK"], 0, 1, x

    def _assemble_isinstance(self, x: int, n: int, counts: Counts) -> Step:
        classes = tuple(map(exact_class, self.code.types[x]))
        if None in classes:
            return OPERATIONS["RARE"], 0, 1, 1
        return OPERATIONS["ISINSTANCE"], self._type(classes), 1, 1

    def _assemble_create(self, x: int, n: int, counts: Counts) -> Step:
        return OPERATIONS["RARE"], 0, 0, 1

    def _guard(self, x: int, n: int, counts: Counts) -> Step:
        """Return the value stays on the stack below the result of the check."""
        return OPERATIONS["RARE"], 0, 1, 2

    def _type(self, found: object) -> int:
        self.types.append(found)
        return len(self.types) - 1


_WITHOUT_COUNTS = frozenset(("LOAD", "MOVE", "LOADC", "STORE", "DROP", "JF", "JMP", "RET"))
_SPECIAL: dict[str, Callable[[_Assembler, int, int, Counts], Step]] = {
    "LOOP": _Assembler._assemble_loop, "TYPECHECK": _Assembler._assemble_operator, "PROFILE_OP": _Assembler._assemble_operator,
    "CALL": _Assembler._assemble_call, "TAIL_CALL": _Assembler._assemble_tail_call, "GET_ATTR": _Assembler._get_attribute,
    "SET_ATTR": _Assembler._set_attribute, "TUPLE_CONSTRUCT": _Assembler._assemble_tuple,
    "NAMED_TUPLE_CONSTRUCT": _Assembler._assemble_named_tuple, "LIST_UNPACK": _Assembler._assemble_unpack,
    "ISINSTANCE": _Assembler._assemble_isinstance, "CREATE_OBJECT": _Assembler._assemble_create, "GUARD": _Assembler._guard,
    "FAIL_GUARD": _Assembler._guard,
}  # fmt: skip


def is_plain_named_tuple(python_class: type, count: int) -> bool:
    """Return whether a class is unmodified from `NamedTuple`, so that creating an instance runs no other code."""
    made = getattr(python_class.__new__, "__module__", None) or ""
    return python_class.__bases__ == (tuple,) and made.startswith("namedtuple_") and len(python_class._fields) == count
