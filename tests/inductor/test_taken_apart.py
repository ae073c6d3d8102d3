"""What is only taken apart along a dimension is calculated where its parts are used."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.native_nodes import check, source_of


def overlap(a, b):
    low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    size = (high - low).clamp(min=0)
    return size[..., 0] * size[..., 1]


def scaled_channels(a, b):
    red, green, blue, rest = (a / 255).unbind(1)
    return red.amax() + green[:, None] - blue * rest


def used_again(a, b):
    size = a - 1
    return size[:, 0] * size[:, 1], size[:, 1].softmax(0) + size[:, -1], size.sum(1)


def of_places_twice(a, b):
    size = a.exp()
    return size[:, 0] * size[:, 0] + size[:, 1], size[0].sum(), size[:, 2]


@pytest.mark.parametrize("function", [overlap, scaled_channels, used_again, of_places_twice])
def test_results_are_eagers(function):
    check(function, torch.rand(37, 4), torch.rand(50, 4))


def test_what_is_taken_apart_has_no_buffer():
    assert source_of(overlap, torch.rand(37, 4), torch.rand(50, 4)).count("static void kernel_") == 1
