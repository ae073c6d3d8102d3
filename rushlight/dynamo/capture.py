"""Capture one frame: follow its bytecode, compile the graph, and write the function that replaces the frame.

In: a frame that is about to run, and a backend. Out: a `GuardedCode`, or None where the frame runs in eager. At a graph break
the frame is followed again from its start up to the breaking instruction; Python runs that instruction, and a resume function
captures the rest.
"""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

import rushlight.dynamo.standard  # noqa: F401  (fills the table of builtins)
from rushlight._C import GraphLaunch, skip_code, tail_call
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo import process_facts
from rushlight.dynamo.dynamic import ConstraintViolationError, OpenSizes, SymbolicFailure, all_fixed
from rushlight.dynamo.errors import FrameNeeded, GraphBreak, Restart
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.guarded_code import Followed, GuardedCode, Unsupported, new_graph_name
from rushlight.dynamo.guards import storages_differ
from rushlight.dynamo.handlers import CLOSURES
from rushlight.dynamo.input_names import InputNames
from rushlight.dynamo.instructions import Instruction, live_locals, parameter_names
from rushlight.dynamo.native import END, NULL_TEXT, HandledText, Native, native
from rushlight.dynamo.program import ProgramWriter, compile_function, line_mark
from rushlight.dynamo.rules import counters
from rushlight.dynamo.session import Session
from rushlight.dynamo.sources import FreeVariable, Local, NumberTensor, parameter_text
from rushlight.dynamo.translator import Returned, Translator, restored_grad_mode
from rushlight.dynamo.values.base import NULL, Value, has_finalizer, realized
from rushlight.dynamo.values.contexts import set_grad_enabled
from rushlight.dynamo.values.exceptions import HandledValue
from rushlight.dynamo.values.function import CellValue

# Lazy, because resume functions need the `bytecode` package, which is slow to import.
resume = LazyModule("rushlight.dynamo.resume")


class Break:
    """The place where following a frame stops: after `step` steps, for `reason`. With `runs_next` generated code runs the next
    instruction."""

    def __init__(self, step: int, reason: GraphBreak, runs_next: bool = True) -> None:
        self.step = step
        self.reason = reason
        self.runs_next = runs_next


def capture_frame(
    frame: Any, backend: Backend, fullgraph: bool = False, name: str = "graph", open_sizes: Callable[[], OpenSizes] = all_fixed,
    when_fixed: Callable[[SymbolicFailure], None] = lambda failure: None,
    when_eager: Callable[[GraphBreak], None] = lambda reason: None,
) -> GuardedCode | None:  # fmt: skip
    """Capture a frame. Returns None where capturing gains nothing or is impossible. Raises `Raised` where the frame itself
    raises.

    `open_sizes` says which sizes the capture leaves open. If a capture with open sizes fails, `when_fixed` gets the failure and
    the frame is captured again with all sizes fixed. `when_eager` gets the graph break that keeps all of the frame in eager.
    """
    try:
        return _capture_frame(frame, backend, fullgraph, name, open_sizes, when_eager)
    except SymbolicFailure as failure:
        when_fixed(failure)
        return _capture_frame(frame, backend, fullgraph, name, all_fixed, when_eager)


def _capture_frame(
    frame: Any, backend: Backend, fullgraph: bool, name: str, open_sizes: Callable[[], OpenSizes],
    when_eager: Callable[[GraphBreak], None],
) -> GuardedCode | None:  # fmt: skip
    """Capture a frame. If the capture must stop earlier than where it failed, capture again up to there."""
    stop: Break | None = None
    while True:
        with restored_grad_mode():
            capture = _Capture(frame, backend, stop, name, open_sizes())
            try:
                found = capture.run()
                if found is None and stop is not None:
                    when_eager(stop.reason)
                return found
            except Restart:
                continue
            except (SymbolicFailure, ConstraintViolationError):
                raise
            except GraphBreak as reason:
                reason.user_stack = reason.user_stack or capture.translator.user_stack()
                reason.forget_frames()
                if fullgraph:
                    raise Unsupported(reason.text()) from None
                stop = _find_earlier_break(capture, reason, stop)
                if stop is None:
                    when_eager(reason)
                    return None
            except Exception as error:
                if capture.session.sizes.any:
                    raise SymbolicFailure(f"{type(error).__name__}: {error}") from error
                raise
            finally:
                capture.forget_objects()


