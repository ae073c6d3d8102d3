"""The symbolic interpreter: follows the bytecode of a frame, and of the functions that it calls, on tracked values.

In: a code object and tracked values for its parameters. Out: the tracked result, with graph, guards and effects in the session.
`opcodes` defines each instruction.
"""

from __future__ import annotations

import itertools
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rushlight.core.lazy_module import LazyModule
from rushlight.core.symbolic import UnknownSizeError
from rushlight.core.thread_state import state
from rushlight.dynamo import opcodes
from rushlight.dynamo.constant_calls import call_at_capture, is_marked
from rushlight.dynamo.dynamic import SymbolicFailure
from rushlight.dynamo.errors import FrameNeeded, GraphBreak
from rushlight.dynamo.handlers import CLOSURES
from rushlight.dynamo.instructions import PYTHON, Handler, Instruction
from rushlight.dynamo.services import Services
from rushlight.dynamo.session import Session
from rushlight.dynamo.sources import GLOBALS, Global, Local
from rushlight.dynamo.values.base import Raised, Value, realized
from rushlight.dynamo.values.classes import ClassValue
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.construction import SuperValue, construct
from rushlight.dynamo.values.devices import names_other_device
from rushlight.dynamo.values.exceptions import ExceptionValue, from_exception
from rushlight.dynamo.values.function import BoundMethodValue, CellValue, FunctionValue
from rushlight.dynamo.values.generators import GeneratorValue
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.number_tensors import call_with_tensors
from rushlight.dynamo.values.tensor import wrap_result

if TYPE_CHECKING:
    from traceback import FrameSummary

    from rushlight.fx.node import Node

traceback = LazyModule("traceback")  # only needed for graph breaks

_MAX_DEPTH = 100
_MAX_MATCH = 24  # an `except` clause tests the exception's type within this many instructions
_PROLOGUE = {"RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR"}  # belong to the line of `def`, not of the body
_MAX_STEPS = 300_000
_GENERATOR = 0x20
_ASYNC = 0x80 | 0x200


# Instructions at the end of an `except` block, before it re-raises an exception.
_CLEANUP = frozenset({"COPY", "POP_EXCEPT", "LOAD_CONST", "STORE_FAST", "DELETE_FAST"})


