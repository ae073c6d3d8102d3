"""Resume functions: the rest of a function's code, starting at one instruction.

In: a code object, an instruction, and the kinds of the stack entries there. Out: a code object that takes the stack and the
local variables as parameters, rebuilds the stack and jumps to the instruction. The only file that assembles bytecode, with the
`bytecode` package.
"""

from __future__ import annotations

import opcode
import weakref
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

from bytecode import Bytecode, CellVar, ConcreteBytecode, ConcreteInstr, FreeVar, Instr, Label, TryBegin, TryEnd
from bytecode.instr import InstrLocation

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import PYTHON, decode
from rushlight.dynamo.sources import STACK_PARAMETER

_PROLOGUE = ("MAKE_CELL", "COPY_FREE_VARS")
_ON_LOCALS = frozenset(opcode.opname[number] for number in opcode.haslocal)
_ON_TWO_LOCALS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"), "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}  # fmt: skip


@dataclass
class _Origin:
    """The origin of a resume function: instruction `begin + i` of it is instruction `places[i]` of `code`.

    The second half of a split instruction has None as its place.
    """

    code: CodeType
    begin: int
    places: list[int | None]
    made: weakref.ref[CodeType]


# id(code) of a resume function -> its origin, while the code lives. Not keyed by equality: equal codes may belong to different
# files.
_origins: dict[int, _Origin] = {}


def resume_code(code: CodeType, index: int, stack: str, local_names: tuple[str, ...], raising: bool = False,
                is_plain: bool = False) -> CodeType:  # fmt: skip
    """Return the code from instruction `index` on; the same place of the same function gives the same object.

    If `code` is a resume function itself, its original is resumed, so that a loop returns to the same resume function.
    """
    origin = _origins.get(id(code))
    if origin is not None and index >= origin.begin:
        code, index = origin.code, origin.places[index - origin.begin]
        if index is None:
            raise GraphBreak("a break between two loads that are one instruction")
    return _resume_code((code, code.co_filename), index, stack, local_names, raising, is_plain)


@lru_cache(maxsize=4096)
def _resume_code(original: tuple[CodeType, str], index: int, stack: str, local_names: tuple[str, ...], raising: bool,
                 is_plain: bool) -> CodeType:  # fmt: skip
    """Return the code of a file from instruction `index` on.

    `stack` has a letter for each entry, from the bottom: "v" a value, "n" NULL, "h" the entry below a handled exception, whose
    handling is restored. The parameters are `local_names`, then the values of the stack; with `raising` a last one, an
    exception, which is raised instead of running the instruction. Cell variables become free variables, after the original's
    own. `is_plain` makes a separate code object, for callers that never capture it.
    """
    code, _ = original
    body = _body_of(original)
    cells = tuple(code.co_cellvars)
    freevars = [*code.co_freevars, *cells]
    values = [f"{STACK_PARAMETER}{position}" for position, kind in enumerate(stack) if kind != "n"]
    parameters = [*local_names, *values, *(["__raised"] if raising else [])]
    target = Label()
    location = InstrLocation(decode(code)[index].line, None, None, None)
    rest, places = _body_with_label(body, index, target, cells)
    prologue = ([Instr("COPY_FREE_VARS", len(freevars))] if freevars else []) + [Instr("RESUME", 0)]
    loads = [instruction for position, kind in enumerate(stack) for instruction in _load(position, kind)]
    before = [*prologue, *loads, *_jump(body, index, target, raising, location)]
    made = Bytecode([*before, *rest])
    made.name, made.qualname, made.filename = code.co_name, code.co_qualname, code.co_filename
    made.first_lineno = code.co_firstlineno
    made.argcount, made.argnames = len(parameters), parameters
    made.freevars, made.cellvars = freevars, []
    made.flags = body.flags & ~0x0C
    made.docstring = None if PYTHON < (3, 13) else made.docstring
    # Keep the known stack depths: `bytecode` would compute them without the new entry point.
    concrete = made.to_concrete_bytecode(compute_exception_stack_depths=False)
    _redirect_cells(concrete, cells)
    found = concrete.to_code(stacksize=code.co_stacksize + len(stack) + 2, compute_exception_stack_depths=False)
    _register_resume_function(found, code, sum(isinstance(item, Instr) for item in before), places)
    return found


def _redirect_cells(concrete: ConcreteBytecode, cells: tuple[str, ...]) -> None:
    """Point instructions on local variables that are cells to the free variables that replaced these."""
    for item in concrete:
        if isinstance(item, ConcreteInstr) and item.name in _ON_LOCALS and item.name not in _ON_TWO_LOCALS:
            name = concrete.varnames[item.arg]
            if name in cells:
                size = item.size
                item.arg = len(concrete.varnames) + concrete.freevars.index(name)
                if item.size != size:
                    raise GraphBreak("a function with more than 256 variables")


def _register_resume_function(made: CodeType, code: CodeType, begin: int, places: list[int | None]) -> None:
    if len(decode(made)) == begin + len(places):
        key = id(made)
        _origins[key] = _Origin(code, begin, places, weakref.ref(made, lambda _: _origins.pop(key, None)))


@lru_cache(maxsize=64)
def _body_of(original: tuple[CodeType, str]) -> Bytecode:
    """Return the body as `bytecode` reads it. Its handlers get their stack depths from the exception table, which `bytecode`
    drops."""
    code, _ = original
    body, position, begun = Bytecode.from_code(code), 0, []
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
    name = f"{STACK_PARAMETER}{position}"
    # Delete the parameter, so that it does not keep the value alive longer than the stack did.
    moved = [Instr("LOAD_FAST", name), Instr("DELETE_FAST", name)]
    return moved if kind == "v" else [*moved, Instr("PUSH_EXC_INFO"), Instr("POP_TOP")]


def _body_with_label(body: Bytecode, index: int, target: Label, cells: tuple[str, ...]) -> tuple[list, list[int | None]]:
    """Return the body with the label before an instruction, and the index in `body` of each instruction."""
    found: list = []
    places: list[int | None] = []
    position, has_begun = 0, False
    for item in body:
        parts = [item]
        if isinstance(item, Instr):
            if position == index:
                found.append(target)
            has_begun |= item.name == "RESUME"
            parts = [] if item.name in _PROLOGUE and not has_begun else _use_free_variable(item, cells)
            places += [position, None][: len(parts)]
            position += 1
        found += parts
    return found, places


def _use_free_variable(item: Instr, cells: tuple[str, ...]) -> list[Instr]:
    """Turn an instruction on a cell variable into one on the free variable. An instruction on two local variables is split into
    two.

    CPython loads cells like local variables since 3.13, and comprehensions replace cells with locals since 3.12.
    """
    if item.name in _ON_TWO_LOCALS:
        pairs = zip(_ON_TWO_LOCALS[item.name], item.arg, strict=True)
        return [Instr(name, _name(variable), location=item.location) for name, variable in pairs]
    if item.name in _ON_LOCALS:
        return [Instr(item.name, _name(item.arg), location=item.location)]
    if isinstance(item.arg, CellVar):
        return [Instr(item.name, FreeVar(item.arg.name), location=item.location)]
    return [item]


def _name(variable: str | CellVar | FreeVar) -> str | FreeVar:
    return variable.name if isinstance(variable, CellVar) else variable


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


def receiver_name(code: CodeType) -> str | None:
    """Return the parameter that must stay first, because `super()` without arguments reads it."""
    return code.co_varnames[0] if "__class__" in code.co_freevars and code.co_argcount else None
