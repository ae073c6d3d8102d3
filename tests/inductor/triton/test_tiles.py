"""The choice of products' tiles: by sizes, by what follows the results, and within a device's limits."""

from __future__ import annotations

import pytest

from rushlight.inductor.codegen.triton.kernels import Limits
from rushlight.inductor.codegen.triton.tiles import Work, plan

H200, A100, SMALL = Limits(227 << 10, 132), Limits(163 << 10, 108), Limits(48 << 10, 20)


def planned(rows, columns, depth, batch=1, itemsize=2, by_matrices=True, instructions=3, is_split=True, limits=H200):
    return plan(Work(rows, columns, depth, batch, itemsize, by_matrices, instructions, is_split), limits)


def tile(found):
    return found.choice.constants["ROWS"], found.choice.constants["COLUMNS"]


def test_large_products_take_the_largest_tile_with_as_many_stages_as_fit():
    found = planned(8192, 8192, 8192)
    assert (tile(found), found.choice.stages, found.parts) == ((128, 256), 4, 1)
    assert planned(8192, 8192, 8192, limits=A100).choice.stages == 3


def test_two_programs_share_a_multiprocessor_where_much_follows_each_result():
    found = planned(4096, 3072, 768, instructions=30)
    bytes_ahead = sum(tile(found)) * found.choice.constants["DEPTH"] * 2 * found.choice.stages
    assert 2 * bytes_ahead <= H200.shared


def test_deep_products_with_few_results_are_split():
    assert planned(64, 64, 65536).parts > 1
    assert planned(64, 64, 65536, is_split=False).parts == 1
    assert planned(64, 64, 256).parts == 1
    assert planned(4096, 4096, 65536).parts == 1


def test_products_of_few_tiles_look_further_ahead():
    assert planned(2304, 768, 4096).choice.stages == 5


@pytest.mark.parametrize("limits", [H200, A100, SMALL])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 4096, 4096), (5, 7, 9), (300, 20, 5000), (4096, 4096, 4096)])
def test_choices_fit(sizes, itemsize, limits):
    found = planned(*sizes, itemsize=itemsize, by_matrices=itemsize < 4, is_split=itemsize != 8, limits=limits)
    assert found.choice in found.candidates
    for choice in found.candidates:
        height, width, depth = (choice.constants[name] for name in ("ROWS", "COLUMNS", "DEPTH"))
        assert (height + width) * depth * itemsize * choice.stages <= limits.shared
        assert height >= 16 and width >= 16 and depth >= 16


def test_a_device_with_too_little_memory_gets_the_smallest_tile():
    found = planned(4096, 4096, 4096, limits=Limits(1 << 10, 10))
    assert (tile(found), found.choice.stages, len(found.candidates)) == ((16, 16), 1, 1)
