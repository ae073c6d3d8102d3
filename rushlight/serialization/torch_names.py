"""The PyTorch modules of classes that are in another module here, for writing files.

In: a module and a class of this library. Out: the module of PyTorch. All others are in the corresponding module.
"""

from __future__ import annotations

_NN, _OPTIM, _DISTRIBUTIONS = "torch.nn.modules.", "torch.optim.", "torch.distributions."
_MODULES = {
    "nn.modules.attention": _NN + "activation",
    "nn.modules.data_parallel": "torch.nn.parallel.data_parallel",
    "nn.modules.embedding": _NN + "sparse",
    "nn.modules.fractional_pooling": _NN + "pooling",
    "nn.modules.parameter_container": _NN + "container",
    "nn.modules.rnn_cells": _NN + "rnn",
    "nn.modules.sequence_loss": _NN + "loss",
    **{f"optim.lr_scheduler.{name}": _OPTIM + "lr_scheduler" for name in (
        "combined", "cosine", "cyclic", "factors", "one_cycle", "plateau", "scheduler")},
    **{f"distributions.transform_{name}": _DISTRIBUTIONS + "transforms" for name in ("base", "elementwise", "structured")},
}  # fmt: skip
_CLASSES = {
    **dict.fromkeys(("PixelShuffle", "PixelUnshuffle"), _NN + "pixelshuffle"),
    **dict.fromkeys(("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"), _NN + "upsampling"),
    **dict.fromkeys(("Fold", "Unfold"), _NN + "fold"),
    "ChannelShuffle": _NN + "channelshuffle",
    **{f"InstanceNorm{rank}d": _NN + "instancenorm" for rank in (1, 2, 3)},
    **{f"Lazy{name}{rank}d": _NN + module for rank in (1, 2, 3) for name, module in (
        ("BatchNorm", "batchnorm"), ("Conv", "conv"), ("ConvTranspose", "conv"), ("InstanceNorm", "instancenorm"))},
    "LazyLinear": _NN + "linear",
    "AdamW": _OPTIM + "adamw",
}  # fmt: skip


def module_in_torch(module: str, name: str) -> str:
    """Return PyTorch's module of the class or function `name` of `module`, "rushlight.x" or "torch.x"."""
    root, _, place = module.partition(".")
    if place.startswith(("nn.modules.", "optim.")) and name in _CLASSES:
        return _CLASSES[name]
    return _MODULES.get(place, "torch." + place if place else "torch")
