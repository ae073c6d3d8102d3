"""Steps of a small GPT in each way of training, for `run_module.py`: losses by name, and checkpoints in the folder CHECKPOINT.

With two ranks the sharded run is saved after some steps; with another number it is loaded, and goes on.
"""

from __future__ import annotations

import functools
import os

import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from examples.distributed.gpt import GPT, Batches, loss_of

STEPS, SAVED_AFTER = 4, 2


def main(torch, dist) -> dict:
    """Return the losses of each way."""
    torch.set_num_threads(1)
    if dist.get_world_size() != 2:
        mesh = init_device_mesh("cpu", (2, 2))
        return {"continued": _continued(torch, dist), "copies of parts": _losses(torch, dist, _sharded(torch, mesh=mesh))}
    found = {"one process": _losses(torch, dist, _model(torch), parts=False)}
    found["data"] = _losses(torch, dist, torch.nn.parallel.DistributedDataParallel(_model(torch)))
    found["sharded"] = _losses(torch, dist, _sharded(torch), save=checkpoint.save)
    found["kept whole"] = _losses(torch, dist, _sharded(torch, reshard_after_forward=False))
    found["freed always"] = _losses(torch, dist, _sharded(torch, reshard_after_forward=True), save=checkpoint.async_save)
    found["one group"] = _losses(torch, dist, _listed(torch))
    found["other dimension"] = _losses(torch, dist, _sharded(torch, shard_placement_fn=_longest))
    found["from the meta device"] = _losses(torch, dist, _without_memory(torch))
    found["16-bit"] = _losses(torch, dist, _sharded(torch, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)))
    found["tensor"] = _losses(torch, dist, _tensor_parallel(torch), parts=False, clips=False)
    found["sequence"] = _losses(torch, dist, _sequence_parallel(torch), parts=False)
    found["after failures"] = _after_failures(torch, dist)
    found["accumulated"] = _accumulated(torch, dist, "set_requires_gradient_sync")
    found["accumulated, put off"] = _accumulated(torch, dist, "set_is_last_backward")
    found["one process, not clipped"] = _losses(torch, dist, _model(torch), parts=False, clips=False)
    return found


@functools.cache
def _batches() -> Batches:
    return Batches()


def _model(torch):
    torch.manual_seed(0)
    return GPT(len(_batches().alphabet), width=32, heads=4, layers=2)


