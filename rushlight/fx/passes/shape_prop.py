"""ShapeProp: run a graph on inputs and record each value's shape, dtype and strides in `meta["tensor_meta"]`."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.core.dtype import dtype
from rushlight.core.layout import channels_last, channels_last_3d, contiguous_format, memory_format
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import map_aggregate
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node

__all__ = ["ShapeProp", "TensorMetadata"]
_FORMATS = (contiguous_format, channels_last, channels_last_3d)


class TensorMetadata(NamedTuple):
    """The metadata of a tensor: all that is known of it without its data."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return the metadata of a tensor; the memory format is None if it has none, or is not asked for."""
    format_ = next((each for each in _FORMATS if include_contiguity and _has_format(result, each)), None)
    parameters = {}
    if result.is_quantized:
        parameters = {"qscheme": result.qscheme(), **_quantization(result)}
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), format_, result.is_quantized, parameters
    )


def _has_format(tensor: Tensor, wanted: memory_format) -> bool:
    dims = {channels_last: 4, channels_last_3d: 5}.get(wanted, tensor.dim())
    return tensor.dim() == dims and tensor.is_contiguous(memory_format=wanted)


def _quantization(tensor: Tensor) -> dict[str, Any]:
    if "per_tensor" in str(tensor.qscheme()):
        return {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    return {
        "scale": tensor.q_per_channel_scales().tolist(), "zero_point": tensor.q_per_channel_zero_points().tolist(),
        "axis": tensor.q_per_channel_axis(),
    }  # fmt: skip


class ShapeProp(Interpreter):
    """`ShapeProp(gm).propagate(*inputs)` runs `gm` and sets the nodes' `meta["tensor_meta"]` and `meta["type"]`.

    With `fake_mode`, a FakeTensorMode, only shapes are computed.
    """

    def __init__(self, gm: GraphModule, fake_mode: FakeTensorMode | None = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Run one node and record its value's metadata."""
        result = super().run_node(n)
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        noted = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these inputs and return its result."""
        if self.fake_mode is None:
            return super().run(*args)
        faked = [self.fake_mode.from_tensor(value) if isinstance(value, Tensor) else value for value in args]
        with self.fake_mode:
            return super().run(*faked)
