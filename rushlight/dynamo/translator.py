"""The symbolic interpreter: follows the instructions of a frame on tracked values, and of the functions that it calls.

In: a code object and tracked values for its parameters. Out: the tracked result, with graph, guards and effects in the session.
`opcodes` says what each instruction does.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import FrameSummary
from typing import Any

from rushlight.core.thread_state import state
from rushlight.dynamo import opcodes
from rushlight.dynamo.errors import GraphBreak, Raised
from rushlight.dynamo.guards import EMPTY, Guards
from rushlight.dynamo.instructions import Instruction, decode
from rushlight.dynamo.session import Session, is_stable
from rushlight.dynamo.sources import Attribute, Global, Held, Source
from rushlight.dynamo.values import builtin
from rushlight.dynamo.values.base import Value, realized
from rushlight.dynamo.values.constant import ConstantValue, constant_of, fold, is_constant_value, raised
from rushlight.dynamo.values.containers import IteratorValue, SequenceValue, iterate
from rushlight.dynamo.values.contexts import GradModeValue, set_grad_enabled
from rushlight.dynamo.values.exceptions import ExceptionValue, from_exception
from rushlight.dynamo.values.function import BoundMethodValue, CellValue, FunctionValue, NamedMethodValue
from rushlight.dynamo.values.objects import ClassValue, ModuleValue, ObjectValue, PythonModuleValue, SuperValue, look_up
from rushlight.dynamo.values.tensor import wrap_result
from rushlight.nn.modules.global_hooks import call_hooks
from rushlight.nn.modules.module import Module

_DEEPEST = 100
_GENERATOR = 0x20
_ASYNC = 0x80 | 0x200


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


class Translator:
    """One frame that is followed: its stack, local variables and cells. `parent` is the frame that called it."""

    def __init__(self, session: Session, code: types.CodeType, module_globals: dict, parent: Translator | None = None) -> None:
        self.session = session
        self.code = code
        self.module_globals = module_globals
        self.parent = parent
        self.instructions = decode(code)
        self.position = 0
        self.stack: list[Value] = []
        self.locals: dict[str, Value] = {}
        self.cells: dict[str, CellValue] = {}
        self.free_cells: list[CellValue] = []
        self.keyword_names: tuple[str, ...] = ()
        self.handled: list[Value] = []
        self.statements: list[int] = []
        self.result: Value = ConstantValue(None)
        self.raised_at: dict[int, int] = {}
        self.steps = 0

    # What values ask for

    @property
    def graph(self):
        """The graph that is built."""
        return self.session.graph

    @property
    def guards(self):
        """The assumptions made."""
        return self.session.guards

    @property
    def effects(self):
        """The changes to objects from outside."""
        return self.session.effects

    def wrap(self, value: Any, source: Source | None) -> Value:
        """The tracked value of a real object."""
        return self.session.wrap(self, value, source)

    def later(self, value: Any, source: Source | None) -> Value:
        """The same, guarded when something looks at it."""
        return self.session.later(self, value, source)

    def wrap_constant(self, value: Any) -> Value:
        """The tracked value of an object that the frame always finds the same."""
        if is_constant_value(value):
            return constant_of(value)
        lasting = types.FunctionType | type | types.ModuleType | types.BuiltinFunctionType
        if isinstance(value, lasting) or builtin.is_builtin(value):
            return self.wrap(value, None)
        return self.wrap(value, self.session.hold(value))

    def wrap_class(self, kind: type) -> Value:
        """A class as value."""
        return self.wrap(kind, None)

    def wrap_constant_attribute(self, owner: Any, name: str, source: Source | None = None) -> Value:
        """An attribute of a function or builtin."""
        try:
            found = getattr(owner, name)
        except AttributeError as error:
            if source is not None:
                self.guards.add(f"not hasattr({source}, {name!r})", source, "no such attribute")
            raise raised(error) from None
        if source is not None:
            return self.wrap(found, Attribute(source, name))
        return self.wrap_constant(found)

    def wrap_class_attribute(self, owner: ClassValue, name: str) -> Value:
        """An attribute of a class that is neither a method nor a descriptor of a known kind."""
        found = getattr(owner.kind, name)
        if is_stable(owner.kind) or builtin.is_builtin(found):
            return self.wrap_constant(found)
        return self.wrap(found, Attribute(self.class_source(owner.kind), name))

    def wrap_module_attribute(self, owner: PythonModuleValue, name: str, found: Any) -> Value:
        """An attribute of a module."""
        if is_stable(owner.module):
            return self.wrap_constant(found)
        return self.wrap(found, Attribute(owner.source or self.held(owner.module), name))

    def class_member(self, kind: type, name: str, found: Any) -> Value | None:
        """The function of a method of any kind that a class has, guarded to stay there; None for what is no method."""
        if not isinstance(found, types.FunctionType | staticmethod | classmethod):
            return None
        self.guard_member(kind, name, found)
        return self.wrap_constant(found if isinstance(found, types.FunctionType) else found.__func__)

    def guard_member(self, kind: type, name: str, found: Any) -> None:
        """Assume that a class keeps what it has under a name."""
        owner = next(base for base in kind.__mro__ if name in base.__dict__)
        if is_stable(owner):
            return
        text, guards = guards_name(self.guards, kind), self.guards
        if isinstance(found, types.FunctionType) and type(kind) is type and name.isidentifier():
            test = f"{text}.{name} is {guards.name(found, found.__name__)}"
        else:
            test = f"{guards.name(look_up, 'look_up')}({text}, {name!r}) is {guards.name(found, 'member')}"
        guards.add(test, None, f"the class {kind.__name__}")

    def method_of(self, owner: Value, function: Value) -> Value:
        """A method with its object."""
        return BoundMethodValue(owner, function)

    def wrap_module_member(self, owner: ModuleValue, group: str, name: str, found: Any) -> Value:
        """A parameter, buffer or submodule: the graph keeps tensors, guarded by identity."""
        if found is None:
            return ConstantValue(None)
        self.guards.member(owner.source, group, name, found)
        if group == "_modules":
            return self.wrap(found, Held(self.session.hold(found).name))
        node = self.graph.known(found)
        if node is None:
            node = self.graph.attribute(found, self._path_of(owner, name))
        return self.tensor_value(node, Held(self.session.hold(found).name), type(found))

    def _path_of(self, owner: ModuleValue, name: str) -> str:
        return f"{type(owner.real).__name__}_{name}"

    def tensor_value(self, node: Any, source: Source | None, kind: type) -> Value:
        """The tracked value of a tensor with a node."""
        made = wrap_result(self, node, node.meta["example_value"])
        made.source = source
        made.kind = kind
        return made

    def wrap_cell(self, cell: types.CellType, source: Source, name: str) -> CellValue:
        """A real cell."""
        known = self.session.known(cell)
        if known is not None:
            self.session.same_place(known, cell, source)
            return known
        try:
            content = self.later(cell.cell_contents, Attribute(source, "cell_contents"))
        except ValueError:
            content = None
        made = CellValue(content, source, name)
        self.session.remember(cell, made)
        self.session.cells.append(source)
        return made

    def held(self, value: Any) -> Held:
        """A source for an object that generated code keeps."""
        return self.session.hold(value)

    def class_source(self, kind: type) -> Source:
        """A source for a class."""
        return self.session.hold(kind)

    def has_hooks(self, module: ModuleValue) -> bool:
        """Whether a module's call does more than run `forward`."""
        held = module.real.__dict__
        if not call_hooks:
            self.guards.add(f"not {self.guards.name(call_hooks, 'hooks_of_all_modules')}", None, "no hooks on all modules")
        names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        for name in names:
            if name in held and not held[name]:
                check = self.guards.check_of(module.source, name, EMPTY)
                self.guards.add(f"not {module.source}.{name}", module.source, "no hooks", check)
        return bool(call_hooks) or any(held.get(name) for name in names)

    def bound_method(self, owner: Value, name: str) -> Value:
        """A method of a value of a built-in type; AttributeError where its type has none of that name."""
        if not hasattr(owner.python_type(), name):
            raise raised(AttributeError(f"'{owner.python_type().__name__}' object has no attribute '{name}'"))
        return NamedMethodValue(owner, name)

    def key(self, value: Value) -> Any:
        """A value as key of a dict or item of a set."""
        if not value.is_constant():
            raise GraphBreak(f"{value} as a key")
        found = value.constant()
        try:
            hash(found)
        except TypeError as error:
            raise raised(error) from None
        return found

    def key_value(self, key: Any) -> Value:
        """The tracked value of a key."""
        return SequenceValue([self.key_value(item) for item in key], tuple) if type(key) is tuple else self.wrap_constant(key)

    def compare(self, symbol: str, left: Value, right: Value) -> Value:
        """A comparison."""
        return builtin.compare(self, symbol, left, right)

    def contains(self, values: Value, wanted: Value) -> Value:
        """`wanted in values`."""
        return builtin.contains(self, values, wanted)

    def item(self, owner: Value, key: Value) -> Value:
        """`owner[key]`."""
        if isinstance(owner, ClassValue):
            if type(owner.kind) is not type or not is_stable(owner.kind):
                raise GraphBreak("a subscripted class")
            return fold(operator.getitem, owner, key)
        return owner.item(self, key)

    def next(self, iterator: Value) -> Value | None:
        """The next value of an iterator, None at its end."""
        if isinstance(iterator, IteratorValue):
            return iterator.next(self)
        if isinstance(iterator, ObjectValue):
            try:
                return iterator.method(self, "__next__", [], {})
            except Raised as error:
                if issubclass(error.value.python_type(), StopIteration):
                    return None
                raise
        raise GraphBreak(f"next({iterator})")

    def next_or_raise(self, iterator: Value) -> Value:
        """`next(iterator)`."""
        found = self.next(iterator)
        if found is None:
            raise raised(StopIteration())
        return found

    def lazily(self, values: Value) -> Iterator[Value]:
        """The values that iterating yields, taken when they are needed."""
        if isinstance(values, ObjectValue):
            return self.drain(values.method(self, "__iter__", [], {}))
        return iterate(self, values).items

    def drain(self, iterator: Value) -> Iterator[Value]:
        """All further values of an iterator."""
        if isinstance(iterator, IteratorValue):
            yield from iterator.items
            return
        while (found := self.next(iterator)) is not None:
            yield found

    def result_of(self, iterator: Value) -> Value:
        """What an iterator that is at its end returned: the value of `yield from`."""
        return iterator.frame.result if isinstance(iterator, GeneratorValue) else ConstantValue(None)

    def set_grad_mode(self, enabled: bool) -> None:
        """Switch the grad mode from here on, in the graph and for what follows."""
        if state.grad_enabled == enabled:
            return
        node = self.graph.graph.create_node("call_function", set_grad_enabled, (enabled,))
        node.meta["example_value"] = None
        state.grad_enabled = enabled

    def implicit_super(self) -> Value:
        """`super()` without arguments."""
        cell = self.cells.get("__class__")
        name = self.code.co_varnames[0] if self.code.co_argcount else None
        if cell is None or name is None:
            raise raised(RuntimeError("super(): no arguments"))
        owner = realized(self.locals.get(name) or self.cells[name].content)
        return SuperValue(cell.load("__class__").constant(), owner)

    # Calls

    def call_in_graph(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of the library as a node."""
        values = tuple(value.node(self) for value in args)
        named = {name: value.node(self) for name, value in kwargs.items()}
        try:
            node, result = self.graph.call(op, target, values, named, self.user_stack())
        except GraphBreak:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError) as error:
            if self.graph.has_history and isinstance(error, RuntimeError):
                raise GraphBreak(f"an operation that may fail only because fakes have no history: {error}") from None
            raise Raised(from_exception(error)) from None
        return wrap_result(self, node, result)

    def construct(self, kind: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a class."""
        wanted = kind.kind
        if issubclass(wanted, BaseException) and not isinstance(look_up(wanted, "__init__"), types.FunctionType):
            if kwargs:
                raise GraphBreak(f"{wanted.__name__}() with keyword arguments")
            return ExceptionValue(wanted, args)
        if wanted in GradModeValue.KINDS and not args:
            return GradModeValue(wanted)
        if issubclass(wanted, tuple) and hasattr(wanted, "_fields"):
            return self._named_tuple(wanted, args, kwargs)
        if type(wanted) is not type or issubclass(wanted, Module | BaseException):
            raise GraphBreak(f"an object of class {wanted.__name__} is made")
        maker = look_up(wanted, "__new__")
        if maker is not object.__dict__["__new__"]:
            raise GraphBreak(f"class {wanted.__name__} has its own __new__")
        if any(not base.__flags__ & (1 << 9) and base is not object for base in wanted.__mro__):
            raise GraphBreak(f"class {wanted.__name__} has a built-in base")
        made = ObjectValue(wanted)
        initializer = look_up(wanted, "__init__")
        if isinstance(initializer, types.FunctionType):
            made.method(self, "__init__", args, kwargs)
        elif args or kwargs:
            raise raised(TypeError(f"{wanted.__name__}() takes no arguments"))
        return made

    def _named_tuple(self, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        fields = list(kind._fields)
        found = dict(zip(fields, args, strict=False)) | kwargs
        for name, default in kind._field_defaults.items():
            found.setdefault(name, self.wrap_constant(default))
        if set(found) != set(fields) or len(args) > len(fields):
            raise raised(TypeError(f"{kind.__name__}.__new__() got arguments that do not fit its fields {fields}"))
        return SequenceValue([found[name] for name in fields], kind)

    def inline(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow a call of a function written in Python."""
        if function.code.co_flags & _ASYNC:
            raise GraphBreak(f"{function} is a coroutine")
        if getattr(function.function, "_rushlight_disabled", False):
            raise GraphBreak(f"{function} is left out by torch.compiler.disable")
        if self.session.depth >= _DEEPEST:
            raise GraphBreak(f"calls are nested more than {_DEEPEST} deep")
        child = Translator(self.session, function.code, function.globals, self)
        child.start(function.bind(self, args, kwargs), function.cells)
        if function.code.co_flags & _GENERATOR:
            return GeneratorValue(child)
        return child.run()

    def start(self, arguments: dict[str, Value], free_cells: list[CellValue]) -> None:
        """Put the arguments and cells in place. The names of comprehensions' arguments come as "implicit0"."""
        first = self.code.co_varnames[0] if self.code.co_varnames else ""
        self.locals = {first if name == "implicit0" and first == ".0" else name: value for name, value in arguments.items()}
        self.free_cells = free_cells
        self.cells = dict(zip(self.code.co_freevars, free_cells, strict=True))

    # Running

    def run(self) -> Value:
        """Follow the frame to its end, and return what it returns."""
        self.session.depth += 1
        try:
            while True:
                self.step()
        except Returned as returned:
            return returned.value
        finally:
            self.session.depth -= 1

    def generate(self) -> Iterator[Value]:
        """Follow a generator from one `yield` to the next."""
        while True:
            try:
                while True:
                    self.step()
            except Yielded as yielded:
                yield yielded.value
                self.push(ConstantValue(None))
            except Returned as returned:
                self.result = returned.value
                return

    def step(self) -> None:
        """Follow one instruction; an exception that it raises goes to the handler, if there is one."""
        instruction = self.instructions[self.position]
        if not self.stack and self.parent is None and self.steps:
            self.statements.append(self.steps)
        self.position += 1
        self.steps += 1
        handler = opcodes.HANDLERS.get(instruction.opname)
        if handler is None:
            raise GraphBreak(f"instruction {instruction.opname}")
        try:
            handler(self, instruction)
        except Raised as error:
            self._handle(instruction, error)
        except GraphBreak as reason:
            reason.user_stack = reason.user_stack or self.user_stack()
            raise

    def _handle(self, instruction: Instruction, error: Raised) -> None:
        handler = instruction.handler
        if handler is None:
            raise error
        self.raised_at.setdefault(id(error.value), self.steps - 1)
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.push(ConstantValue(instruction.offset))
        self.push(error.value)
        self.position = handler.target

    def returned(self, value: Value) -> Returned:
        """What ends the frame with a result."""
        return Returned(value)

    def yielded(self, value: Value) -> Yielded:
        """What suspends the frame with a value."""
        return Yielded(value)

    def push(self, value: Value) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Take the value on top of the stack."""
        return self.stack.pop()

    def popn(self, count: int) -> list[Value]:
        """Take the `count` values on top of the stack, in the order in which they were pushed."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def jump(self, index: int) -> None:
        """Go on at an instruction."""
        self.position = index

    def load_global(self, name: str) -> Value:
        """A global variable or builtin."""
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
                return self.wrap_constant(found)
            return self.wrap(found, Global(name, self.session.hold(self.module_globals).name))
        if not is_library:
            namespace = "__globals" if is_own else self.held(self.module_globals).name
            self.guards.add(f"{name!r} not in {namespace}", None, "no global variable hides the builtin")
        builtins = self.module_globals.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        if name not in builtins:
            raise raised(NameError(f"name '{name}' is not defined"))
        return self.wrap_constant(builtins[name])

    def user_stack(self) -> list:
        """The lines of the program that are being followed, outermost first."""
        found: list = []
        frame: Translator | None = self
        while frame is not None:
            instruction = frame.instructions[max(frame.position - 1, 0)]
            line = instruction.line or frame.code.co_firstlineno
            found.insert(0, FrameSummary(frame.code.co_filename, line, frame.code.co_name))
            frame = frame.parent
        return found


def guards_name(guards: Guards, kind: type) -> str:
    """A name for a class in guards."""
    return guards.name(kind, kind.__name__ if kind.__name__.isidentifier() else "class")


class GeneratorValue(IteratorValue):
    """A generator whose function is followed when values are asked for."""

    def __init__(self, frame: Translator) -> None:
        super().__init__(frame.generate(), types.GeneratorType, runs_code=True)
        self.frame = frame


@contextmanager
def restored_grad_mode() -> Iterator[None]:
    """Leave the thread's grad mode as it was found."""
    before = state.grad_enabled
    try:
        yield
    finally:
        state.grad_enabled = before
