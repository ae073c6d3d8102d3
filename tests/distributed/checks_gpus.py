"""Tensors on GPUs in collectives, wrapped modules and meshes, on two ranks with the device's stand-in; assertions run on each."""

from __future__ import annotations

import copy

from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel


def main(torch, dist) -> None:
    torch.set_num_threads(1)
    place = torch.device("cuda", dist.get_rank())
    check_names(torch, dist)
    check_collectives(torch, dist, place)
    check_training(torch, dist, place)
    check_refusals(torch, place)
    check_meshes(torch, dist)
    check_sharded(torch, dist, place)


def check_names(torch, dist) -> None:
    assert dist.is_nccl_available() and dist.is_backend_available("nccl")
    assert dist.get_default_backend_for_device("cuda") == "mpi"


def check_collectives(torch, dist, place) -> None:
    rank = dist.get_rank()
    x = torch.full((3, 4), float(rank + 1), device=place)
    dist.all_reduce(x)
    assert x.device == place and x.tolist() == [[3.0] * 4] * 3
    columns = torch.arange(12.0, device=place).view(3, 4).t()
    work = dist.broadcast(columns.mul_(rank + 1), 1, async_op=True)
    work.wait()
    assert columns[1].tolist() == [2.0, 10.0, 18.0]
    parts = [torch.empty(2, dtype=torch.int64, device=place) for _ in range(2)]
    dist.all_gather(parts, torch.full((2,), rank, device=place))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1]] and parts[0].device == place
    half = torch.empty(2, device=place, dtype=torch.bfloat16)
    dist.reduce_scatter_tensor(half, torch.arange(4, device=place).bfloat16())
    assert half.tolist() == [[0.0, 2.0], [4.0, 6.0]][rank]
    if rank:
        dist.send(x, 0)
    else:
        dist.recv(x.zero_(), 1)
    assert x.sum().item() == 36
    total = functional.all_reduce(torch.ones(3, device=place), "sum", dist.group.WORLD)
    assert functional.wait_tensor(total).tolist() == [2.0] * 3 and total.device == place


def check_training(torch, dist, place) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    x = torch.randn(2, 8, 6)[dist.get_rank()]
    for options in ({}, {"device_ids": [place.index]}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001}):
        found = []
        for where in ("cpu", place):
            module = copy.deepcopy(plain).to(where)
            model = DistributedDataParallel(module, **({} if where == "cpu" else options))
            for _ in range(2):
                model.zero_grad()
                model(x if options.get("device_ids") else x.to(where)).square().sum().backward()
            found.append([parameter.grad.cpu() for parameter in model.parameters()])
            assert all(parameter.grad.device == parameter.device for parameter in model.parameters())
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


def check_refusals(torch, place) -> None:
    module = torch.nn.Linear(2, 2)
    for model, options in ((module, {"device_ids": [0]}), (copy.deepcopy(module).to(place), {"device_ids": [0, 1]}),
                           (copy.deepcopy(module).to(place), {"output_device": 1 - place.index})):  # fmt: skip
        try:
            DistributedDataParallel(model, **options)
        except ValueError as error:
            assert "device_ids" in str(error)
        else:
            raise AssertionError(options)


def check_meshes(torch, dist) -> None:
    mesh = init_device_mesh("cuda", (2,))
    assert torch.cuda.current_device() == dist.get_rank()
    whole = torch.arange(8.0).view(4, 2)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    assert rows.to_local().device == torch.device("cuda", dist.get_rank()) and rows.to_local().shape == (2, 2)
    assert torch.equal(rows.redistribute(placements=[Replicate()]).to_local().cpu(), whole)
    assert torch.equal((rows * 2).full_tensor().cpu(), whole * 2)


def check_sharded(torch, dist, place) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    x, model = torch.randn(4, 6), copy.deepcopy(plain)
    for layer in model:
        fully_shard(layer) if isinstance(layer, torch.nn.Linear) else None
    fully_shard(model)
    assert all(parameter.to_local().device == place for parameter in model.parameters())
    for _ in range(2):
        for module in (plain, model):
            module.zero_grad()
            module(x).square().sum().backward()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.full_tensor().cpu(), theirs.grad, rtol=1e-4, atol=1e-5)
