"""`torch.ops.load_library`: libraries of compiled operators.

Libraries built against libtorch need PyTorch's C++ API, which does not exist here, so they cannot be loaded. torchvision's
operators are built in, so its library counts as loaded.
"""

from __future__ import annotations

import ctypes
import os

from rushlight.ops.dispatcher import OpOverload, define
from rushlight.ops.registry import composite

loaded_libraries: set[str] = set()
"""The paths that `load_library` was given."""

_OWN = {("torchvision", "_C"): "torchvision"}
"""Libraries, by folder and name, whose operators are defined here: the namespace of these."""

# torchvision's operators that have no kernels here.
for _schema in (
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, "
    "bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
    "bool aligned) -> Tensor",
):
    define("torchvision", _schema)


@composite("_cuda_version() -> int", namespace="torchvision")
def _cuda_version():
    return -1


def has_own_rules(op: OpOverload) -> bool:
    """Return whether an operator's shapes, gradients and precision are built in, so that its package's registrations are
    ignored."""
    return op.namespace in _OWN.values()


def load_library(path: str | os.PathLike) -> None:
    """Load a library that registers operators. OSError if it cannot be loaded, such as all those built against libtorch."""
    real_path = os.path.realpath(path)
    folder, name = os.path.split(real_path)
    if (os.path.basename(folder), name.partition(".")[0]) not in _OWN:
        if not os.path.exists(real_path):
            raise OSError(f"{path}: there is no such file")
        if _depends_on_libtorch(real_path):
            raise OSError(
                f"{path} is built against libtorch, PyTorch's C++ library, which Rushlight does not have: it cannot be loaded. "
                "Packages run here as far as their parts in Python go"
            )
        ctypes.CDLL(real_path)
    loaded_libraries.add(str(path))


def _depends_on_libtorch(path: str) -> bool:
    """Return whether a shared library depends on one of PyTorch's."""
    with open(path, "rb") as file:
        content = file.read()
    return any(name in content for name in (b"libtorch", b"libc10", b"torch_cpu"))
