"""Define the operators of quantized tensors lazily, because few programs need them.

In: an operator's name. Out: whether it is one of them; `ensure_operators` defines all.
"""

from __future__ import annotations

from importlib import import_module

from rushlight.ops.packet import Namespace, OpOverloadPacket, namespaces

_ATEN = frozenset(
    "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel dequantize int_repr q_scale q_zero_point "
    "q_per_channel_scales q_per_channel_zero_points q_per_channel_axis qscheme _make_per_tensor_quantized_tensor "
    "_make_per_channel_quantized_tensor _empty_affine_quantized _empty_per_channel_affine_quantized quantized_batch_norm "
    "quantized_lstm quantized_gru quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d "
    "_choose_qparams_per_tensor".split()
)
NAMESPACES = ("quantized", "_quantized")


def ensure_operators() -> None:
    """Define the operators of quantized tensors if they are not defined yet."""
    import_module("rushlight.quantized.operators")


def is_quantized_operator(name: str) -> bool:
    """Return whether `quantized::linear` or `aten::dequantize` is an operator that `ensure_operators` defines."""
    namespace, _, short = name.partition("::")
    return namespace in NAMESPACES or (namespace == "aten" and short in _ATEN)


class QuantizedNamespace(Namespace):
    """`ops.quantized`, whose operators are defined on first access."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if not name.startswith("__"):
            ensure_operators()
            found = self.__dict__.get(name)
            if found is not None:
                return found
        return super().__getattr__(name)


for _name in NAMESPACES:
    namespaces.__dict__.setdefault(_name, QuantizedNamespace(_name))
