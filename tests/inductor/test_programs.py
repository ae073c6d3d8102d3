"""Small programs through inductor against eager: one per way in which lowering, fusion or code generation can go wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from tests.inductor.differences import difference

F = torch.nn.functional


def grid(*shape: int, dtype: str = "float32") -> torch.Tensor:
    """Small multiples of 1/8 around zero."""
    count = int(np.prod(shape))
    return torch.from_numpy(((np.arange(count) * 7 % 41 - 20) / 8).reshape(shape)).to(getattr(torch, dtype))


def integers(*shape: int, high: int = 5) -> torch.Tensor:
    return torch.from_numpy((np.arange(int(np.prod(shape))) * 3 % high).reshape(shape))


def write_through_views(x, y):
    z = x * 2
    row = z[1]
    row.add_(y)
    z[:, ::2].mul_(3)
    x.t()[0].sub_(1)
    return z, row, x[0]


def fill_parts(x):
    made = torch.zeros(3, 4)
    made[0] = 1
    made[1:, 1] = x
    made.view(12)[10:].neg_()
    return made.t(), made


def literal_written_to(x):
    weights = torch.tensor([1.0, 2.0, 3.0])
    weights += x
    return weights


def swap_halves(x):
    left = x[:2].clone()
    x[:2].copy_(x[2:])
    x[2:].copy_(left)


def one_index_in_two_places(table, index):
    rows = table[index]
    return rows[1:] - rows[:-1]


def row_values_as_indices(x, table):
    best = x.argmax(1)
    return table.index_select(0, best) + x.softmax(1).gather(1, best.unsqueeze(1))


def row_softmax_of_long_rows(x):
    return (x.softmax(-1) * x.exp()).log_softmax(-1)


CASES = {
    "identity_of_integers_is_a_copy": (lambda x: x.floor(), integers(4)),
    "half_to_bfloat16_rounds": (lambda x: x.to(torch.bfloat16).to(torch.float16).float(), grid(9) / 3),
    "comparison_of_booleans": (lambda x: ((x > 0) >= (x > 1), (x > 0) < (x > 1), (x > 0).eq(x > 1)), grid(33)),
    "extrema_of_booleans": (lambda x: ((x > 0).amax(0), (x > 0).amin(1)), grid(5, 33)),
    "all_of_bytes_is_a_byte": (lambda x: (x.all(0), x.any(1)), integers(5, 33).to(torch.uint8)),
    "quantifiers_over_no_dimension": (lambda x: (x.any(()), x.all(dim=()), x[:0].all(())), grid(5, 33)),
    "absolute_value_of_booleans": (lambda x: (x > 0).abs() + 1, grid(33)),
    "boolean_sum_with_alpha": (lambda x: torch.add(x > 0, x > 1, alpha=True), grid(33)),
    "softmax_of_a_scalar": (lambda x: (F.softmax(x, 0), F.log_softmax(x * torch.inf, 0)), grid()),
    "softmax_without_elements": (lambda x: (x.softmax(0), x.softmax(1)), grid(0, 3)),
    "layer_norm_without_rows": (lambda x: F.layer_norm(x, [8]), grid(0, 8)),
    "reductions_of_nothing": (lambda x: (x.sum(0), x.prod(0), x.sum(), (x > 0).all(0), x.mean(0)), grid(0, 3)),
    "concatenation_of_nothing": (lambda x: (torch.cat([x, x[:0], x]), torch.cat([x[:0], x[:0]])), grid(4, 3)),
    "concatenation_of_many": (lambda x: torch.stack([x + i for i in range(40)]).sum(0), grid(4)),
    "padding_of_nothing": (lambda x: F.pad(x, (1, 2, 1, 0), value=3.0), grid(0, 3)),
    "product_without_depth": (lambda x: x @ x.t(), grid(3, 0)),
    "outer_product_of_vectors_with_gaps": (lambda x, y: x[:, ::2].t() @ y, grid(1, 16), grid(1, 3)),
    "diagonal_of_a_slice": (lambda x: (x[1:].diagonal(), (x + 1)[:, 1:].diagonal()), grid(5, 4)),
    "windows_of_a_permuted_tensor": (lambda x: (x.t() * 2).unfold(0, 2, 1).sum(-1), grid(5, 4)),
    "strides_with_gaps": (lambda x: (x * 2)[:, 1:3], grid(5, 4)),
    "outputs_that_share_memory": (lambda x: ((y := x + 1), y.t(), y[0], y), grid(5, 4)),
    "outputs_that_are_inputs": (lambda x, y: (x, x.t(), y[:, 1], x, 3, None), grid(5, 4), grid(2, 3)),
    "expanded_output": (lambda x: (x * 2).unsqueeze(1).expand(4, 3), grid(4)),
    "flip_roll_stack": (lambda x: torch.stack([x.flip(0), x.roll(1, 1)], -1), grid(5, 7)),
    "write_through_views": (write_through_views, grid(3, 4), grid(4)),
    "fill_parts": (fill_parts, grid(2)),
    "literal_written_to": (literal_written_to, grid(3)),
    "swap_halves": (swap_halves, grid(4, 3)),
    "write_to_an_alias_of_an_input": (lambda x: x.detach().mul_(2), grid(4)),
    "one_index_in_two_places": (one_index_in_two_places, grid(5, 3), integers(7)),
    "row_values_as_indices": (row_values_as_indices, grid(6, 17), grid(17, 17)),
    "scalars_read_by_index": (
        lambda x, i: (x.gather(0, i), x.gather(0, i.view(1)), x.index_select(0, i), x.index_copy(0, i.view(1), x.view(1))),
        grid(), integers(),
    ),
    "indices_of_several_dimensions": (lambda x, i: (x[i, i % 2], x[i, :, i % 3], x[:, i % 2], x[-i - 1, 1]), grid(5, 2, 3),
                                      integers(4)),
    "sums_of_narrow_types_are_kept_wide": (lambda x: (x.sum(0), x.sum((0, 2)), x.mean()), grid(40, 3, 64, dtype="bfloat16")),
    "masked_row_values": (lambda x: torch.where(x > x.mean(1, keepdim=True), F.pad(x, (1, -1)), x.sum(1, keepdim=True)),
                          grid(6, 40)),
    "long_rows_leave_the_stack": (row_softmax_of_long_rows, grid(2, 50000)),
    "sum_over_the_first_dimension": (lambda x: (x.sum(0), (x * x).mean(0), x.sum((0, 2)), x.amax(1)), grid(65, 7, 33)),
    "sum_over_dimensions_apart": (lambda x: (x.sum((0, 2)), x.mean((1, 3), keepdim=True)), grid(3, 5, 7, 9)),
    "argmax_with_ties_and_nan": (lambda x: (x.argmax(0), x.argmin(1), x.argmax()), grid(9, 40) / 0 * 0),
    "nan_goes_through_extrema": (lambda x: (x.amax(1), x.amin(0), x.clamp(-1, 1), x.relu()), grid(5, 33).log()),
    "integer_arithmetic_wraps": (lambda x: (x * 100, x - 7, x // 3, x % 3, -x), integers(40).to(torch.int8)),
    "integer_division_by_float": (lambda x: (x / 4, x // 4.0, x % 2.5), integers(9)),
    "double_precision": (lambda x: (x.exp(), x.softmax(0), (x / 3).sum()), grid(5, 9, dtype="float64")),
    "random_numbers_stay_eager": (lambda x: (torch.rand(3) * 0 + x, torch.randn(2).shape), grid(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_program_agrees_with_eager(name):
    function, *inputs = CASES[name]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", message="compile")
        problem = difference(function, torch.compile(function), lambda: [tensor.clone() for tensor in inputs])
    assert not problem


@pytest.mark.parametrize("function", [
    lambda table, index: F.embedding(index, table),
    lambda table, index: table.index_select(0, index),
    lambda table, index: table[index],
    lambda table, index: table.gather(0, index.unsqueeze(1).expand(-1, 3)),
    lambda table, index: torch.take_along_dim(table, index.unsqueeze(1).expand(-1, 3), 0) * 2,
], ids=["embedding", "index_select", "index", "gather", "take_along_dim"])  # fmt: skip
@pytest.mark.parametrize("rows", [5, 0])
def test_an_index_out_of_range_is_an_error_as_in_eager(function, rows):
    table, index = grid(rows, 3), torch.tensor([0, 7, 2])
    with torch.no_grad():
        with pytest.raises((IndexError, RuntimeError)) as eager:
            function(table, index)
        with pytest.raises((IndexError, RuntimeError)) as compiled:
            torch.compile(function)(table, index)
    assert compiled.type is eager.type


@pytest.mark.parametrize("divide", [
    lambda a, b: a // b, lambda a, b: a % b, torch.fmod, lambda a, b: a // 0, lambda a, b: torch.div(a, b, rounding_mode="trunc"),
], ids=["floor", "remainder", "fmod", "constant", "trunc"])  # fmt: skip
def test_integer_division_by_zero_is_an_error_as_in_eager(divide):
    with torch.no_grad(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(divide)(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_tensors_that_share_memory_are_told_apart_from_those_that_do_not():
    def shift(x, y):
        x.add_(1)
        return y * 2

    compiled = torch.compile(shift)
    with torch.no_grad():
        x, y = grid(4), grid(4)
        assert (compiled(x, y) == y * 2).all()
        whole = grid(4)
        before = whole.clone()
        assert (compiled(whole, whole.view(2, 2).view(4)) == (before + 1) * 2).all()
        pair = grid(6)
        before = pair.clone()
        assert (compiled(pair[:4], pair[2:]) == (before + torch.tensor([1.0, 1, 1, 1, 0, 0]))[2:] * 2).all()


def test_a_view_by_absolute_offset_follows_its_input():
    compiled = torch.compile(lambda x: x.diagonal() * 2)
    many = grid(4, 3, 3)
    with torch.no_grad():
        for matrix in many.unbind(0):
            assert (compiled(matrix) == matrix.diagonal() * 2).all()
