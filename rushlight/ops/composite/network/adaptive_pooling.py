"""Adaptive pooling in one and three dimensions, built on the two-dimensional form."""

from __future__ import annotations

import math

from rushlight.ops.composite.network.common import aten
from rushlight.ops.meta.adaptive_pooling import output_sizes
from rushlight.ops.meta.checks import is_channels_last
from rushlight.ops.registry import composite


@composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
def adaptive_avg_pool1d(self, output_size):
    sizes = output_sizes(self, output_size, 1, "adaptive_avg_pool1d")
    return adaptive_avg_pool2d(self.unsqueeze(-2), [1, *sizes]).squeeze(-2)


@composite("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
def adaptive_avg_pool2d(self, output_size):
    sizes = output_sizes(self, output_size, 2, "adaptive_avg_pool2d")
    if sizes != [1, 1]:
        return aten._adaptive_avg_pool2d.default(self, sizes)
    if self.dim() == 4 and is_channels_last(self):
        return self.mean([-2, -1]).unsqueeze(1).unsqueeze(1).permute(0, 3, 1, 2)
    return self.mean([-2, -1], True)


@composite("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
def adaptive_avg_pool3d(self, output_size):
    sizes = output_sizes(self, output_size, 3, "adaptive_avg_pool3d")
    if sizes == [1, 1, 1]:
        return self.mean([-3, -2, -1], True)
    planes = aten._adaptive_avg_pool2d.default(self.flatten(-4, -3), sizes[1:])
    columns = planes.reshape([*self.shape[:-2], math.prod(sizes[1:])])
    pooled = aten._adaptive_avg_pool2d.default(columns, [sizes[0], columns.shape[-1]])
    return pooled.reshape([*self.shape[:-3], *sizes])


@composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool1d(self, output_size):
    sizes = output_sizes(self, output_size, 1, "adaptive_max_pool1d")
    values, positions = aten.adaptive_max_pool2d.default(self.unsqueeze(-2), [1, *sizes])
    return values.squeeze(-2), positions.squeeze(-2)


@composite("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool3d(self, output_size):
    sizes = output_sizes(self, output_size, 3, "adaptive_max_pool3d")
    lead, (_, height, width) = self.shape[:-3], self.shape[-3:]
    count = math.prod(sizes[1:])
    planes, positions = aten.adaptive_max_pool2d.default(self.flatten(-4, -3), sizes[1:])
    columns, positions = (x.reshape([*self.shape[:-2], count]) for x in (planes, positions))
    values, chosen = aten.adaptive_max_pool2d.default(columns, [sizes[0], count])
    depth = chosen.div(max(count, 1), rounding_mode="floor")  # a place is (depth, place in the pooled plane)
    positions = positions.gather(-2, depth) + depth * (height * width)
    return values.reshape([*lead, *sizes]), positions.reshape([*lead, *sizes])
