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
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak, Raised
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.guards import Guards
from rushlight.dynamo.instructions import Instruction, live_locals, parameter_names
from rushlight.dynamo.native import END, NULL_TEXT, Native, native
from rushlight.dynamo.program import ProgramWriter, compile_function
from rushlight.dynamo.resume import resume_code
from rushlight.dynamo.session import Session
from rushlight.dynamo.sources import FreeVariable, Local
from rushlight.dynamo.translator import Returned, Translator, restored_grad_mode
from rushlight.dynamo.values.base import NULL, Value
from rushlight.dynamo.values.contexts import set_grad_enabled
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
    """Where following a frame stopped: after how many steps, and why."""

    step: int
    reason: GraphBreak


class Unsupported(RuntimeError):
    """With `fullgraph`, the error for a program that cannot be captured as one graph."""


def capture_frame(frame: Any, backend: Backend, fullgraph: bool = False, name: str = "graph") -> GuardedCode | None:
    """Capture a frame; None where there is nothing to gain or no way to go on."""
    stop: Break | None = None
    while True:
        with restored_grad_mode():
            capture = _Capture(frame, backend, stop, name)
            try:
                return capture.run()
            except GraphBreak as reason:
                if fullgraph:
                    raise Unsupported(_explanation(capture.translator, reason)) from None
                if stop is not None or not capture.translator.steps:
                    return None
                stop = Break(capture.translator.steps - 1, reason)
            except Raised:
                return None


def _explanation(translator: Translator, reason: GraphBreak) -> str:
    lines = [f"  {line.filename}:{line.lineno} in {line.name}" for line in translator.user_stack()]
    hint = f"\nHint: {reason.hint}" if reason.hint else ""
    return f"{reason.reason}\nfrom user code:\n" + "\n".join(lines) + hint


class _Capture:
    def __init__(self, frame: Any, backend: Backend, stop: Break | None, name: str) -> None:
        self.frame = frame
        self.backend = backend
        self.stop = stop
        self.name = name
        self.code = frame.f_code
        self.session = Session(parameter_names(self.code), frame.f_globals)
        self.translator = Translator(self.session, self.code, frame.f_globals)
        self.writer = ProgramWriter(self.session.guards.parameters, frame.f_globals)
        self.grad_before = state.grad_enabled

    def run(self) -> GuardedCode | None:
        """Follow the frame to its end or to where it was told to stop."""
        translator = self.translator
        self.session.guards.ambient()
        arguments = {name: translator.wrap(value, Local(name)) for name, value in self.frame.f_locals.items()}
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
        self.writer.statement(f"return {result}")
        return self._build(None)

    def _finish_with_break(self) -> GuardedCode | None:
        translator = self.translator
        index = translator.position
        instruction = translator.instructions[index]
        stack = [NULL_TEXT if value is NULL else self.writer.expression(value) for value in translator.stack]
        ran = native(instruction, index, stack, translator.keyword_names)
        if ran is None:
            return None
        values = {name: self.writer.expression(value) for name, value in translator.locals.items()}
        cells = [self.writer.expression(translator.cells[name]) for name in self.code.co_cellvars if name in translator.cells]
        if len(cells) != len(self.code.co_cellvars):
            return None
        self._effects()
        if state.grad_enabled != self.grad_before:
            self.writer.statement(f"{self.writer.name_of(set_grad_enabled, 'set_grad_enabled')}({state.grad_enabled})")
        self._write_native(ran, instruction, index, stack, values, cells)
        return self._build(self.stop.reason)

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
            call = self._resume(index, stack[: handler.depth], values, cells, "__error", handler.target)
            writer.statement(f"    return {call}")
        for condition, target, after in ran.ways:
            call = self._resume(target, after, values, cells)
            if condition is None:
                writer.statement(f"return {call}")
            else:
                writer.statement(f"if {condition}:")
                writer.statement(f"    return {call}")

    def _resume(self, index: int, stack: list[str], values: dict[str, str], cells: list[str], error: str = "",
                live_at: int | None = None) -> str:  # fmt: skip
        """The call of the function that goes on at an instruction."""
        live = live_locals(self.code, index if live_at is None else live_at)
        names = tuple(sorted(name for name in values if name in live))
        kinds = "".join("n" if text == NULL_TEXT else "v" for text in stack)
        code = resume_code(self.code, index, kinds, names, bool(error))
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

    def _build(self, reason: GraphBreak | None) -> GuardedCode:
        graph, first, module = self.session.graph, [], None
        graph_state = state.grad_enabled
        if graph.calls:
            outputs = self.writer.outputs
            module = graph.finish(outputs, self.name)
            state.grad_enabled = self.grad_before
            compiled = self.backend(module, [tensor for _, _, tensor in graph.inputs])
            self.writer.names["__graph"] = _outside_of_capture(compiled)
            inputs = ", ".join(source.expression() for _, source, _ in graph.inputs)
            first = [f"{'__results = ' if outputs else ''}__graph({inputs})"]
            state.grad_enabled = graph_state
        self.session.guards.different_objects([source for _, source, _ in graph.inputs])
        text = self.writer.text(self.code.co_name if self.code.co_name.isidentifier() else "frame", first)
        line = self.translator.instructions[max(self.translator.position - 1, 0)].line or self.code.co_firstlineno
        code = compile_function(text, self.code, line)
        names = {"__builtins__": self.frame.f_builtins, **self.session.held, **self.session.guards.names, **self.writer.names}
        return GuardedCode(code, names, self.session.guards.build(), self.session.guards, text, module, reason)


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


