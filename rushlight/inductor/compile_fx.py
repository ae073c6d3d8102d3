"""The driver of inductor: a GraphModule of aten operators to a callable over flat tensors.

Nodes without native rules stay eager: the graph is cut around them, and each piece between is lowered, built and called on
its own. `observe(stage, text)` is called with the stages "loops", "fusion", "memory", "code", "library" and "module".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.passes.split import split_by_support
from rushlight.inductor.autotune import tune
from rushlight.inductor.build import build
from rushlight.inductor.codegen.module import module_text
from rushlight.inductor.codegen.program import ProgramWriter
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.seeds import seeded, with_seed_input
from rushlight.inductor.size_checks import make_binder
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.support import is_supported
from rushlight.inductor.symbolic_graph import SymbolicGraph
from rushlight.inductor.write_backs import is_write_back, noting_writes

Observer = Callable[[str, Callable[[], str]], None]


@dataclass(frozen=True)
class Options:
    """What compilation depends on besides the graph: the number of threads, whether to build for a debugger, and whether to
    time several ways to run a template."""

    threads: int
    debug: bool = False
    autotune: bool = False


def compile_fx(module: GraphModule, options: Options, observe: Observer) -> Callable[..., tuple]:
    """The callable that runs `module` natively: flat tensors, and integers where sizes are inputs, in; a tuple out.

    Symbolic sizes of the inputs' fakes stay open: the code takes their values at each call. CompilerMissing and BuildError
    when no native code can be made; UnsupportedSize where symbolic sizes are in the way, so that fixed ones may help.
    """
    with_seed = with_seed_input(module)
    if with_seed is not None:
        return seeded(compile_fx(with_seed, options, observe))
    unsupported = [node for node in module.graph.nodes if node.op == "call_function" and not is_supported(node)]
    if all(map(is_write_back, unsupported)):
        return _compile_piece(module, options, observe)
    observe("graph_breaks", lambda: "run as eager kernels:\n" + "\n".join(f"  {n.format_node()}" for n in unsupported))
    pieces = split_by_support(module, is_supported)
    for node in pieces.graph.nodes:
        if node.op == "call_module":
            _compile_call(pieces, node, options, observe)
    pieces.recompile()
    symbols = SizeSymbols([node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"])
    return _checked(Pieces(pieces), symbols) if symbols else Pieces(pieces)


class Pieces:
    """A cut graph: compiled pieces and eager kernels, in order."""

    def __init__(self, module: GraphModule):
        self.module = module

    def __call__(self, *tensors: Tensor) -> tuple:
        return tuple(_PieceInterpreter(self.module).run(*tensors))


class _PieceInterpreter(Interpreter):
    """Calls the compiled form of each piece."""

    def call_module(self, target, args, kwargs):
        piece = self.module.compiled_pieces[target]
        results = piece.run(*[args[position] for position in piece.positions])
        return results if piece.is_tuple else results[0]


@dataclass
class _Piece:
    run: Callable[..., tuple]
    positions: list[int]
    is_tuple: bool


def _compile_call(pieces: GraphModule, node: Node, options: Options, observe: Observer) -> None:
    """Compile the submodule that `node` calls; arguments that are attributes become its constants."""
    part = pieces.get_submodule(node.target)
    placeholders = [inner for inner in part.graph.nodes if inner.op == "placeholder"]
    positions = []
    for position, (inner, outer) in enumerate(zip(placeholders, node.args, strict=True)):
        inner.meta.setdefault("val", outer.meta.get("val"))
        if outer.op == "get_attr":
            _make_constant(part, inner, getattr(pieces, outer.target), outer.target)
        else:
            positions.append(position)
    output = part.graph.output_node()
    is_tuple = isinstance(output.args[0], tuple | list)
    if not is_tuple:
        output.args = ((output.args[0],),)
    part.recompile()
    if not hasattr(pieces, "compiled_pieces"):
        object.__setattr__(pieces, "compiled_pieces", {})
    pieces.compiled_pieces[node.target] = _Piece(_compile_piece(part, options, observe), positions, is_tuple)


def _make_constant(part: GraphModule, placeholder: Node, tensor: Tensor, name: str) -> None:
    setattr(part, name, tensor)
    with part.graph.inserting_before(placeholder):
        attribute = part.graph.create_node("get_attr", name, name=name)
    attribute.meta = dict(placeholder.meta)
    placeholder.replace_all_uses_with(attribute)
    part.graph.erase_node(placeholder)


def _compile_piece(module: GraphModule, options: Options, observe: Observer) -> Callable[..., tuple]:
    def reference(*tensors: Tensor) -> tuple:
        return Interpreter(module).run(*tensors)

    lowered = GraphLowering(module).run()
    if options.autotune:
        tune(lowered, options.threads, observe)
    observe("loops", lambda: str(lowered))
    program = ProgramWriter(lowered, options.threads).write()
    observe("fusion", lambda: "\n\n".join(map(str, program.groups)))
    observe("memory", lambda: str(program.arena))
    if not program.groups:  # only views: nothing to calculate
        return _checked(reference, lowered.symbols) if lowered.symbols else reference
    observe("code", lambda: program.source)
    library = build(program.source, options.debug)
    observe("library", lambda: f"{'loaded' if library.from_cache else 'built'} {library.path}")
    observe("module", lambda: module_text(lowered, program))
    constants = {buffer.target: getattr(module, buffer.target) for buffer in program.constants}
    kind = SymbolicGraph if lowered.symbols else CompiledGraph
    run = kind(lowered, program, library, constants, reference).callable()
    return noting_writes(run, reference, _written_places(module)) if lowered.writes else run


def _written_places(module: GraphModule) -> list[int]:
    """Which inputs a graph writes to."""
    places = {node: place for place, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder")}
    return [places[node.args[0]] for node in module.graph.nodes if is_write_back(node)]


def _checked(reference: Callable[..., tuple], symbols: SizeSymbols) -> Callable[..., tuple]:
    """`reference` for inputs of the sizes that the graph was captured for."""
    bind = make_binder(symbols)

    def run(*inputs: Tensor | int) -> tuple:
        bind(inputs)
        return reference(*inputs)

    return run
