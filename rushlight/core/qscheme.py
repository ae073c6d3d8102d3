"""The schemes of quantization: how the integers of a quantized tensor stand for real numbers."""

from __future__ import annotations


class qscheme:
    """A quantization scheme. Instances are singletons; `number` is c10's number for it, which graphs hold."""

    __slots__ = ("name", "number")

    def __init__(self, name: str, number: int):
        self.name = name
        self.number = number

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (from_name, (self.name,))


per_tensor_affine = qscheme("per_tensor_affine", 0)
per_channel_affine = qscheme("per_channel_affine", 1)
per_tensor_symmetric = qscheme("per_tensor_symmetric", 2)
per_channel_symmetric = qscheme("per_channel_symmetric", 3)
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams", 4)

SCHEMES = {
    each.name: each
    for each in (per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric,
                 per_channel_affine_float_qparams)
}  # fmt: skip


def from_name(name: str) -> qscheme:
    """Return the scheme called `name`; KeyError if there is none."""
    return SCHEMES[name]
