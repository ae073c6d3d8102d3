"""Resume functions: the rest of a function's code from one instruction on.

In: a code object, an instruction, and what is on the stack there. Out: a code object that takes the stack and the local
variables as parameters, puts the stack in place and jumps. The only file that assembles bytecode; the `bytecode` package
knows how.
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType

from bytecode import Bytecode, CellVar, FreeVar, Instr, Label, TryBegin, TryEnd
from bytecode.instr import InstrLocation

from rushlight.dynamo.instructions import PYTHON, decode

_PROLOGUE = ("MAKE_CELL", "COPY_FREE_VARS", "RESUME")


@lru_cache(maxsize=1024)
def resume_code(code: CodeType, index: int, stack: str, local_names: tuple[str, ...], raising: bool = False,
                is_plain: bool = False) -> CodeType:  # fmt: skip
    """The code from instruction `index` on.

    `stack` has a letter for each entry, from the bottom: "v" a value, "n" NULL, "h" what stands below a handled exception,
    which is being handled again. The parameters are the values of the stack, then `local_names`; with `raising` a last one,
    an exception, is raised there instead of running the instruction. Cell variables become free variables, after the
    original's own. `is_plain` makes a code object of its own for callers that never have it captured.
    """
    body = _with_depths(Bytecode.from_code(code), code)
    cells = tuple(code.co_cellvars)
    freevars = [*code.co_freevars, *cells]
    values = [f"__stack{position}" for position, kind in enumerate(stack) if kind != "n"]
    parameters = [*values, *local_names, *(["__raised"] if raising else [])]
    target = Label()
    location = InstrLocation(decode(code)[index].line, None, None, None)
    rest = _body_with_label(body, index, target, cells)
    prologue = ([Instr("COPY_FREE_VARS", len(freevars))] if freevars else []) + [Instr("RESUME", 0)]
    loads = [instruction for position, kind in enumerate(stack) for instruction in _load(position, kind)]
    made = Bytecode([*prologue, *loads, *_jump(body, index, target, raising, location), *rest])
    made.name, made.qualname, made.filename = code.co_name, code.co_qualname, code.co_filename
    made.first_lineno = code.co_firstlineno
    made.argcount, made.argnames = len(parameters), parameters
    made.freevars, made.cellvars = freevars, []
    made.flags = body.flags & ~0x0C
    made.docstring = None if PYTHON < (3, 13) else made.docstring
    # The stack depths are known; what would be computed does not know of the way in.
    return made.to_code(stacksize=code.co_stacksize + len(stack) + 2, compute_exception_stack_depths=False)


def _with_depths(body: Bytecode, code: CodeType) -> Bytecode:
    """The body, whose handlers' stack depths are those of the code's exception table, which reading does not keep."""
    position, begun = 0, []
    for item in body:
        if isinstance(item, TryBegin):
            begun.append(item)
        elif isinstance(item, Instr):
            handler = decode(code)[position].handler
            for entry in begun:
                entry.stack_depth = handler.depth if handler is not None else 0
            begun, position = [], position + 1
    return body


def _load(position: int, kind: str) -> list[Instr]:
    if kind == "n":
        return [Instr("PUSH_NULL")]
    load = Instr("LOAD_FAST", f"__stack{position}")
    return [load] if kind == "v" else [load, Instr("PUSH_EXC_INFO"), Instr("POP_TOP")]


def _body_with_label(body: Bytecode, index: int, target: Label, cells: tuple[str, ...]) -> list:
    found, position = [], 0
    for item in body:
        if isinstance(item, Instr):
            if position == index:
                found.append(target)
            position += 1
            if item.name in _PROLOGUE and item.name != "RESUME":
                continue
            if isinstance(item.arg, CellVar) and item.arg.name in cells:
                item = Instr(item.name, FreeVar(item.arg.name), location=item.location)
        found.append(item)
    return found


def _jump(body: Bytecode, index: int, target: Label, raising: bool, location: InstrLocation) -> list:
    if not raising:
        return [Instr("JUMP_FORWARD", target)]
    handler = _handler_at(body, index)
    raise_it = [Instr("LOAD_FAST", "__raised"), Instr("RAISE_VARARGS", 1, location=location)]
    if handler is None:
        return raise_it
    begin = TryBegin(handler.target, handler.push_lasti, handler.stack_depth)
    return [begin, *raise_it, TryEnd(begin)]


def _handler_at(body: Bytecode, index: int) -> TryBegin | None:
    active, position = None, 0
    for item in body:
        if isinstance(item, TryBegin):
            active = item
        elif isinstance(item, TryEnd):
            active = None
        elif isinstance(item, Instr):
            if position == index:
                return active
            position += 1
    return None
