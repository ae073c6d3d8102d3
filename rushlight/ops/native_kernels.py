"""Native fast paths of operators: the kernels' names, and wrappers around registered kernels.

In: the kernel of an operator, as it is registered. Out: an ElementwiseKernel (`csrc/elementwise.c`), which runs a native kernel
on contiguous tensors of one shape and dtype, a ViewKernel (`csrc/view_kernel.c`), which makes views, a ConcatenateKernel
(`csrc/concatenate_kernel.c`), or a CreationKernel (`csrc/creation_kernel.c`), which makes, fills and copies tensors. They call
the general kernel, which was registered, in all other cases.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight._C import ConcatenateKernel, CreationKernel, ElementwiseKernel, ViewKernel

# Operators whose native kernel has the same name, and those where the names differ.
_NATIVE = {
    **dict.fromkeys(
        "neg abs relu floor ceil round trunc sqrt rsqrt reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan tanh erf "
        "sigmoid silu isnan isinf logical_not maximum minimum logical_and logical_or logical_xor threshold_backward "
        "sigmoid_backward tanh_backward".split()
    ),
    **{f"{name}.Tensor": name for name in (
        "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor",
    )},
    "clone": "positive", "where.self": "where",
}  # fmt: skip
_VIEWS = {
    **dict.fromkeys(("alias", "detach", "lift_fresh"), "alias"),
    **{name: name for name in ("permute", "view", "expand", "unsqueeze", "as_strided")},
    "select.int": "select", "slice.Tensor": "slice",
}  # fmt: skip
_CREATIONS = {
    **{name: name for name in ("empty_strided", "full", "copy_")},
    "empty.memory_format": "empty", "fill_.Scalar": "fill_", "arange.start_step": "arange",
}  # fmt: skip
# The number of numeric arguments that follow the operands.
_PARAMETERS = {"threshold_backward": 1}


def with_native(name: str, general: Callable, in_place: bool = False) -> Callable:
    """Return the CPU kernel `general` of operator `name`, wrapped in a native fast path where there is one; `in_place` for
    `name_`."""
    if name == "cat":
        return ConcatenateKernel(general)
    if name in _CREATIONS:
        return CreationKernel(_CREATIONS[name], general)
    if name not in _NATIVE:
        return general
    return ElementwiseKernel(_NATIVE[name] or name, general, in_place, _PARAMETERS.get(name, 0))


def with_native_view(name: str, general: Callable) -> Callable:
    """Return the kernel `general` of view operator `name`, wrapped in a native fast path where there is one."""
    return ViewKernel(_VIEWS[name], general) if name in _VIEWS else general
