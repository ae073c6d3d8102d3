"""Capture of one frame: follow it, compile its graph, and write the function that takes its place.

In: a frame that is about to run, and a backend. Out: a `GuardedCode`, or None where the frame runs as it is. Where
something cannot be captured, the frame is followed anew up to that instruction; Python runs the instruction, and a resume
function goes on behind it.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rushlight._C import skip_code, tail_call
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import FrameNeeded, GraphBreak
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.guards import Guards
from rushlight.dynamo.instructions import Instruction, live_locals, parameter_names
from rushlight.dynamo.native import END, NULL_TEXT, HandledText, Native, native
from rushlight.dynamo.program import ProgramWriter, compile_function
from rushlight.dynamo.resume import resume_code
from rushlight.dynamo.session import Session
from rushlight.dynamo.sources import FreeVariable, Local
from rushlight.dynamo.translator import Returned, Translator, restored_grad_mode
from rushlight.dynamo.values.base import NULL, Value
from rushlight.dynamo.values.contexts import set_grad_enabled
from rushlight.dynamo.values.exceptions import ExceptionValue, HandledValue
from rushlight.fx.graph_module import GraphModule


@dataclass
class GuardedCode:
    """What runs in a frame's place, and when. `source` is the text of `code`."""

    code: types.CodeType
    globals: dict[str, Any]
    check_fn: Callable[..., bool]
    guards: Guards
    source: str
    graph: GraphModule | None
    break_reason: GraphBreak | None = None


@dataclass
class Break:
    """Where following a frame stops: after how many steps, and why; whether generated code runs the next instruction."""

    step: int
    reason: GraphBreak
    runs_next: bool = True


class Unsupported(RuntimeError):
    """With `fullgraph`, the error for a program that cannot be captured as one graph."""


def capture_frame(frame: Any, backend: Backend, fullgraph: bool = False, name: str = "graph") -> GuardedCode | None:
    """Capture a frame; None where there is nothing to gain or no way to go on. Raised where the frame raises an exception."""
    stop: Break | None = None
    while True:
        with restored_grad_mode():
            capture = _Capture(frame, backend, stop, name)
            try:
                return capture.run()
            except GraphBreak as reason:
                reason.user_stack = reason.user_stack or capture.translator.user_stack()
                if fullgraph:
                    raise Unsupported(reason.text()) from None
                stop = _earlier(capture, reason, stop)
                if stop is None:
                    return None


