"""`torch.distributed.nn.functional`: collectives with gradients. They return new tensors and wait.

The gradient of what a rank sends is the sum of the gradients of what all ranks received of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.autograd.function import Function
from rushlight.core.tensor import Tensor
from rushlight.distributed import collectives, gathers, single_tensors
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp, kind_of
from rushlight.distributed.groups import default_group, get_group_rank

_Op = RedOpType | ReduceOp


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of the world's rank `src`. Its gradient there is the sum over all ranks, zero elsewhere."""
    return _Broadcast.apply(tensor, get_group_rank(_of(group), src), _of(group))


def reduce(tensor: Tensor, dst: int, op: _Op = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Return the reduction of all ranks' tensors on the world's rank `dst`, a copy of the own elsewhere."""
    return _Reduce.apply(tensor, get_group_rank(_of(group), dst), op, _of(group))


def all_reduce(tensor: Tensor, op: _Op = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Return the reduction of all ranks' tensors. The gradient is reduced in the same way: SUM or AVG, else RuntimeError."""
    return _AllReduce.apply(tensor, op, _of(group))


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, which have one shape."""
    return _AllGather.apply(tensor, _of(group))


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on the world's rank `dst`, zeros of their shape elsewhere."""
    return _Gather.apply(tensor, get_group_rank(_of(group), dst), _of(group))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Return this rank's tensor of the list of the world's rank `src`. All give a list; elsewhere it is not read."""
    return _Scatter.apply(get_group_rank(_of(group), src), _of(group), *tensors)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: _Op = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Return this rank's part, of the shape of `output`, of the reduction of all ranks' lists."""
    return _ReduceScatter.apply(output, op, _of(group), *input_list)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None
) -> tuple[Tensor, ...]:
    """Return the tensors that all ranks have at this rank's place of their lists, of the shapes of `output_tensor_list`."""
    return _AllToAll.apply(_of(group), [tensor.shape for tensor in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None,
) -> Tensor:  # fmt: skip
    """Return the rows that all ranks send to this one, of the shape of `output`."""
    return _AllToAllSingle.apply(_of(group), output.shape, output_split_sizes, input_split_sizes, input)


def _of(group: ProcessGroup | None) -> ProcessGroup:
    return default_group() if group is None else group


def _check_linear(op: _Op, name: str) -> None:
    if kind_of(op) not in (RedOpType.SUM, RedOpType.AVG):
        raise RuntimeError(f"{name}: there is no gradient of {kind_of(op)}, only of SUM and AVG")


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, tensor, src, group):
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        collectives.broadcast(result, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx, grad):
        found = _Reduce.apply(grad, ctx.src, ReduceOp.SUM, ctx.group)
        return found if ctx.group.rank() == ctx.src else found * 0, None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx, tensor, dst, op, group):
        ctx.dst, ctx.op, ctx.group = dst, op, group
        result = tensor.detach().clone()
        collectives.reduce(result, op=op, group=group, group_dst=dst)
        return result

    @staticmethod
    def backward(ctx, grad):
        _check_linear(ctx.op, "reduce")
        found = _Broadcast.apply(grad, ctx.dst, ctx.group)
        return found / ctx.group.size() if kind_of(ctx.op) is RedOpType.AVG else found, None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, tensor, op, group):
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        _check_linear(ctx.op, "all_reduce")
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        whole = tensor.new_empty((group.size(), *tensor.shape))
        single_tensors.all_gather_into_tensor(whole, tensor.detach(), group)
        return tuple(part.clone() for part in whole)

    @staticmethod
    def backward(ctx, *grads):
        mine = grads[ctx.group.rank()]
        return _ReduceScatter.apply(mine, ReduceOp.SUM, ctx.group, *grads), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, output, op, group, *tensors):
        ctx.op, ctx.group = op, group
        result = output.detach().new_empty(output.shape)
        gathers.reduce_scatter(result, [tensor.detach() for tensor in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        _check_linear(ctx.op, "reduce_scatter")
        found = _AllGather.apply(grad, ctx.group)
        if kind_of(ctx.op) is RedOpType.AVG:
            found = tuple(each / ctx.group.size() for each in found)
        return None, None, None, *found


class _Gather(Function):
    @staticmethod
    def forward(ctx, tensor, dst, group):
        ctx.dst, ctx.group = dst, group
        places = tuple(tensor.detach().new_zeros(tensor.shape) for _ in range(group.size()))
        gathers.gather(tensor.detach(), places if group.rank() == dst else None, group=group, group_dst=dst)
        return places

    @staticmethod
    def backward(ctx, *grads):
        return _Scatter.apply(ctx.dst, ctx.group, *grads), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        result = tensors[0].detach().new_empty(tensors[0].shape)
        given = [tensor.detach() for tensor in tensors] if group.rank() == src else None
        gathers.scatter(result, given, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(grad, ctx.src, ctx.group)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, shapes, *tensors):
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        places = tuple(tensors[0].detach().new_empty(tuple(shape)) for shape in shapes)
        gathers.all_to_all(places, [tensor.detach() for tensor in tensors], group)
        return places

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, shape, output_sizes, input_sizes, tensor):
        ctx.group, ctx.shape, ctx.sizes = group, tensor.shape, (input_sizes, output_sizes)
        result = tensor.detach().new_empty(tuple(shape))
        single_tensors.all_to_all_single(result, tensor.detach(), output_sizes, input_sizes, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.shape, *ctx.sizes, grad)
