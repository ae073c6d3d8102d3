"""Rules for pooling, and for operators that move elements."""

from __future__ import annotations

from rushlight.core.dtype import float32
from rushlight.quantized.captures.tensors import of_quantized, operator_named, rounded
from rushlight.quantized.quantizer import inverse_of
from rushlight.quantized.registration import aten


def _define_maximum(*names: str) -> None:
    @of_quantized(*names)
    def maximum(self, *args, **kwargs):
        return self.with_integers(aten.max_pool2d(self.integers, *args, **kwargs))


_define_maximum("aten::max_pool2d", "aten::quantized_max_pool2d", "quantized::max_pool2d")


def _define_mean(name: str) -> None:
    general = getattr(aten, name)

    @of_quantized(f"aten::{name}")
    def mean(self, *args, **kwargs):
        made = general(self.shifted().to(float32), *args, **kwargs)
        return self.with_integers(rounded(made, 1.0, self.dtype, self.quantizer))


for _name in ("avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "avg_pool1d"):
    _define_mean(_name)


@of_quantized("aten::mean.dim")
def mean(self, dim, keepdim=False, *, dtype=None):
    made = self.numbers().mean(dim, keepdim)
    return self.with_integers(rounded(made, inverse_of(self.quantizer.scale), self.dtype, self.quantizer))




def _define_moving(name: str) -> None:
    @of_quantized(f"aten::{name}")
    def rule(self, *args, **kwargs):
        return self.with_integers(operator_named(f"aten::{name}")(self.integers, *args, **kwargs))


for _name in (
    "view", "permute", "expand", "select.int", "slice.Tensor", "unsqueeze", "squeeze.dims", "detach", "alias", "clone", "flip",
    "roll", "repeat", "gather", "index.Tensor", "index_select", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d",
):  # fmt: skip
    _define_moving(_name)
