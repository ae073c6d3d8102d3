"""Compile a graph to Triton programs: split it around nodes that stay eager, lower and write the pieces.

In: a GraphModule of aten operators. Out: a callable over flat tensors. Nodes without a lowering, or whose lowering has no
Triton form, run as eager kernels between the programs; each is listed with the reason. Stage: inductor, from a graph to its
programs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.passes.split import split_by_support
from rushlight.inductor.codegen.triton.kernels import Limits
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.codegen.triton.program_writer import TritonProgramWriter
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.codegen.triton.types import NoTritonForm
from rushlight.inductor.glue import Glue, Piece
from rushlight.inductor.graph import GraphLowering, LoweredGraph
from rushlight.inductor.late_inputs import as_last_inputs, given_constants, seed_nodes, seeded, written_constants
from rushlight.inductor.lowering.target import GPU
from rushlight.inductor.size_checks import make_binder
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.spelled_attention import fuse_attention
from rushlight.inductor.splitting import constant_arguments
from rushlight.inductor.support import is_supported
from rushlight.inductor.triton.graph import TritonGraph
from rushlight.inductor.triton.launcher import Launcher
from rushlight.inductor.triton.module import module_text
from rushlight.inductor.write_backs import is_write_back
from rushlight.inductor.written_inputs import noting_writes

interpreter, sanitizer = (LazyModule(f"rushlight.inductor.triton.{name}") for name in ("interpreter", "sanitizer"))

Observe = Callable[..., None]
MakeLauncher = Callable[[TritonProgram, str], Launcher]
Tune = Callable[[LoweredGraph, TritonProgram, Launcher], None]


@dataclass
class TritonPieces:
    """The programs of one graph, and its nodes that run as eager kernels: name -> reason."""

    programs: list[tuple[LoweredGraph, TritonProgram]] = field(default_factory=list)
    eager: dict[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The text of all programs, with comments that list the nodes that run as eager kernels."""
        head = "".join(f"# {name} runs as an eager kernel: {reason}\n" for name, reason in self.eager.items())
        return head + "\n\n".join(program.source for _, program in self.programs)


