"""Compile a captured graph that needs gradients, for scripted code.


In: a graph of aten operators that was captured without gradients, with parameters that require them. Out: a callable whose
results have a `grad_fn`; forward and backward are native, as in `compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.aot.errors import Untraceable
from rushlight.compiler.backends import native
from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import for_fusion
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.settings import Settings
from rushlight.compiler.training import TrainingGraph
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule


def compile_training(module: GraphModule, inputs: Sequence[Tensor], settings: Settings, log: StageLog) -> Callable[..., tuple]:
    """Return a function that runs a graph and records its backward. Unsupported if the graph can't be differentiated
    natively."""
    graph = TrainingGraph(
        lambda: module, lambda part, _: native(part, settings, log), dict, log, lambda: for_fusion(settings.fallback_random)
    )
    try:
        graph.compile(list(inputs))
    except Untraceable as error:
        raise Unsupported(str(error)) from error
    return lambda *tensors: graph.run(*tensors)
