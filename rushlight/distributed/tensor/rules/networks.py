"""Rules of the operators of networks: embeddings, softmax, layer norm, attention, losses."""

from __future__ import annotations

from rushlight.core.strides import wrap_dim
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.distributed.tensor.rules.strategies import Call, P, R, Strategy, everywhere, rule, same, shards


@rule("embedding")
def embedding(call: Call) -> list[Strategy]:
    """Rows of a table (n, width) by indices; a table that is cut along its rows gives partial results (see `dispatch`)."""
    indices = call.specs[1].shape
    return [
        everywhere(call), Strategy((Shard(1), R), (Shard(len(indices)),)), Strategy((Shard(0), R), (P,)),
        *(Strategy((R, cut), (cut,)) for cut in shards(len(indices))),
    ]  # fmt: skip


@rule("embedding_dense_backward")
def embedding_backward(call: Call) -> list[Strategy]:
    """The gradient of the table: gradients of rows added up."""
    indices = call.specs[1].shape
    return [
        everywhere(call), Strategy((Shard(len(indices)), R), (Shard(1),)), Strategy((P, R), (P,)),
        *(Strategy((cut, cut), (P,)) for cut in shards(len(indices))),
    ]  # fmt: skip


@rule("_softmax", "_log_softmax")
def softmax(call: Call) -> list[Strategy]:
    """Whole along the dimension of the softmax, which losses can have cut."""
    return _of_softmax(call, 1)


def _of_softmax(call: Call, place: int) -> list[Strategy]:
    ndim = len(call.specs[0].shape)
    may_be_cut = call.cuts_classes and "log" in call.op._opname
    whole = [] if may_be_cut else [wrap_dim(call.argument(place), ndim)]
    return [everywhere(call), *(same(call, cut) for cut in shards(ndim, whole))]


@rule("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(call: Call) -> list[Strategy]:
    """Whole along the dimension of the softmax, which losses can have cut."""
    return _of_softmax(call, 2)


@rule("native_layer_norm")
def layer_norm(call: Call) -> list[Strategy]:
    """Whole along the dimensions that are normalized; weight and bias whole."""
    outer = len(call.specs[0].shape) - len(call.argument(1))
    rest = (R,) * (len(call.specs) - 1)
    return [everywhere(call), *(Strategy((cut, *rest), (cut,) * 3) for cut in shards(outer))]


@rule("native_layer_norm_backward")
def layer_norm_backward(call: Call) -> list[Strategy]:
    """Gradients of weight and bias are sums over what is cut."""
    outer = len(call.specs[0].shape) - len(call.argument(2))
    rest = (R,) * (len(call.specs) - 4)
    return [everywhere(call), *(Strategy((cut,) * 4 + rest, (cut, P, P)) for cut in shards(outer))]


@rule(
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
)  # fmt: skip
def attention(call: Call) -> list[Strategy]:
    """Each rank has some of the sequences, or of the heads; a mask is whole."""
    masks = [len(spec.shape) < 3 for spec in call.specs]
    return [everywhere(call)] + [
        Strategy(tuple(R if mask else cut for mask in masks), (cut,) * len(call.outputs)) for cut in (Shard(0), Shard(1))
    ]


@rule("nll_loss_forward")
def nll_loss(call: Call) -> list[Strategy]:
    """Losses of each sample; sums of them; averages only of whole batches, because samples may be ignored."""
    reduction = call.argument(3, 1)
    found = [everywhere(call)]
    if reduction != 1 and len(call.specs[0].shape) == 2:
        rest = (R,) * (len(call.specs) - 2)
        found.append(Strategy((Shard(0), Shard(0), *rest), (P, P) if reduction == 2 else (Shard(0), R)))
    if call.cuts_classes:
        found.append(Strategy((Shard(len(call.specs[0].shape) - 1), *(R for _ in call.specs[1:])), (R, R)))
    return found


@rule("nll_loss_backward")
def nll_loss_backward(call: Call) -> list[Strategy]:
    """Each sample's gradient."""
    found = [everywhere(call)]
    if len(call.specs[1].shape) == 2:
        per_sample = bool(call.specs[0].shape)
        rest = (R,) * (len(call.specs) - 3)
        found.append(Strategy((Shard(0) if per_sample else R, Shard(0), Shard(0), *rest), (Shard(0),)))
    if call.cuts_classes:
        classes = Shard(len(call.specs[1].shape) - 1)
        found.append(Strategy((R, classes, *(R for _ in call.specs[2:])), (classes,)))
    return found
