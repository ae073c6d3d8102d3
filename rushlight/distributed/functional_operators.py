"""The functional collectives as operators, `torch.ops._c10d_functional`: what they return is new, and not complete before
`wait_tensor`.

Captured graphs hold them as calls of operators, so that work that does not need the result can run between a collective and
its wait. Groups are named by strings.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rushlight.autograd.derivative_table import derivative
from rushlight.core.layout import contiguous_format
from rushlight.core.tensor import Tensor, wrap
from rushlight.distributed.collectives import all_reduce as _all_reduce
from rushlight.distributed.collectives import broadcast as _broadcast
from rushlight.distributed.engine.reduce_op import RedOpType
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import group_by_name
from rushlight.distributed.single_tensors import all_gather_into_tensor as _all_gather_into_tensor
from rushlight.distributed.single_tensors import all_to_all_single as _all_to_all_single
from rushlight.distributed.single_tensors import reduce_scatter_tensor as _reduce_scatter_tensor
from rushlight.ops.library import Library
from rushlight.ops.packet import namespaces

_SCHEMAS = """
all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor
all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]
all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor
all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]
reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor
reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> Tensor[]
all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor
broadcast(Tensor input, int src, str group_name) -> Tensor
wait_tensor(Tensor tensor) -> Tensor
"""

_libraries = [Library(name, "DEF") for name in ("_c10d_functional", "c10d_functional")]
for _library in _libraries:
    for _schema in _SCHEMAS.strip().splitlines():
        _library.define(_schema)
functional, older = (namespaces.namespace(name) for name in ("_c10d_functional", "c10d_functional"))
"""The operators by their name, and by an older one."""

_OPERATIONS = {
    "sum": RedOpType.SUM, "avg": RedOpType.AVG, "product": RedOpType.PRODUCT, "min": RedOpType.MIN, "max": RedOpType.MAX,
    "band": RedOpType.BAND, "bor": RedOpType.BOR, "bxor": RedOpType.BXOR,
}  # fmt: skip

_in_flight: dict[int, Work] = {}
"""The collectives that have begun, by the address of their result."""


def _operation(name: str) -> RedOpType:
    found = _OPERATIONS.get(name.lower())
    if found is None:
        raise ValueError(f"Unknown reduce_op {name!r}: expected one of {', '.join(_OPERATIONS)}")
    return found


def _begun(result: Tensor, work: Work | None) -> Tensor:
    """Note the collective that writes a result, and forget those that are complete."""
    for address, other in list(_in_flight.items()):
        if other.is_completed():
            del _in_flight[address]
    if work is not None and result.numel():
        _in_flight[result.data_ptr()] = work
    return result


def all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """Begin to reduce a tensor over all ranks."""
    result = _copied(input)
    return _begun(result, _all_reduce(result, _operation(reduce_op), group_by_name(group_name), async_op=True))


def broadcast(input: Tensor, src: int, group_name: str) -> Tensor:
    """Begin to copy the tensor of the group's rank `src`."""
    result = _copied(input)
    return _begun(result, _broadcast(result, group=group_by_name(group_name), group_src=src, async_op=True))


def all_gather_into_tensor(input: Tensor, group_size: int, group_name: str) -> Tensor:
    """Begin to join the tensors of all ranks along dimension 0."""
    result = _new(input, _gathered(input, group_size))
    return _begun(result, _all_gather_into_tensor(result, input, group_by_name(group_name), async_op=True))


def reduce_scatter_tensor(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    """Begin to reduce a tensor, and to give each rank its part along dimension 0."""
    result = _new(input, _scattered(input, group_size))
    work = _reduce_scatter_tensor(result, input, _operation(reduce_op), group_by_name(group_name), async_op=True)
    return _begun(result, work)


def all_to_all_single(
    input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], group_name: str
) -> Tensor:
    """Begin to send rows to all ranks."""
    result = _new(input, [sum(output_split_sizes), *input.shape[1:]])
    group = group_by_name(group_name)
    work = _all_to_all_single(result, input, list(output_split_sizes), list(input_split_sizes), group, async_op=True)
    return _begun(result, work)


def wait_tensor(tensor: Tensor) -> Tensor:
    """Wait for the collective that writes a tensor; return the tensor under another handle."""
    work = _in_flight.pop(tensor.data_ptr(), None)
    if work is not None:
        work.wait()
    impl = tensor._impl
    return wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))


