"""Scripted forms of the library's own modules, functions and context managers, which are written for eager.

In: a class or a function of the library. Out: equivalent Python in TorchScript's language. Classes and functions without an
entry here are compiled from their own source.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight import nn
from rushlight.autograd import grad_mode
from rushlight.core.naming import own_module
from rushlight.jit.library import contexts, functional, modules, pooling
from rushlight.jit.strict import strict_fusion
from rushlight.nn import functional as F

METHODS: dict[type, dict[str, Callable]] = modules.METHODS
"""The scripted methods of module classes. A class has those of its bases, too."""
REPLACEMENTS: dict[Callable, Callable] = {
    grad_mode.no_grad: contexts.no_grad, grad_mode.enable_grad: contexts.enable_grad, strict_fusion: contexts.strict_fusion,
    **functional.REPLACEMENTS,
}  # fmt: skip
"""Functions and classes of the library, with their scripted replacements."""
BY_FLAGS: dict[Callable, tuple[tuple[tuple[str, int], ...], dict[tuple[bool, ...], Callable]]] = {
    **{
        each: ((("return_indices", position),), {(False,): REPLACEMENTS[each], (True,): flagged})
        for each, (flagged, position) in pooling.WITH_INDICES.items()
    },
    **functional.BY_FLAGS,
}  # fmt: skip
"""Functions whose number of results depends on constant flags: the flags' positions, and the function for each choice."""
_MODULES: dict[str, tuple[type, ...]] = {
    "sparse": (nn.Embedding, nn.EmbeddingBag), "rnn": (nn.RNNCell, nn.LSTMCell, nn.GRUCell), "fold": (nn.Fold, nn.Unfold),
    "container": (nn.ParameterList, nn.ParameterDict), "activation": (nn.MultiheadAttention,), "loss": (nn.CTCLoss,),
    "pixelshuffle": (nn.PixelShuffle, nn.PixelUnshuffle), "channelshuffle": (nn.ChannelShuffle,),
    "upsampling": (nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d),
    "instancenorm": (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    "pooling": (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d),
}  # fmt: skip
NAMES: dict[Callable, str] = {
    contexts.no_grad: "__torch__.torch.autograd.grad_mode.no_grad",
    contexts.enable_grad: "__torch__.torch.autograd.grad_mode.enable_grad",
    contexts.strict_fusion: "__torch__.torch.jit.strict_fusion",
    **{each: f"__torch__.torch.nn.modules.{name}.{each.__name__}" for name, classes in _MODULES.items() for each in classes},
}
"""The names that these have in graphs and archives: those of torch, whose modules are divided among files in another way."""


BUILTINS: dict[Callable, str] = {
    F.linear: "aten::linear", F.softplus: "aten::softplus", F.softshrink: "aten::softshrink", F.hardshrink: "aten::hardshrink",
    F.logsigmoid: "aten::log_sigmoid", F.prelu: "aten::prelu", F.pixel_shuffle: "aten::pixel_shuffle",
    F.pixel_unshuffle: "aten::pixel_unshuffle", F.channel_shuffle: "aten::channel_shuffle", F.one_hot: "aten::one_hot",
    F.bilinear: "aten::bilinear", F.cosine_similarity: "aten::cosine_similarity", F.gelu: "aten::gelu", F.pdist: "aten::pdist",
    F.avg_pool1d: "aten::avg_pool1d", F.conv_tbc: "aten::conv_tbc",
}  # fmt: skip
"""Functions that are operators, under their own names."""


def has_constants(kind: type) -> bool:
    """Return whether the numbers, strings and tuples of a module are constants, as for the library's own classes."""
    return own_module(kind).startswith("rushlight.nn.modules.")


def script_methods(kind: type) -> dict[str, Callable]:
    """Return the scripted methods of a class, except those that the user's class overrides."""
    found: dict[str, Callable] = {}
    for each in reversed(kind.__mro__):
        for name in list(found):
            if name in vars(each):
                del found[name]
        found.update(METHODS.get(each, {}))
    return found