def _optimizer(torch, model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def _losses(torch, dist, model, parts: bool = True, clips: bool = True, save=None, optimizer=None) -> list[float]:
    optimizer = optimizer or _optimizer(torch, model)
    losses, pending = [], None
    for step in range(STEPS):
        losses.append(_step(torch, dist, model, optimizer, step, parts, clips))
        if save is not None and step + 1 == SAVED_AFTER:
            model_state, optimizer_state = get_state_dict(model, optimizer)
            state = {"model": model_state, "optimizer": optimizer_state, "step": step + 1}
            pending = save(state, checkpoint_id=os.environ["CHECKPOINT"])
    if save is checkpoint.async_save:
        pending.result()
    return losses


def _step(torch, dist, model, optimizer, step: int, parts: bool = True, clips: bool = True) -> float:
    """Make a step; return the mean loss of all ranks."""
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if parts else (0, 1)
    optimizer.zero_grad()
    loss = loss_of(model, *_batches().part(step, rank, ranks))
    loss.backward()
    if clips:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    mean = loss.detach().float() / ranks
    if parts:
        dist.all_reduce(mean)
    return mean.item()


def _sharded(torch, **options):
    model = _model(torch)
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def _listed(torch, reshard=1):
    model = _model(torch)
    fully_shard([*model.blocks], reshard_after_forward=reshard)
    return fully_shard(model)


def _longest(parameter):
    """Cut the longest dimension where that has equal parts."""
    dim = max(range(parameter.dim()), key=lambda dim: parameter.shape[dim])
    return None if parameter.shape[dim] % 2 else Shard(dim)


def _without_memory(torch):
    """Shard a model that has no memory, then give it some, and values."""
    with torch.device("meta"):
        model = _sharded(torch)
    model.to_empty(device="cpu")
    for parameter, value in zip(model.parameters(), _model(torch).parameters(), strict=True):
        with torch.no_grad():
            parameter.copy_(distribute_tensor(value.detach(), parameter.device_mesh, parameter.placements))
    return model


def _accumulated(torch, dist, setting: str) -> float:
    """Return the greatest difference of gradients that two half batches added up to, with a setting False for the first."""
    reference, model = _model(torch), _sharded(torch)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step, is_last in ((0, False), (1, True)):
        getattr(model, setting)(is_last)
        loss_of(model, *_batches().part(step, rank, ranks)).backward()
        loss_of(reference, *_batches().part(step, 0, 1)).backward()
    pairs = zip(model.parameters(), reference.parameters(), strict=True)
    return max((a.grad.full_tensor() - b.grad).abs().max().item() for a, b in pairs)


def _after_failures(torch, dist) -> list[float]:
    """Train after forward passes that raised, in the first block of a group and in its second."""
    model = _listed(torch, reshard=True)
    optimizer = _optimizer(torch, model)
    for block in model.blocks:
        attention, block.attention = block.attention, None
        try:
            loss_of(model, *_batches().part(0, 0, 1))
        except TypeError:
            block.attention = attention
    return _losses(torch, dist, model, optimizer=optimizer)


def _tensor_parallel(torch):
    plan = {
        "letters": RowwiseParallel(input_layouts=Replicate()), "positions": ColwiseParallel(output_layouts=Replicate()),
        "blocks.*.attention.query": ColwiseParallel(), "blocks.*.attention.key": ColwiseParallel(),
        "blocks.*.attention.value": ColwiseParallel(), "blocks.*.attention.output": RowwiseParallel(),
        "blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }  # fmt: skip
    return parallelize_module(_model(torch), init_device_mesh("cpu", (2,)), plan)


def _sequence_parallel(torch):
    whole, cut = Replicate(), Shard(1)
    plan = {
        "letters": RowwiseParallel(input_layouts=whole, output_layouts=cut),
        "positions": RowwiseParallel(input_layouts=whole, output_layouts=Shard(0)),
        "blocks.*.before_attention": SequenceParallel(), "blocks.*.before_network": SequenceParallel(),
        "blocks.*.attention": PrepareModuleInput(input_layouts=cut, desired_input_layouts=whole),
        "blocks.*.attention.query": ColwiseParallel(), "blocks.*.attention.key": ColwiseParallel(),
        "blocks.*.attention.value": ColwiseParallel(),
        "blocks.*.attention.output": RowwiseParallel(output_layouts=cut),
        "blocks.*.up": ColwiseParallel(input_layouts=cut), "blocks.*.down": RowwiseParallel(output_layouts=cut),
        "norm": SequenceParallel(), "head": ColwiseParallel(input_layouts=cut, output_layouts=whole),
    }  # fmt: skip
    return parallelize_module(_model(torch), init_device_mesh("cpu", (2,)), plan)


def _continued(torch, dist) -> list[float]:
    """Go on from the checkpoint with this number of ranks; the state of all ranks is that of one process that loads it."""
    model = _sharded(torch)
    optimizer = _optimizer(torch, model)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state, "step": 0}
    checkpoint.load(state, checkpoint_id=os.environ["CHECKPOINT"])
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    alone = {"model": _model(torch).state_dict()}
    checkpoint.load(alone, checkpoint_id=os.environ["CHECKPOINT"], no_dist=True)
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert all(torch.equal(whole[name], value) for name, value in alone["model"].items())
    return [_step(torch, dist, model, optimizer, step) for step in range(state["step"], STEPS)]