def _gathered(input: Tensor, ranks: int) -> tuple[int, ...]:
    return (input.shape[0] * ranks, *input.shape[1:]) if input.dim() else (ranks,)


def _scattered(input: Tensor, ranks: int) -> tuple[int, ...]:
    if not input.dim() or input.shape[0] % ranks:
        raise RuntimeError(f"reduce_scatter_tensor: dimension 0 of shape {list(input.shape)} is no multiple of {ranks} ranks")
    return input.shape[0] // ranks, *input.shape[1:]


def _coalesced(single):
    """Return the form of a collective for a list of tensors."""
    return lambda inputs, *words: [single(each, *words) for each in inputs]


def _new(input: Tensor, sizes: Sequence[int]) -> Tensor:
    return input.new_empty(tuple(sizes))


def _copied(input: Tensor) -> Tensor:
    return input.detach().clone(memory_format=contiguous_format)


_SHAPES = {
    "all_reduce": lambda input, reduce_op, group_name: _new(input, input.shape),
    "broadcast": lambda input, src, group_name: _new(input, input.shape),
    "all_gather_into_tensor": lambda input, group_size, group_name: _new(input, _gathered(input, group_size)),
    "reduce_scatter_tensor": lambda input, reduce_op, group_size, group_name: _new(input, _scattered(input, group_size)),
    "all_to_all_single": lambda input, output_split_sizes, input_split_sizes, group_name: _new(
        input, [sum(output_split_sizes), *input.shape[1:]]
    ),
    "wait_tensor": lambda tensor: _new(tensor, tensor.shape),
}
for _library, _kernel in itertools.product(
    _libraries, (all_reduce, broadcast, all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, wait_tensor)
):
    _name = _kernel.__name__
    _library.impl(_name, _kernel, "CPU")
    _library.impl(_name, _kernel, "CUDA")
    _library.impl(_name, _SHAPES[_name], "Meta")
    if f"{_name}_coalesced" in _SCHEMAS:
        _library.impl(f"{_name}_coalesced", _coalesced(_kernel), "CPU")
        _library.impl(f"{_name}_coalesced", _coalesced(_kernel), "CUDA")
        _library.impl(f"{_name}_coalesced", _coalesced(_SHAPES[_name]), "Meta")


def _wait(tensor: Tensor) -> Tensor:
    return functional.wait_tensor.default(tensor)


def _check_linear(name: str, reduce_op: str) -> None:
    if reduce_op.lower() not in ("sum", "avg"):
        raise RuntimeError(f"{name}: there is no gradient of the reduction {reduce_op!r}, only of sum and avg")


def _differentiate_all_reduce(grad, reduce_op, group_name):
    _check_linear("all_reduce", reduce_op)
    return _wait(functional.all_reduce.default(grad.contiguous(), reduce_op, group_name))


def _differentiate_all_gather(grad, group_size, group_name):
    return _wait(functional.reduce_scatter_tensor.default(grad.contiguous(), "sum", group_size, group_name))


def _differentiate_reduce_scatter(grad, reduce_op, group_size, group_name):
    _check_linear("reduce_scatter_tensor", reduce_op)
    whole = _wait(functional.all_gather_into_tensor.default(grad.contiguous(), group_size, group_name))
    return whole / group_size if reduce_op.lower() == "avg" else whole


def _differentiate_all_to_all(grad, output_split_sizes, input_split_sizes, group_name):
    return _wait(functional.all_to_all_single.default(grad.contiguous(), input_split_sizes, output_split_sizes, group_name))


def _differentiate_broadcast(grad, src, group_name):
    total = _wait(functional.all_reduce.default(grad.contiguous(), "sum", group_name))
    return total if group_by_name(group_name).rank() == src else total.new_zeros(total.shape)


for _space in ("_c10d_functional", "c10d_functional"):
    derivative(f"{_space}::all_reduce", input=_differentiate_all_reduce)
    derivative(f"{_space}::all_gather_into_tensor", input=_differentiate_all_gather)
    derivative(f"{_space}::reduce_scatter_tensor", input=_differentiate_reduce_scatter)
    derivative(f"{_space}::all_to_all_single", input=_differentiate_all_to_all)
    derivative(f"{_space}::broadcast", input=_differentiate_broadcast)
    derivative(f"{_space}::wait_tensor", tensor=lambda grad: grad)
