"""`torch._dynamo.backends.common`: backends made of compilers for graphs of aten operators."""

from collections.abc import Callable
from typing import Any

from rushlight._functorch.aot_autograd import aot_module_simplified
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule

__all__ = ["aot_autograd"]


def aot_autograd(*, fw_compiler: Callable, **options: Any) -> Callable:
    """Return a backend that hands `fw_compiler(graph, example_inputs)` the graph as aten operators, and the backward one, too.

    `options` are those of `aot_module_simplified`: `bw_compiler`, `inference_compiler`, `partition_fn`, `decompositions`.
    """

    def compile_with_aot(module: GraphModule, inputs: list[Tensor]) -> Callable:
        return aot_module_simplified(module, inputs, fw_compiler, **options)

    return compile_with_aot