class Returned(Exception):
    """The followed function returns."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Yielded(Exception):
    """The followed generator yields."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Translator(Services):
    """One followed frame: its stack, local variables and cells. `parent` is the frame that called it."""

    def __init__(self, session: Session, code: types.CodeType, module_globals: dict, parent: Translator | None = None) -> None:
        self.session = session
        self.graph, self.guards, self.effects = session.graph, session.guards, session.effects
        self.code = code
        self.module_globals = module_globals
        self.parent = parent
        self.instructions, self.handlers = opcodes.handled(code)
        self.lines = session.lines.setdefault(code.co_filename, set())
        self.position = 0
        self.stack: list[Value] = []
        self.push = self.stack.append
        self.pop = self.stack.pop
        self.locals: dict[str, Value] = {}
        self.cells: dict[str, CellValue] = {}
        self.free_cells: list[CellValue] = []
        self.keyword_names: tuple[str, ...] = ()
        self.handled: list[Value] = []
        self.statements: list[int] = []
        self.result: Value = ConstantValue(None)
        self.raised_at: dict[int, tuple[int, Instruction]] = {}
        self.steps = 0
        self.modules: dict[str, tuple[str, type]] = {} if parent is None else parent.modules
        self._callers: str | None = None

    # Follow calls

    def call_in_graph(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Add a node for a call of the library. GraphBreak if it creates a leaf that requires grad: a graph's outputs cannot be
        leaves."""
        leaf = kwargs.get("requires_grad")
        if leaf is not None and leaf.is_constant() and leaf.constant():
            raise GraphBreak("a new tensor that requires grad", "make it outside of the compiled part")
        if names_other_device(target, args, kwargs):
            raise GraphBreak("a device that is neither the CPU nor a GPU")
        made = call_with_tensors(self, op, target, args, kwargs)
        if made is not None:
            return made
        values = tuple([value.node(self) for value in args])
        named = {name: value.node(self) for name, value in kwargs.items()}
        return wrap_result(self, *self.add_call(op, target, values, named))

    def add_call(self, op: str, target: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Node, Any]:
        """Add a node for a call whose arguments are nodes and plain values; returns it with the fake result."""
        if not self.session.may_be_handled:
            self.session.may_be_handled = self.has_handler()
        try:
            return self.graph.call(op, target, args, kwargs, self.stack_trace(), self.modules)
        except (GraphBreak, UnknownSizeError):
            raise
        except (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            if self.session.sizes.any:  # the failure may be due to open sizes
                raise SymbolicFailure(f"{type(error).__name__}: {error}") from error
            if self.graph.has_history and isinstance(error, RuntimeError):
                raise GraphBreak(f"an operation that may fail only because fakes have no history: {error}") from None
            raise Raised(from_exception(error)) from None

    def construct(self, kind: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a class."""
        return construct(self, kind.kind, args, kwargs)

    def inline(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow a call of a function written in Python."""
        if function.code.co_flags & _ASYNC:
            raise GraphBreak(f"{function} is a coroutine")
        if hasattr(function.function, "_rushlight_answer"):
            return self.wrap_constant(function.function._rushlight_answer)
        if function.code in CLOSURES:
            return self.call_closure(function.code, function.cells, args, kwargs)
        if is_marked(function):
            return call_at_capture(self, function, args, kwargs)
        disabled = getattr(function.function, "_rushlight_disabled", False)
        if disabled:
            reason = "is left out by torch.compiler.disable" if disabled is True else f"runs as it is: {disabled}"
            raise GraphBreak(f"{function} {reason}")
        if self.session.depth >= _MAX_DEPTH:
            raise GraphBreak(f"calls are nested more than {_MAX_DEPTH} deep")
        self.session.followed[id(function.code)] = function.code, function.function
        child = Translator(self.session, function.code, function.globals, self)
        if args and isinstance(args[0], ModuleValue) and args[0].source is not None:
            child.modules = {**self.modules, args[0].path: (args[0].path, args[0].kind)}
        child.start(function.bind(args, kwargs), function.cells)
        if function.code.co_flags & _GENERATOR:
            return GeneratorValue(child)
        return child.run()

    def call_closure(self, code: types.CodeType, cells: list[CellValue], args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call the program's function inside a library wrapper."""
        names = code.co_freevars
        closed = {name: cell.load(name) for name, cell in zip(names, cells, strict=True) if cell.content is not None}
        return CLOSURES[code](self, closed, args, kwargs)

    def start(self, arguments: dict[str, Value], free_cells: list[CellValue]) -> None:
        """Set the arguments and cells."""
        self.locals = arguments
        self.free_cells = free_cells
        self.cells = dict(zip(self.code.co_freevars, free_cells, strict=True))

    def implicit_super(self) -> Value:
        """Evaluate `super()` without arguments."""
        cell = self.cells.get("__class__")
        name = self.code.co_varnames[0] if self.code.co_argcount else None
        if cell is None or name is None:
            raise raised(RuntimeError("super(): no arguments"))
        owner = realized(self.locals.get(name) or self.cells[name].content)
        return SuperValue(cell.load("__class__").constant(), owner)

    def hides_cells(self) -> bool:
        """Return whether a comprehension's variable currently replaces one of an outer function."""
        names = self.code.co_freevars
        if set(names) & set(self.code.co_cellvars):
            return True
        return any(self.cells.get(name) is not cell for name, cell in zip(names, self.free_cells, strict=True))

    # Run instructions

    def run(self) -> Value:
        """Follow the frame to its end and return its result."""
        self.session.depth += 1
        caller, self.session.active = self.session.active, self
        try:
            while True:
                self.step()
        except Returned as returned:
            return returned.value
        finally:
            self.session.depth -= 1
            self.session.active = caller

    def go_on(self, sent: Value | None, error: Raised | None, is_result: bool) -> Value | None:
        """Follow a generator to its next `yield`; returns None if it ends, with its result in `result`.

        `sent` becomes the value of the current `yield`, None if the generator has not begun; `error` is raised there. With
        `is_result`, `sent` is the value of its `yield from`.
        """
        if error is not None:
            self._handle(self.instructions[self.position - 1], error)
        elif is_result:
            self._leave_delegate(sent)
        elif sent is not None:
            self.push(sent)
        try:
            while True:
                self.step()
        except Yielded as yielded:
            return yielded.value
        except Returned as returned:
            self.result = returned.value
            return None

    def is_guarded(self) -> bool:
        """Return whether a suspended generator is inside a try or with block of the program. (Since 3.12 CPython adds handlers
        of its own.)"""
        handler = self.instructions[self.position - 1].handler
        while handler is not None:
            index = handler.target
            while self.instructions[index].opname in _CLEANUP:
                index += 1
            if self.instructions[index].opname not in ("CLEANUP_THROW", "RERAISE"):
                break
            handler = self.instructions[index].handler
        return handler is not None and self.instructions[handler.target].opname != "CALL_INTRINSIC_1"

    def has_handler(self) -> bool:
        """Return whether this frame or a caller is inside a block that may catch an exception."""
        handler = self.instructions[self.position - 1].handler
        while handler is not None:
            if self._may_end_exception(handler):
                return True
            handler = self.instructions[handler.target].handler
        return self.parent is not None and self.parent.has_handler()

    def _may_end_exception(self, handler: Handler) -> bool:
        """Return whether a handler belongs to an `except`, or to a `with` on a manager of the program, rather than to a
        `finally`."""
        names = [instruction.opname for instruction in self.instructions[handler.target : handler.target + _MAX_MATCH]]
        if "WITH_EXCEPT_START" in names[:2]:
            return isinstance(self.stack[handler.depth - 1], BoundMethodValue)
        if names[:2] == ["PUSH_EXC_INFO", "POP_TOP"]:
            return True
        matching = ("PUSH_EXC", "LOAD_", "BUILD_TUPLE", "CHECK_E", "CACHE")
        loads = itertools.takewhile(lambda name: name.startswith(matching), names)
        return any(name.startswith("CHECK_E") for name in loads)

    def delegate(self) -> Value | None:
        """Return the iterator that a suspended generator delegates to by `yield from`."""
        resume = self.instructions[self.position]
        return self.stack[-1] if resume.opname == "RESUME" and resume.arg & 3 == 2 else None

    def _leave_delegate(self, result: Value) -> None:
        """Continue after a `yield from` whose generator has ended with this result."""
        send = self.instructions[self.instructions[self.position + 1].target]
        if PYTHON < (3, 12):
            self.pop()
        self.push(result)
        self.jump(send.target)

    def forget_objects(self) -> None:
        """Drop all values."""
        for values in (self.stack, self.locals, self.cells, self.free_cells, self.handled, self.raised_at):
            values.clear()

    def step(self) -> None:
        """Follow one instruction; if it raises, continue at its handler."""
        position, session = self.position, self.session
        instruction, handler = self.instructions[position], self.handlers[position]
        self.position = position + 1
        session.steps += 1
        if instruction.opname not in _PROLOGUE:
            self.lines.add(instruction.line)
        if self.parent is None:
            self._count_step()
        if session.steps > _MAX_STEPS:
            self._stop_following()
        if handler is None:
            raise GraphBreak(f"{opcodes.BREAKS[instruction.opname]} (instruction {instruction.opname})")
        try:
            handler(self, instruction)
        except Raised as error:
            self._handle(instruction, error)
        except GraphBreak as reason:
            reason.user_stack = reason.user_stack or self.user_stack()
            raise
        except UnknownSizeError as error:
            reason = GraphBreak(str(error))
            reason.user_stack = self.user_stack()
            raise reason from None

    def _count_step(self) -> None:
        """Count a step of the captured frame, and record it if a statement begins there."""
        if not self.stack and self.steps:
            self.statements.append(self.steps)
        self.steps += 1
        self.session.steps_before_call = self.session.steps

    def _stop_following(self) -> None:
        """Break the graph after too many steps. If a single call took most of them, Python only runs that call, else the whole
        frame."""
        reason = f"more than {_MAX_STEPS} instructions were followed, because all loops are unrolled"
        hint = "loop less, or inside of a function under torch.compiler.disable"
        if self.session.steps - self.session.steps_before_call > _MAX_STEPS // 2:
            raise GraphBreak(reason, hint)
        code = self.outermost().code
        place = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        text = f"compile: {place} runs in eager: {reason}; {hint}"
        warnings.warn(text, stacklevel=2)
        raise FrameNeeded(reason, hint)

    def outermost(self) -> Translator:
        """Return the captured frame at the bottom of the followed calls."""
        return self if self.parent is None else self.parent.outermost()

    def _handle(self, instruction: Instruction, error: Raised) -> None:
        """Jump to the handler of an exception; raise the exception if there is none."""
        handler = instruction.handler
        if handler is None:
            raise error
        self.raised_at.setdefault(id(error.value), (self.steps - 1, instruction))
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.push(ConstantValue(instruction.offset))
        self.push(error.value)
        self.position = handler.target

    def is_raised_by_python(self, error: Value) -> bool:
        """Return whether Python must raise a handled exception itself: the program made it, or a call passed it on."""
        if id(error) not in self.raised_at:
            return False
        name = self.raised_at[id(error)][1].opname
        return isinstance(error, ExceptionValue) or name not in ("RAISE_VARARGS", "RERAISE")

    def returned(self, value: Value) -> Returned:
        """Return the exception that ends the frame with a result."""
        return Returned(value)

    def yielded(self, value: Value) -> Yielded:
        """Return the exception that suspends the frame with a value."""
        return Yielded(value)

    def popn(self, count: int) -> list[Value]:
        """Pop the top `count` values, in the order in which they were pushed."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def jump(self, index: int) -> None:
        """Continue at an instruction."""
        self.position = index

    def load_global(self, name: str) -> Value:
        """Return a global variable or builtin."""
        written, value = self.effects.global_value(self.module_globals, name)
        if written:
            if value is None:
                raise raised(NameError(f"name '{name}' is not defined"))
            return value
        is_own = self.module_globals is self.session.module_globals
        is_library = str(self.module_globals.get("__name__", "")).partition(".")[0] == "rushlight"
        if name in self.module_globals:
            found = self.module_globals[name]
            if is_own:
                return self.wrap(found, Global(name))
            if is_library:
                value = self.wrap_constant(found)
                value.is_of_library = True
                return value
            return self.wrap(found, Global(name, self.session.hold(self.module_globals).name))
        if not is_library:
            self.guards.has_key(Local(GLOBALS) if is_own else self.held(self.module_globals), name, False)
        builtins = self.module_globals.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        if name not in builtins:
            raise raised(NameError(f"name '{name}' is not defined"))
        return self.wrap_constant(builtins[name])

    def user_stack(self) -> list[FrameSummary]:
        """Return the program's lines being followed, outermost first."""
        return [traceback.FrameSummary(*place, lookup_line=False) for place in self.user_places()]

    def user_places(self) -> list[tuple[str, int, str]]:
        """Return file, line and function of each followed frame, outermost first."""
        found = []
        frame: Translator | None = self
        while frame is not None:
            found.append(frame._place())
            frame = frame.parent
        return found[::-1]

    def _place(self) -> tuple[str, int, str]:
        code = self.code
        return code.co_filename, self.instructions[max(self.position - 1, 0)].line or code.co_firstlineno, code.co_name

    def stack_trace(self) -> str:
        """Return the followed lines in the format of a traceback. The callers' part is cached, except for generators, whose
        caller changes."""
        if self._callers is None or self.code.co_flags & _GENERATOR:
            self._callers = "" if self.parent is None else self.parent.stack_trace()
        return self._callers + self.graph.place_text(self._place())


@contextmanager
def restored_grad_mode() -> Iterator[None]:
    """Restore grad mode and autocast settings afterwards. Disables saved-tensor hooks meanwhile, which must not see fake
    tensors."""
    before, hooks = state.grad_enabled, state.saved_tensor_hooks
    cast, keys = state.autocast, (state.inference, state.include, state.exclude)
    state.saved_tensor_hooks = ()
    try:
        yield
    finally:
        state.grad_enabled, state.saved_tensor_hooks = before, hooks
        state.autocast, (state.inference, state.include, state.exclude) = cast, keys
