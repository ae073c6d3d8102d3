"""The driver of inductor: compiles a GraphModule of aten operators to a callable over flat tensors.

A graph with a kept plan runs from that plan; the compiler's modules are imported only for other graphs. `observe(stage, text)`
is called with the stages "loops", "fusion", "memory", "code", "library" and "module".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor import plan_cache
from rushlight.inductor.build import Library
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.devices import gpu_of
from rushlight.inductor.late_inputs import as_last_inputs, given_constants, seed_nodes, seeded, written_constants
from rushlight.inductor.options import Options
from rushlight.inductor.plan import Plan

if TYPE_CHECKING:
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph

Details = Callable[[], "tuple[LoweredGraph, Program]"]


class Observer(Protocol):
    """Receives the stages of a compilation."""

    def __call__(
        self, stage: str, text: Callable[[], str], subject: Callable[[], object] | None = None, title: str = ""
    ) -> None:  # fmt: skip
        """Log a stage: `text` makes its text, `subject` the object behind it, `title` names the part of the program."""



interpreter, pieces, triton_pieces, device_pieces = map(LazyModule, (
    "rushlight.fx.interpreter", "rushlight.inductor.pieces", "rushlight.inductor.triton.pieces",
    "rushlight.inductor.triton.device_pieces",
))  # fmt: skip


def compile_fx(module: GraphModule, options: Options, observe: Observer) -> Callable[..., tuple]:
    """Compile `module` to a native callable: flat tensors, and ints where sizes are inputs, in; a tuple out.

    Symbolic sizes of the fake inputs stay open: the code reads them at each call. CompilerMissing and BuildError if no native
    code can be made; UnsupportedSize if symbolic sizes are the obstacle, so that the caller may retry with fixed ones.
    """
    gpu = gpu_of(module)
    if gpu is not None:
        return device_pieces.compile_for_gpu(module, gpu, options, observe)
    if options.target != "cpp":
        return triton_pieces.compile_for(module, options.target, options.precision, observe)
    if seeds := seed_nodes(module):
        return seeded(compile_fx(as_last_inputs(module, seeds), options, observe))
    if written := written_constants(module):
        run = compile_fx(as_last_inputs(module, written), options, observe)
        return given_constants(run, [getattr(module, node.target) for node in written])
    key = plan_cache.key_of(module, options)
    found = None if key is None else plan_cache.load(key)
    if found is None:
        return pieces.compile_anew(module, options, observe, key)
    plan, library = found
    module.meta["plan_key"] = key
    details = functools.cache(lambda: pieces.lower(module, options, observe))
    show(observe, details, part_of(module), library)
    return runner(CompiledGraph, module, plan, library, details)


STAGES = ("loops", "fusion", "memory", "code", "module")


def show(
    observe: Observer, details: Details, part: str, library: Library | None = None, stages: tuple[str, ...] = STAGES
) -> None:  # fmt: skip
    """Show an observer the stages of a part of a program: first the lowered graph ("loops"), then the stages of the program's
    text. Stages that were skipped because of a kept plan are computed on demand."""
    for stage in stages:

        def subject(stage: str = stage) -> LoweredGraph | Program:
            lowered, program = details()
            return lowered if stage == "loops" else program

        observe(stage, lambda stage=stage: pieces.text_of(stage, *details()), subject, part)
        if stage == "code" and library is not None:
            show_library(observe, library, part)


def show_library(observe: Observer, library: Library, part: str) -> None:
    """Show an observer the library of a part."""
    observe("library", lambda: f"{'loaded' if library.from_cache else 'built'} {library.path}", lambda: library, part)


def part_of(module: GraphModule) -> str:
    """Return which part of a program a graph is: "forward" or "backward" in training, else an empty string."""
    return module.meta.get("part", "")


def runner(
    kind: type[CompiledGraph], module: GraphModule, plan: Plan, library: Library, details: Details
) -> Callable[..., tuple]:
    """Return a callable that runs a library by its plan."""
    constants = {given.target: getattr(module, given.target) for given in plan.constants}
    return kind(plan, library, constants, interpreter_of(module), details).callable()


def interpreter_of(module: GraphModule) -> Callable[..., tuple]:
    """Return a function that runs the graph node by node in eager."""

    def reference(*tensors: Tensor) -> tuple:
        return interpreter.Interpreter(module).run(*tensors)

    return reference