def _find_earlier_break(capture: _Capture, reason: GraphBreak, stop: Break | None) -> Break | None:
    """Return an earlier place to stop; None if that would be before the first step."""
    steps = capture.translator.steps
    if isinstance(reason, FrameNeeded):
        return None
    # If the stack or a variable holds a value that generated code cannot rebuild, break the graph before the program makes it.
    if stop is not None:
        before = [step for step in capture.translator.statements if step < stop.step]
        return Break(before[len(before) // 2], stop.reason, False) if before else None
    for error in capture.translator.handled:
        if capture.translator.is_raised_by_python(error):
            # The handler needs the real exception with its traceback, so the raising instruction runs in Python.
            steps = capture.translator.raised_at[id(error)][0] + 1
            break
    return Break(steps - 1, reason) if steps else None


class _Capture:
    def __init__(self, frame: Any, backend: Backend, stop: Break | None, name: str, sizes: OpenSizes) -> None:
        self.frame = frame
        self.backend = backend
        self.stop = stop
        self.name = name
        self.code = frame.f_code
        self.session = Session(
            parameter_names(self.code), self.code.co_freevars, frame.f_globals, sizes, InputNames(frame)
        )
        self.translator = self.session.active = Translator(self.session, self.code, frame.f_globals)
        session, node_of = self.session, self.session.graph.symbols.node_of
        self.writer = ProgramWriter(session.guards, frame.f_globals, session.effects, node_of)
        self.session.build_part = getattr(backend, "build_part", None)
        self.grad_before = state.grad_enabled

    def run(self) -> GuardedCode | None:
        """Follow the frame to its end or to where it was told to stop."""
        translator = self.translator
        process_facts.forget()
        self.session.guards.ambient()
        arguments = {name: translator.later(value, Local(name)) for name, value in self.frame.f_locals.items()}
        cells = [
            translator.wrap_cell(cell, FreeVariable(index), name)
            for index, (cell, name) in enumerate(zip(self.frame.closure, self.code.co_freevars, strict=True))
        ]
        translator.start(arguments, cells)
        if self.code in CLOSURES:
            return self._finish_with_return(self._call_closure(cells))
        try:
            while self.stop is None or translator.steps < self.stop.step:
                translator.step()
        except Returned as returned:
            return self._finish_with_return(returned.value)
        return self._finish_with_break()

    def _call_closure(self, cells: list[CellValue]) -> Value:
        """Call the program's function inside a library wrapper, with the wrapper's `*args, **kwargs`."""
        args, kwargs = map(realized, self.translator.locals.values())
        items = {} if kwargs is None else kwargs.items
        return self.translator.call_closure(self.code, cells, args.items_of(self.translator), items)

    def forget_objects(self) -> None:
        """Drop references to the program's objects."""
        self.session.forget_objects()
        self.translator.forget_objects()

    def _finish_with_return(self, value: Value) -> GuardedCode | None:
        """Build the code of a frame that was followed to its return."""
        if not self.session.graph.calls:
            return None
        self._check_generators()
        if self.session.open_modes:
            raise GraphBreak("a region of autocast or of inference mode that is left open")
        self._write_assertions()
        result = self.writer.expression(value)
        self._write_effects()
        self._grad_mode()
        self.writer.statement(f"return {result}")
        return self._build_guarded_code(None)

    def _check_generators(self) -> None:
        for generator in self.session.generators:
            generator.check_left()

    def _grad_mode(self) -> None:
        if state.grad_enabled != self.grad_before:
            self.writer.statement(f"{self.writer.name_of(set_grad_enabled, 'set_grad_enabled')}({state.grad_enabled})")

    def _finish_with_break(self) -> GuardedCode | None:
        """Build the code of a frame up to a graph break: the graph, the breaking instruction, and a resume function."""
        translator = self.translator
        index = translator.position
        instruction = translator.instructions[index]
        self._check_generators()
        self._write_assertions()
        stack = [self._on_stack(value) for value in translator.stack]
        ran = None
        if self.stop.runs_next:
            ran = native(instruction, index, stack, self._keyword_names(instruction))
        if ran is None and (not self.session.graph.calls or translator.keyword_names):
            return None
        values = {name: self.writer.expression(value) for name, value in translator.locals.items() if value is not NULL}
        cells = [self.writer.expression(translator.cells[name]) for name in self.code.co_cellvars if name in translator.cells]
        if len(cells) != len(self.code.co_cellvars) or translator.hides_cells():
            raise GraphBreak("a comprehension that hides a variable which functions captured")
        if not all(mode.is_written for mode in self.session.open_modes):
            raise GraphBreak("a region of autocast or of inference mode that is left open")
        if instruction.opname == "DELETE_FAST" and ran is not None:
            values.pop(instruction.argval, None)
        self._write_effects()
        self._grad_mode()
        self._name_variables(values)
        before = len(self.writer.lines)
        if ran is None:
            self.writer.statement(f"return {self._resume(index, stack, values, cells, is_plain=self.stop.runs_next)}")
        else:
            self._write_native(ran, instruction, index, stack, values, cells)
        lines = self.writer.lines
        for error in reversed(translator.handled):
            lines[before:] = self._wrap_in_handler(error, lines[before:])
        return self._build_guarded_code(self.stop.reason)

    def _name_variables(self, values: dict[str, str]) -> None:
        """Assign values to variables with the program's names, because code that Python runs here may inspect its caller's
        frame."""
        taken = {*self.writer.parameters, *vars(builtins)}
        for name, text in values.items():
            if name not in taken and name.isidentifier():
                self.writer.statement(f"{name} = {text}")

    def _wrap_in_handler(self, error: Value, lines: list[str]) -> list[str]:
        """Put statements into the handler of an exception that this frame handles or has just raised."""
        text, raised = self.writer.expression(error), self.translator.raised_at.get(id(error))
        # Raise on the original line, so that the traceback shows it.
        if raised is not None and raised[1].opname == "RAISE_VARARGS":
            return ["try:", f"    raise {text}{line_mark(raised[1].line)}", "except BaseException:", *_indent(lines)]
        kept = self.writer.keep(f"{text}.__traceback__, {text}.__context__")
        before = self.writer.lines.pop()
        again = f"{text}.__traceback__, {text}.__context__ = {kept}"
        return [before, "try:", f"    raise {text}", "except BaseException:", f"    {again}", *_indent(lines)]

    def _keyword_names(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the names of a call's keyword arguments. They come from an earlier instruction, since Python 3.13 from the
        stack."""
        return self.translator.stack[-1].constant() if instruction.opname == "CALL_KW" else self.translator.keyword_names

    def _on_stack(self, value: Value) -> str:
        """Write an expression for a value on the stack."""
        if value is NULL:
            return NULL_TEXT
        text = self.writer.expression(value)
        return HandledText(text) if isinstance(value, HandledValue) else text

    def _write_assertions(self) -> None:
        for assertion in self.session.assertions:
            self.writer.lines += assertion.write(self.writer)

    def _write_effects(self) -> None:
        self.session.effects.write(self.writer)

    def _write_native(
        self, ran: Native, instruction: Instruction, index: int, stack: list[str], values: dict, cells: list[str]
    ) -> None:
        """Write the breaking instruction as Python, and the calls of the resume functions after it."""
        writer, handler = self.writer, instruction.handler
        if any(END in line for line in ran.lines):
            self.session.guards.names[END] = object()
        if handler is None:
            writer.lines += ran.lines
        else:
            writer.statement("try:")
            writer.lines += _indent(ran.lines)
            writer.statement("except BaseException as __error:")
            error = "__error.with_traceback(__error.__traceback__.tb_next)"
            call = self._resume(index, stack[: handler.depth], values, cells, error, handler.target)
            writer.statement(f"    return {call}")
        for condition, target, after in ran.ways:
            call = self._resume(target, after, values, cells)
            if condition is None:
                writer.statement(f"return {call}")
            else:
                writer.statement(f"if {condition}:")
                writer.statement(f"    return {call}")

    def _resume(self, index: int, stack: list[str], values: dict[str, str], cells: list[str], error: str = "",
                live_at: int | None = None, is_plain: bool = False) -> str:  # fmt: skip
        """Return a call of the resume function for an instruction. With `is_plain` the resume function is never captured."""
        passed = self._resume_arguments(live_locals(self.code, index if live_at is None else live_at), values, cells)
        kinds = "".join("n" if text == NULL_TEXT else "h" if isinstance(text, HandledText) else "v" for text in stack)
        code = resume.resume_code(self.code, index, kinds, tuple(passed), bool(error), is_plain)
        if is_plain:
            skip_code(code)
        args = [*passed.values()] + [text for text in stack if text != NULL_TEXT] + ([error] if error else [])
        tail = self.writer.name_of(tail_call, "tail_call")
        return f"{tail}({', '.join([self._write_function(code, cells), *args])})"

    def _resume_arguments(self, live: frozenset[str], values: dict[str, str], cells: list[str]) -> dict[str, str]:
        """Return the variables to pass to a resume function. In a method that may call `super()` the receiver comes first."""
        first = resume.receiver_name(self.code)
        kept = {name for name, value in self.translator.locals.items() if not name.startswith("__") and has_finalizer(value)}
        found = {name: values[name] for name in sorted(values) if name in live or name in kept or name == first}
        if first in self.code.co_cellvars:
            first, found["__receiver"] = "__receiver", f"{cells[self.code.co_cellvars.index(first)]}.cell_contents"
        return {name: found[name] for name in sorted(found, key=lambda name: name != first)}

    def _write_function(self, code: types.CodeType, cells: list[str]) -> str:
        """Write an expression for a function with this code and these cells."""
        writer, name = self.writer, self.code.co_name
        if not code.co_freevars:
            return writer.name_of(types.FunctionType(code, self.frame.f_globals), f"resume_{name}", is_owned=True)
        free = [f"__closure[{index}]" for index in range(len(self.code.co_freevars))]
        kind = writer.name_of(types.FunctionType, "Function")
        closure = "".join(f"{cell}, " for cell in [*free, *cells])
        return f"{kind}({writer.name_of(code, f'code_{name}', is_owned=True)}, __globals, {name!r}, None, ({closure}))"

    def _check_overlap(self) -> None:
        """Break the graph if a mutated input may alias another input: a backend may reorder reads and writes."""
        graph = self.session.graph
        inputs = [(source, value) for _, source, value in graph.inputs if isinstance(value, Tensor)]
        tensors = [(source, value) for source, value in inputs if not isinstance(source, NumberTensor)]
        if not graph.writes_inputs() or len(tensors) < 2:
            return
        if self.session.has_arrays:  # arrays that are no inputs may be views of the same memory
            raise GraphBreak("an array or tensor that is written to, beside other inputs")
        if not storages_differ(*(tensor for _, tensor in tensors)):
            raise GraphBreak("an input that shares memory with another one is written to")
        self.session.guards.different_storages([source for source, _ in tensors])

    def _close_sizes(self) -> None:
        """Turn the assumptions about open sizes, the backend's included, into guards, and allow no more of them."""
        sizes = self.session.sizes
        sizes.check_required()
        self.session.guards.open_sizes(sizes)
        sizes.environment.freeze()

    def _read_symbols(self) -> list[str]:
        """Return statements that read the open sizes used by the generated code."""
        places = self.session.sizes.places()
        made = [source.symbols for _, source, _ in self.session.graph.inputs if isinstance(source, NumberTensor)]
        return [f"__{symbol.name} = {places[symbol]}" for symbol in sorted(self.writer.symbols.union(*made))]

    def _build_guarded_code(self, reason: GraphBreak | None) -> GuardedCode:
        """Compile the graph, and build the code that replaces the frame."""
        graph, first, module, graph_name = self.session.graph, [], None, None
        graph_state = state.grad_enabled
        for mode in reversed(self.session.open_modes):
            mode.leave(self.translator)
        if graph.calls:
            outputs = self.writer.outputs
            module = graph.finish(outputs, self.name)
            state.grad_enabled = self.grad_before
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += graph.calls
            compiled = self.backend(module, [tensor for _, _, tensor in graph.inputs])
            graph_name = new_graph_name()
            self.session.guards.names[graph_name] = _disable_capture(compiled)
            self._check_overlap()
            inputs = ", ".join(source.expression() for _, source, _ in graph.inputs)
            self._close_sizes()
            first = [f"{'__results = ' if outputs else ''}{graph_name}({inputs})"]
            if self.session.may_be_handled and (getattr(self.backend, "writes_last", False) or not graph.writes_inputs()):
                first = self._with_eager_fallback(first)
            state.grad_enabled = graph_state
        else:
            self._close_sizes()
        first = self._read_symbols() + first
        self.session.guards.different_objects(self.session.distinct)
        self.session.guards.different_objects(self.session.cells)
        text = self.writer.text(self.code.co_name if self.code.co_name.isidentifier() else "frame", first)
        last = self.translator.position - (reason is None)
        line = self.translator.instructions[max(last, 0)].line or self.code.co_firstlineno
        code = compile_function(text, self.code, line)
        names = {"__builtins__": self.frame.f_builtins, "__name__": self.frame.f_globals.get("__name__")}
        names |= self.session.guards.names
        check = self.session.guards.build()
        followed = self._record_for_reuse(reason)
        self.session.guards.finish()
        return GuardedCode(
            code, names, check, self.session.guards, text, module, reason, followed, graph_name, self.session.lines
        )

    def _with_eager_fallback(self, lines: list[str]) -> list[str]:
        """Run the frame in eager if the graph's call raises: a handler of the program may expect the exception."""
        code = self.code.replace(
            co_flags=self.code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
            co_argcount=len(self.writer.parameters), co_posonlyargcount=0, co_kwonlyargcount=0,
        )  # fmt: skip
        skip_code(code, True)
        arguments = ", ".join([self._write_function(code, []), *map(parameter_text, self.writer.parameters)])
        again = f"{self.writer.name_of(tail_call, 'tail_call')}({arguments})"
        failed = ["try:", *_indent(lines), "except Exception:", "    __failed = True", "if __failed:", f"    return {again}"]
        return ["__failed = False", *failed]

    def _record_for_reuse(self, reason: GraphBreak | None) -> Followed | None:
        """Return a record of this capture for reuse in other processes; None unless it covers the whole frame, leaves no sizes
        open and depends on no facts of this process."""
        if reason is not None or self.session.opens_numbers or self.session.may_be_handled or process_facts.were_seen():
            return None
        return Followed(self.session.guards.tree, tuple(self.session.followed.values()))


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _disable_capture(compiled: Callable) -> Callable:
    """Wrap `compiled` so that its own frames are not captured."""
    if type(compiled) is GraphLaunch:
        return compiled  # GraphLaunch disables the hook itself

    def call_graph(*inputs: Any) -> Any:
        return compiled(*inputs)

    skip_code(call_graph.__code__, True)
    return call_graph