class TritonCompiler:
    """Compiles graphs for one launcher; None only writes their programs. Without `counts_writes`, the caller counts writes to
    inputs in their versions. `limits` are those of the launcher's device. `tune` sets the choices of a program's launches."""

    def __init__(
        self, make_launcher: MakeLauncher | None, precision: Precision, counts_writes: bool = True,
        limits: Limits | None = None, tune: Tune | None = None,
    ):  # fmt: skip
        self.limits = limits
        self.tune = tune
        self.counts_writes = counts_writes
        self.make_launcher = make_launcher
        self.precision = precision

    def compile(self, module: GraphModule) -> tuple[Callable[..., tuple] | None, TritonPieces]:
        """Return a callable for a graph, None without a launcher, and the pieces."""
        made = TritonPieces()
        return self._compile(module, made), made

    def _compile(self, module: GraphModule, made: TritonPieces) -> Callable[..., tuple] | None:
        if seeds := seed_nodes(module):
            run = self._compile(as_last_inputs(module, seeds), made)
            return None if run is None else seeded(run)
        if written := written_constants(module):
            run = self._compile(as_last_inputs(module, written), made)
            return None if run is None else given_constants(run, [getattr(module, node.target) for node in written])
        made.eager |= {
            node.name: f"{node.target} has no lowering for these arguments"
            for node in module.graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
            and not is_supported(node) and not is_write_back(node)
        }
        while True:
            try:
                return self._compile_split(module, made)
            except NoTritonForm as refused:
                if refused.origin in made.eager:
                    raise
                made.eager[refused.origin] = refused.reason
                made.programs.clear()

    def _compile_split(self, module: GraphModule, made: TritonPieces) -> Callable[..., tuple] | None:
        calls = [node for node in module.graph.nodes if node.op == "call_function"]
        apart = [node for node in calls if node.name in made.eager]
        if not apart:
            return self._compile_piece(module, made)
        cut = split_by_support(module, lambda node: node.name not in made.eager and not is_write_back(node))
        pieces = {node.target: self._compile_call(cut, node, made) for node in cut.graph.nodes if node.op == "call_module"}
        if self.make_launcher is None:
            return None
        symbols = SizeSymbols([node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"])
        return _with_size_check(Glue(cut, pieces), symbols) if symbols else Glue(cut, pieces)

    def _compile_call(self, cut: GraphModule, node: Node, made: TritonPieces) -> Piece:
        part = cut.get_submodule(node.target)
        positions, is_tuple = constant_arguments(cut, part, node)
        return Piece(self._compile_piece(part, made), positions, is_tuple)

    def _compile_piece(self, module: GraphModule, made: TritonPieces) -> Callable[..., tuple] | None:
        lowered = fuse_attention(GraphLowering(module, GPU).run())
        program = TritonProgramWriter(lowered, self.precision, self.limits).write()
        made.programs.append((lowered, program))
        if self.make_launcher is None:
            return None
        launcher = self.make_launcher(program, f"<Triton program {len(made.programs)} of {id(module)}>")
        if self.tune is not None:
            self.tune(lowered, program, launcher)
        constants = {buffer.target: getattr(module, buffer.target) for buffer in program.constants}
        reference = reference_of(module)
        run = TritonGraph(lowered, program, launcher, constants, reference)
        names = [buffer.name for buffer in lowered.inputs]
        written = [names.index(write.target) for write in lowered.writes]
        return noting_writes(run, reference, written) if written and self.counts_writes else run


def _with_size_check(run: Callable[..., tuple], symbols: SizeSymbols) -> Callable[..., tuple]:
    """Wrap `run` to check the inputs' sizes."""
    bind = make_binder(symbols)

    def checked(*inputs: Tensor | int) -> tuple:
        bind(inputs)
        return run(*inputs)

    return checked


def compile_for(module: GraphModule, target: str, precision: str, observe: Observe) -> Callable[..., tuple]:
    """Compile a graph for the targets "triton-interpreter" and "triton-sanitizer", or write its programs and interpret the
    graph ("triton-text").

    `observe` is called with the stages "graph_breaks", "loops", "fusion", "memory" and "code". TritonMissing without Triton.
    """
    launcher, tune = None, None
    if target == "triton-interpreter":
        launcher = interpreter.InterpreterLauncher
    elif target == "triton-sanitizer":
        launcher, tune = sanitizer.SanitizingLauncher, sanitizer.make_tiles_small
    run, made = TritonCompiler(launcher, Precision(precision), tune=tune).compile(module)
    show(made, module, observe)
    return run or reference_of(module)


def show(made: TritonPieces, module: GraphModule, observe: Observe) -> None:
    """Show an observer the stages of a graph's programs."""
    if made.eager:
        observe("graph_breaks", lambda: "run as eager kernels:\n" + "\n".join(f"  {n}: {why}" for n, why in made.eager.items()))
    part = module.meta.get("part", "")
    for lowered, program in made.programs:
        observe("loops", lambda lowered=lowered: str(lowered), lambda lowered=lowered: lowered, part)
        observe("fusion", lambda program=program: "\n\n".join(map(str, program.groups)), lambda program=program: program, part)
        observe("memory", lambda program=program: str(program.arena), lambda program=program: program, part)
    observe("code", lambda: made.source, lambda: made, part)
    for lowered, program in made.programs:
        observe("module", partial(module_text, lowered, program), lambda program=program: program, part)


def reference_of(module: GraphModule) -> Callable[..., tuple]:
    """Return a function that runs a graph node by node in eager."""

    def reference(*tensors: Tensor | int) -> tuple:
        return Interpreter(module).run(*tensors)

    return reference