def _earlier(capture: _Capture, reason: GraphBreak, stop: Break | None) -> Break | None:
    """Where to stop instead; None where that would be before the first step."""
    steps = capture.translator.steps
    if isinstance(reason, FrameNeeded):
        return None
    if stop is not None:  # a value on the stack or in a variable cannot be made again: stop before it was made
        before = [step for step in capture.translator.statements if step < stop.step]
        return Break(before[len(before) // 2], stop.reason, False) if before else None
    made = [error for error in capture.translator.handled if isinstance(error, ExceptionValue)]
    if any(id(error) in capture.translator.raised_at for error in capture.translator.handled) and not made:
        return None  # a real exception, to which only Python adds the lines that it comes through
    if made:  # the handler needs the exception with its traceback: let Python raise it
        steps = capture.translator.raised_at[id(made[0])] + 1
    return Break(steps - 1, reason) if steps else None


class _Capture:
    def __init__(self, frame: Any, backend: Backend, stop: Break | None, name: str) -> None:
        self.frame = frame
        self.backend = backend
        self.stop = stop
        self.name = name
        self.code = frame.f_code
        self.session = Session(parameter_names(self.code), frame.f_globals)
        self.translator = Translator(self.session, self.code, frame.f_globals)
        self.writer = ProgramWriter(self.session.guards.parameters, frame.f_globals, self.session.effects)
        self.grad_before = state.grad_enabled

    def run(self) -> GuardedCode | None:
        """Follow the frame to its end or to where it was told to stop."""
        translator = self.translator
        self.session.guards.ambient()
        arguments = {name: translator.later(value, Local(name)) for name, value in self.frame.f_locals.items()}
        cells = [
            translator.wrap_cell(cell, FreeVariable(index), name)
            for index, (cell, name) in enumerate(zip(self.frame.closure, self.code.co_freevars, strict=True))
        ]
        translator.start(arguments, cells)
        try:
            while self.stop is None or translator.steps < self.stop.step:
                translator.step()
        except Returned as returned:
            return self._finish_with_return(returned.value)
        return self._finish_with_break()

    def _finish_with_return(self, value: Value) -> GuardedCode | None:
        if not self.session.graph.calls:
            return None
        result = self.writer.expression(value)
        self._effects()
        self._grad_mode()
        self.writer.statement(f"return {result}")
        return self._build(None)

    def _grad_mode(self) -> None:
        if state.grad_enabled != self.grad_before:
            self.writer.statement(f"{self.writer.name_of(set_grad_enabled, 'set_grad_enabled')}({state.grad_enabled})")

    def _finish_with_break(self) -> GuardedCode | None:
        translator = self.translator
        index = translator.position
        instruction = translator.instructions[index]
        stack = [self._on_stack(value) for value in translator.stack]
        ran = None
        if self.stop.runs_next and not translator.handled:
            ran = native(instruction, index, stack, self._keyword_names(instruction))
        if ran is None and (not self.session.graph.calls or translator.keyword_names):
            return None
        values = {name: self.writer.expression(value) for name, value in translator.locals.items() if value is not NULL}
        cells = [self.writer.expression(translator.cells[name]) for name in self.code.co_cellvars if name in translator.cells]
        if len(cells) != len(self.code.co_cellvars):
            return None
        self._effects()
        self._grad_mode()
        if ran is None:
            self.writer.statement(f"return {self._resume(index, stack, values, cells, is_plain=self.stop.runs_next)}")
        else:
            self._write_native(ran, instruction, index, stack, values, cells)
        return self._build(self.stop.reason)

    def _keyword_names(self, instruction: Instruction) -> tuple[str, ...]:
        """The names of a call's keyword arguments: from an instruction before, since 3.13 from the stack."""
        return self.translator.stack[-1].constant() if instruction.opname == "CALL_KW" else self.translator.keyword_names

    def _on_stack(self, value: Value) -> str:
        if value is NULL:
            return NULL_TEXT
        text = self.writer.expression(value)
        return HandledText(text) if isinstance(value, HandledValue) else text

    def _effects(self) -> None:
        self.session.effects.write(self.writer)

    def _write_native(
        self, ran: Native, instruction: Instruction, index: int, stack: list[str], values: dict, cells: list[str]
    ) -> None:
        writer, handler = self.writer, instruction.handler
        if any(END in line for line in ran.lines):
            writer.names[END] = object()
        if handler is None:
            writer.lines += ran.lines
        else:
            writer.statement("try:")
            writer.lines += [f"    {line}" for line in ran.lines]
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
        """The call of the function that goes on at an instruction; with `is_plain` it is left to Python."""
        live = live_locals(self.code, index if live_at is None else live_at)
        names = tuple(sorted(name for name in values if name in live))
        kinds = "".join("n" if text == NULL_TEXT else "h" if isinstance(text, HandledText) else "v" for text in stack)
        code = resume_code(self.code, index, kinds, names, bool(error), is_plain)
        if is_plain:
            skip_code(code)
        args = [text for text in stack if text != NULL_TEXT] + [values[name] for name in names] + ([error] if error else [])
        tail = self.writer.name_of(tail_call, "tail_call")
        return f"{tail}({', '.join([self._function(code, cells), *args])})"

    def _function(self, code: types.CodeType, cells: list[str]) -> str:
        writer, name = self.writer, self.code.co_name
        if not code.co_freevars:
            return writer.name_of(_function_of(code, self.frame.f_globals), f"resume_{name}")
        free = [f"__closure[{index}]" for index in range(len(self.code.co_freevars))]
        kind = writer.name_of(types.FunctionType, "Function")
        closure = "".join(f"{cell}, " for cell in [*free, *cells])
        return f"{kind}({writer.name_of(code, f'code_{name}')}, __globals, {name!r}, None, ({closure}))"

    def _check_overlap(self) -> None:
        """Inputs that are written to must not share memory with others: a backend may reorder what it runs."""
        graph = self.session.graph
        if not graph.writes_inputs() or len(graph.inputs) < 2:
            return
        if not _storages_differ(*(tensor for _, _, tensor in graph.inputs)):
            raise GraphBreak("an input that shares memory with another one is written to")
        check = self.session.guards.name(_storages_differ, "storages_differ")
        listed = ", ".join(str(source) for _, source, _ in graph.inputs)
        self.session.guards.add(f"{check}({listed})", None, "inputs do not share memory")

    def _build(self, reason: GraphBreak | None) -> GuardedCode:
        graph, first, module = self.session.graph, [], None
        graph_state = state.grad_enabled
        if graph.calls:
            outputs = self.writer.outputs
            module = graph.finish(outputs, self.name)
            state.grad_enabled = self.grad_before
            compiled = self.backend(module, [tensor for _, _, tensor in graph.inputs])
            self.writer.names["__graph"] = _outside_of_capture(compiled)
            self._check_overlap()
            inputs = ", ".join(source.expression() for _, source, _ in graph.inputs)
            first = [f"{'__results = ' if outputs else ''}__graph({inputs})"]
            state.grad_enabled = graph_state
        self.session.guards.different_objects(self.session.distinct)
        self.session.guards.different_objects(self.session.cells)
        text = self.writer.text(self.code.co_name if self.code.co_name.isidentifier() else "frame", first)
        last = self.translator.position - (reason is None)
        line = self.translator.instructions[max(last, 0)].line or self.code.co_firstlineno
        code = compile_function(text, self.code, line)
        names = {"__builtins__": self.frame.f_builtins, "__name__": self.frame.f_globals.get("__name__")}
        names |= {**self.session.held, **self.session.guards.names, **self.writer.names}
        return GuardedCode(code, names, self.session.guards.build(), self.session.guards, text, module, reason)


def _storages_differ(*tensors: Tensor) -> bool:
    """Whether no two tensors share memory."""
    return len({id(tensor._impl.storage) for tensor in tensors}) == len(tensors)


def _outside_of_capture(compiled: Callable) -> Callable:
    """`compiled`, whose own frames are no program of the user's."""

    def call_graph(*inputs: Any) -> Any:
        return compiled(*inputs)

    skip_code(call_graph.__code__, True)
    return call_graph


_functions: dict[tuple[types.CodeType, int], types.FunctionType] = {}


def _function_of(code: types.CodeType, module_globals: dict) -> types.FunctionType:
    key = (code, id(module_globals))
    if key not in _functions:
        _functions[key] = types.FunctionType(code, module_globals)
    return _functions[key]


