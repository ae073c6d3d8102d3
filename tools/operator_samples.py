"""PyTorch's operator samples (OpInfo) as calls of this library: what the tools that run them share.

In: an OpInfo and its samples. Out: our function, and our arguments of the same values, dtypes and strides.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import torch as oracle
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo

import rushlight as torch

PRODUCTS = {
    "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "cdist", "dot", "einsum", "inner",
    "kron", "linalg.matmul", "linalg.matrix_power", "linalg.multi_dot", "linalg.vecdot", "matmul", "mm", "mv",
    "nn.functional.bilinear", "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
    "nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
    "nn.functional.linear", "outer", "tensordot", "vdot", "nn.functional.scaled_dot_product_attention",
    "nn.functional.multi_head_attention_forward",
}  # fmt: skip
INDEXING = {
    "__getitem__", "cat", "column_stack", "diag", "diag_embed", "diagonal", "diagonal_scatter", "dstack", "expand", "flip",
    "gather", "hstack", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "narrow", "nn.functional.embedding", "nn.functional.embedding_bag",
    "nn.functional.one_hot", "nn.functional.pad", "permute", "put", "repeat", "repeat_interleave", "roll", "rot90", "scatter",
    "scatter_add", "scatter_reduce", "searchsorted", "select", "select_scatter", "slice", "slice_scatter", "split", "stack",
    "t", "take", "take_along_dim", "tile", "transpose", "tril", "triu", "unbind", "unfold", "vstack", "where",
}  # fmt: skip
RANDOM = ("rand", "empty", "new_empty", "bernoulli", "multinomial", "normal", "uniform", "cauchy", "exponential", "geometric",
          "log_normal", "nn.functional.dropout", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
          "nn.functional.rrelu", "nn.functional.fractional_max_pool", "nn.functional.multi_head_attention")  # fmt: skip
AGREE = {"rtol": 1e-3, "atol": 1e-4}
AGREE_IN_HALF = {"rtol": 2e-2, "atol": 2e-2}


class Unusable(Exception):
    """A sample that has no counterpart here."""


def name_of(op: Any) -> str:
    """Return an operator's name, with that of its variant."""
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def is_random(name: str, options: dict[str, Any]) -> bool:
    """Return whether a call draws random numbers, so that its values cannot be compared."""
    return name.startswith(RANDOM) or bool(options.get("dropout_p"))


def kind_of(op: Any) -> str:
    """Return the kind of operators that an operator is counted among."""
    if isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo):
        return "elementwise"
    if op.name in PRODUCTS:
        return "products"
    if op.name in INDEXING:
        return "indexing"
    return "reductions" if isinstance(op, ReductionOpInfo) else "others"


def to_ours(value: Any, gradients: bool) -> Any:
    """Convert a sample's argument; strides are kept."""
    if isinstance(value, oracle.Tensor):
        if value.layout != oracle.strided or value.is_quantized:
            raise Unusable
        plain = value.detach().resolve_conj().resolve_neg()
        if value.dtype == oracle.bfloat16:  # NumPy has none
            made = torch.from_numpy(plain.contiguous().view(oracle.int16).numpy().copy()).view(torch.bfloat16)
        else:
            made = torch.from_numpy(plain.contiguous().numpy().copy())
        if not plain.is_contiguous() and plain.numel() and 0 not in plain.stride():
            made = torch.empty_strided(tuple(plain.shape), plain.stride(), dtype=made.dtype).copy_(made)
        return made.requires_grad_() if gradients and value.requires_grad else made
    if isinstance(value, oracle.dtype | oracle.memory_format | oracle.layout):
        return getattr(torch, str(value).split(".")[1])
    if isinstance(value, oracle.device):
        return torch.device(str(value))
    if isinstance(value, oracle.Generator):
        raise Unusable
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_ours(each, gradients) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(to_ours(each, gradients) for each in value)
    return {name: to_ours(each, gradients) for name, each in value.items()} if isinstance(value, dict) else value


def arguments_of(sample: Any, gradients: bool) -> tuple[tuple, dict[str, Any]]:
    """Return a sample's arguments as ours; Unusable for kinds of tensors that have no counterpart."""
    return to_ours((sample.input, *sample.args), gradients), to_ours(sample.kwargs, gradients)


def function_of(op: Any) -> Any:
    """Return our function for an OpInfo; None if there is none."""
    seeded = isinstance(op.op, types.FunctionType) and "wrapper_set_seed" in op.op.__code__.co_names
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing._internal") and not seeded:
        names = {name: torch if value is oracle else value for name, value in op.op.__globals__.items()}
        made = types.FunctionType(op.op.__code__, names, op.op.__name__, op.op.__defaults__, op.op.__closure__)
        made.__kwdefaults__ = op.op.__kwdefaults__
        return made
    try:
        return functools.reduce(getattr, op.name.split("."), torch)
    except AttributeError:
        return getattr(torch.Tensor, op.name, None)


def tensors_of(value: Any) -> list:
    """Return the tensors in lists and tuples."""
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors_of(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def run_with_gradients(function: Any, given: tuple) -> list:
    """Return the results, and the gradients of all inputs that want them, for gradients of ones."""
    results = tensors_of(function(*given[0], **given[1]))
    wanted = [each for each in tensors_of([given[0], list(given[1].values())]) if each.requires_grad]
    grown = [each for each in results if each.requires_grad and each.is_floating_point()]
    if not wanted or not grown:
        return [each.detach() for each in results]
    gradients = torch.autograd.grad(sum(each.sum() for each in grown), wanted, allow_unused=True)
    return [*(each.detach() for each in results), *(each for each in gradients if each is not None)]


def agree(ours: list, theirs: list) -> bool:
    """Return whether results have the same values, up to rounding, and the same dtypes, sizes and layouts."""
    if len(ours) != len(theirs):
        return False
    try:
        for found, wanted in zip(ours, theirs, strict=True):
            is_half = wanted.dtype in (torch.float16, torch.bfloat16)
            torch.testing.assert_close(found, wanted, equal_nan=True, **(AGREE_IN_HALF if is_half else AGREE))
    except AssertionError:
        return False
    return True
