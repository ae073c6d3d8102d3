"""Compile a graph with tensors on a GPU: its GPU part as Triton programs, its CPU part as C++.

In: a GraphModule of aten operators. Out: a callable over flat tensors. Copies between devices, and nodes without a lowering,
run as eager kernels between the pieces. Stage: inductor, from a graph to its programs. """

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rushlight.core.device import device
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.cuda.generators import seed_tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.split import split_by_support
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.devices import Places
from rushlight.inductor.glue import Glue, Piece
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes, written_constants
from rushlight.inductor.options import Options
from rushlight.inductor.splitting import constant_arguments
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.graph_calls import GraphedCalls
from rushlight.inductor.triton.pieces import Observe, TritonCompiler, TritonPieces, reference_of, show
from rushlight.inductor.triton.tuning import Tuner, limits_of
from rushlight.inductor.write_backs import is_write_back

native = LazyModule("rushlight.inductor.compile_fx")


def compile_for_gpu(module: GraphModule, gpu: device, options: Options, observe: Observe) -> Callable[..., tuple]:
    """Compile a graph with tensors on a GPU. `observe` is called with the stages of its programs."""
    seeds = seed_nodes(module)
    if seeds:
        run = compile_for_gpu(as_last_inputs(module, seeds), gpu, options, observe)
        return lambda *inputs: run(*inputs, seed_tensor(gpu.index))
    places = Places(module, gpu)
    if not places.has_cpu_nodes(module) and all(places.on_gpu(node) for node in _calls(module)):
        run, made = _programs(module, gpu, options, observe)
        return GraphedCalls(run, gpu.index, _constants(module)) if options.graphs and not made.eager else run
    return _compile_mixed(module, places, gpu, options, observe)


def _constants(module: GraphModule) -> list[Tensor]:
    """Return the attributes that a graph reads and does not write."""
    written = {node.target for node in written_constants(module)}
    names = dict.fromkeys(node.target for node in module.graph.nodes if node.op == "get_attr")
    return [getattr(module, name) for name in names if name not in written]


def _calls(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "call_function"]


def _programs(
    module: GraphModule, gpu: device, options: Options, observe: Observe
) -> tuple[Callable[..., tuple], TritonPieces]:  # fmt: skip
    """Compile a graph that is on the GPU as a whole."""
    launcher = partial(DeviceLauncher, index=gpu.index) if options.target != "triton-text" else None
    tune = Tuner(gpu.index, observe) if options.autotune and launcher is not None else None
    compiler = TritonCompiler(launcher, Precision(options.precision), limits=limits_of(gpu.index), tune=tune)
    run, made = compiler.compile(module)
    show(made, module, observe)
    return run or reference_of(module), made


def _compile_mixed(
    module: GraphModule, places: Places, gpu: device, options: Options, observe: Observe
) -> Callable[..., tuple]:  # fmt: skip
    """Split a graph by device, and compile the parts."""
    cut = split_by_support(module, lambda node: places.on_cpu(node) and not is_write_back(node))
    pieces: dict[str, Piece] = {}
    for node in _modules(cut):
        pieces[node.target] = _piece(cut, node, lambda part: native.compile_fx(part, options, observe))
    inner = Places(cut, gpu)
    whole = split_by_support(cut, lambda node: inner.on_gpu(node) and not is_write_back(node))
    for node in _modules(whole):
        if node.target not in pieces:
            pieces[node.target] = _piece(whole, node, lambda part: _programs(part, gpu, options, observe)[0])
    return Glue(whole, pieces)


def _modules(cut: GraphModule) -> list[Node]:
    return [node for node in cut.graph.nodes if node.op == "call_module"]


def _piece(cut: GraphModule, node: Node, build: Callable[[GraphModule], Callable[..., tuple]]) -> Piece:
    part = cut.get_submodule(node.target)
    positions, is_tuple = constant_arguments(cut, part, node)
    return Piece(build(part), positions, is_tuple)


