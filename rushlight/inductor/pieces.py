"""Compile a graph without a kept plan: split it around eager nodes, lower, write and build the pieces.

In: a GraphModule of aten operators. Out: a callable over flat tensors. Nodes without native rules stay eager; each piece
between them is compiled separately. Stage: inductor, the whole way from a graph to its library.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.profiler import compile_stage
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.split import split_by_support
from rushlight.inductor import plan_cache
from rushlight.inductor.autotune import tune
from rushlight.inductor.build import build, flags_for, portable_key
from rushlight.inductor.codegen.cpp.module import module_text
from rushlight.inductor.codegen.cpp.program import Program, ProgramWriter
from rushlight.inductor.compile_fx import Observer, interpreter_of, part_of, runner, show, show_library
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.glue import Glue, Piece
from rushlight.inductor.graph import GraphLowering, LoweredGraph
from rushlight.inductor.launch import KnownSizes, NoNativeForm, make_launch
from rushlight.inductor.open_launch import OpenSizes
from rushlight.inductor.options import Options
from rushlight.inductor.planning import plan_of
from rushlight.inductor.size_checks import make_binder
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.spelled_attention import fuse_attention
from rushlight.inductor.splitting import constant_arguments
from rushlight.inductor.support import is_better_in_eager, is_supported
from rushlight.inductor.symbolic_graph import SymbolicGraph
from rushlight.inductor.write_backs import is_write_back


def compile_anew(module: GraphModule, options: Options, observe: Observer, key: str | None) -> Callable[..., tuple]:
    """Compile `module`; if it is a single piece, keep its plan under `key`."""
    unsupported = [node for node in module.graph.nodes if node.op == "call_function" and not _is_compiled(node)]
    if all(map(is_write_back, unsupported)):
        return _compile_piece(module, options, observe, key)
    observe("graph_breaks", lambda: "run as eager kernels:\n" + "\n".join(f"  {n.format_node()}" for n in unsupported))
    cut = split_by_support(module, _is_compiled)
    calls = [node for node in cut.graph.nodes if node.op == "call_module"]
    glue = Glue(cut, {node.target: _compile_call(cut, node, options, observe) for node in calls})
    symbols = SizeSymbols([node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"])
    return _wrap_with_size_check(glue, symbols) if symbols else glue


def _is_compiled(node: Node) -> bool:
    """Return whether a node becomes native code: it is supported, and no eager kernel is better."""
    return is_supported(node) and not is_better_in_eager(node)


def _compile_call(pieces: GraphModule, node: Node, options: Options, observe: Observer) -> Piece:
    """Compile the submodule that `node` calls. Arguments that are attributes become its constants."""
    part = pieces.get_submodule(node.target)
    positions, is_tuple = constant_arguments(pieces, part, node)
    return Piece(_compile_piece(part, options, observe, None), positions, is_tuple)


def lower(module: GraphModule, options: Options, observe: Observer) -> tuple[LoweredGraph, Program]:
    """Lower a graph and write its program."""
    lowered = lower_graph(module, options, observe)
    return lowered, write_program(lowered, options)


@compile_stage("GraphLowering.codegen")
def write_program(lowered: LoweredGraph, options: Options) -> Program:
    """Fuse a lowered graph's loops into groups, plan its memory and write its C++."""
    return ProgramWriter(lowered, options.threads).write()


@compile_stage("GraphLowering.run")
def lower_graph(module: GraphModule, options: Options, observe: Observer) -> LoweredGraph:
    """Lower a graph to the loops IR, fuse attention, and autotune if asked to."""
    lowered = fuse_attention(GraphLowering(module).run())
    if options.autotune:
        tune(lowered, options.threads, observe)
    return lowered


def text_of(stage: str, lowered: LoweredGraph, program: Program | None) -> str:
    """Return the text of a stage: "loops", which needs no program, "fusion", "memory", "code" or "module"."""
    if stage == "loops":
        return str(lowered)
    if stage == "fusion":
        return "\n\n".join(map(str, program.groups))
    if stage == "memory":
        return str(program.arena)
    return program.source if stage == "code" else module_text(lowered, program)


@compile_stage("compile_fx_inner")
def _compile_piece(module: GraphModule, options: Options, observe: Observer, key: str | None) -> Callable[..., tuple]:
    part, lowered = part_of(module), lower_graph(module, options, observe)
    observe("loops", lambda: text_of("loops", lowered, None), lambda: lowered, part)
    program = write_program(lowered, options)

    def details() -> tuple[LoweredGraph, Program]:
        return lowered, program

    if not program.groups:  # the graph only makes views, so there is nothing to build
        show(observe, details, part, stages=("fusion", "memory"))
        return _run_views_only(module, lowered, program)
    show(observe, details, part, stages=("fusion", "memory", "code"))
    library = _build(program.timed_source() if options.timed else program.source, options.debug)
    show_library(observe, library, part)
    show(observe, details, part, stages=("module",))
    plan = plan_of(lowered, program)
    if key is not None:
        module.meta["plan_key"] = key
        plan_cache.keep(key, plan, portable_key(program.source, flags_for()))
    return runner(SymbolicGraph if lowered.symbols else CompiledGraph, module, plan, library, details)


_build = compile_stage("compile_file")(build)


def _run_views_only(module: GraphModule, lowered: LoweredGraph, program: Program) -> Callable[..., tuple]:
    """Return a callable for a graph that only makes views."""
    plan, reference = plan_of(lowered, program), interpreter_of(module)
    general = _wrap_with_size_check(reference, lowered.symbols) if lowered.symbols else reference
    if lowered.writes:
        return general
    constants = {given.name: getattr(module, given.target) for given in plan.constants}
    try:
        sizes = OpenSizes(lowered.symbols, program, plan) if lowered.symbols else KnownSizes(plan)
    except NoNativeForm:
        return general
    return make_launch(plan, sizes, None, constants, general, reference) or general


def _wrap_with_size_check(reference: Callable[..., tuple], symbols: SizeSymbols) -> Callable[..., tuple]:
    """Wrap `reference` to check the inputs' sizes."""
    bind = make_binder(symbols)

    def run(*inputs: Tensor | int) -> tuple:
        bind(inputs)
        return reference(*inputs)

    return run
