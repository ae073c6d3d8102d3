"""The driver of inductor: a GraphModule of aten operators to a callable over flat tensors.

A graph whose plan was kept runs from it; what else is needed is imported only for the others. `observe(stage, text)` is called
with the stages "loops", "fusion", "memory", "code", "library" and "module".
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
from rushlight.inductor.late_inputs import as_last_inputs, given_constants, seed_nodes, seeded, written_constants
from rushlight.inductor.options import Options
from rushlight.inductor.plan import Plan

if TYPE_CHECKING:
    from rushlight.inductor.codegen.program import Program
    from rushlight.inductor.graph import LoweredGraph

Details = Callable[[], "tuple[LoweredGraph, Program]"]


class Observer(Protocol):
    """Who is shown the stages."""

    def __call__(
        self, stage: str, text: Callable[[], str], subject: Callable[[], object] | None = None, title: str = ""
    ) -> None:  # fmt: skip
        """A stage made what `text` gives; `subject` gives the object behind it, `title` says of which part."""



interpreter, pieces = map(LazyModule, ("rushlight.fx.interpreter", "rushlight.inductor.pieces"))


def compile_fx(module: GraphModule, options: Options, observe: Observer) -> Callable[..., tuple]:
    """The callable that runs `module` natively: flat tensors, and integers where sizes are inputs, in; a tuple out.

    Symbolic sizes of the inputs' fakes stay open: the code takes their values at each call. CompilerMissing and BuildError
    when no native code can be made; UnsupportedSize where symbolic sizes are in the way, so that fixed ones may help.
    """
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
    """Let an observer see the stages of a part of a program, which are made again if a kept plan spared them: the lowered graph
    ("loops"), then what is in its program."""
    for stage in stages:
        subject = lambda stage=stage: details()[stage != "loops"]  # noqa: E731
        observe(stage, lambda stage=stage: pieces.text_of(stage, *details()), subject, part)
        if stage == "code" and library is not None:
            show_library(observe, library, part)


def show_library(observe: Observer, library: Library, part: str) -> None:
    """Let an observer see a library, the program of a part."""
    observe("library", lambda: f"{'loaded' if library.from_cache else 'built'} {library.path}", lambda: library, part)


def part_of(module: GraphModule) -> str:
    """Which part of a program a graph is, in training "forward" or "backward"; empty for a whole one."""
    return module.meta.get("part", "")


def runner(
    kind: type[CompiledGraph], module: GraphModule, plan: Plan, library: Library, details: Details
) -> Callable[..., tuple]:
    """What runs a library by its plan."""
    constants = {given.target: getattr(module, given.target) for given in plan.constants}
    return kind(plan, library, constants, interpreter_of(module), details).callable()


def interpreter_of(module: GraphModule) -> Callable[..., tuple]:
    """The graph run node by node, in eager."""

    def reference(*tensors: Tensor) -> tuple:
        return interpreter.Interpreter(module).run(*tensors)

    return reference
