"""Groups, ranks, meshes, messages and objects on four ranks; assertions run on each."""

from __future__ import annotations

import warnings
from datetime import timedelta


def main(torch, dist) -> None:
    assert dist.is_initialized() and dist.get_backend() == "gloo" and dist.get_world_size() == 4
    check_groups(torch, dist)
    check_meshes(torch, dist)
    check_messages(torch, dist)
    check_several_at_once(torch, dist)
    check_objects(dist)
    check_refusals(torch, dist)
    check_store(dist)
    check_premultiplied(torch, dist)
    check_inference_mode(torch, dist)
    check_barrier_waits(torch, dist)
    check_barrier_does_not_wait_for_messages(torch, dist)
    check_methods(torch, dist)
    check_sparse(torch, dist)
    check_method_refusals(torch, dist)


def check_groups(torch, dist) -> None:
    rank = dist.get_rank()
    odd = dist.new_group([3, 1])
    if rank in (1, 3):
        assert dist.get_process_group_ranks(odd) == [1, 3] and dist.get_rank(odd) == rank // 2
        assert dist.get_group_rank(odd, 3) == 1 and dist.get_global_rank(odd, 0) == 1
        x = torch.full((2,), float(rank))
        dist.broadcast(x, 3, odd)
        assert x.tolist() == [3, 3]
    else:
        assert odd == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(odd) == -1
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert dist.all_reduce(torch.ones(1), group=odd) is None
        assert "does not belong" in str(found[0].message)
    mine, every = dist.new_subgroups(2)
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    assert x.item() == (1 if rank < 2 else 5) and len(every) == 2
    if rank in (0, 2):
        local = dist.new_group([0, 2], use_local_synchronization=True)
        names = [None] * 2
        dist.all_gather_object(names, rank, local)
        assert names == [0, 2]
        dist.destroy_process_group(local)
    else:
        assert dist.new_group([0, 2], use_local_synchronization=True) is None
    assert dist.get_backend(dist.new_group(backend="mpi")) == "mpi" and dist.get_backend(dist.new_group()) == "gloo"
    reversed_ = dist.new_group([2, 0, 3, 1], sort_ranks=False)
    assert dist.get_process_group_ranks(reversed_) == [2, 0, 3, 1] and dist.get_rank(reversed_) == [1, 3, 0, 2][rank]


def check_meshes(torch, dist) -> None:
    rank = dist.get_rank()
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    assert mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.get_coordinate() == [rank // 2, rank % 2]
    assert mesh["columns"].get_group() is mesh.get_group("columns") and mesh.get_local_rank("rows") == rank // 2
    assert dist.get_process_group_ranks(mesh.get_group(0)) == [rank % 2, rank % 2 + 2]
    assert mesh["columns"].mesh.tolist() == [rank // 2 * 2, rank // 2 * 2 + 1]
    flat = mesh._flatten("all")
    assert flat.size() == 4 and mesh["all"] is flat
    x = torch.ones(1)
    dist.all_reduce(x, group=mesh.get_group("rows"))
    assert x.item() == 2


def check_messages(torch, dist) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    received = torch.zeros(3, 2).t()
    works = [dist.isend(torch.full((2, 3), float(rank)), after, tag=7), dist.irecv(received, before, tag=7)]
    assert all(work.wait() for work in works) and (received == before).all() and works[1].source_rank() == before
    if rank == 0:
        x = torch.zeros(1)
        assert sorted(dist.recv(x, tag=5) for _ in range(3)) == [1, 2, 3]
    else:
        dist.send(torch.ones(1), 0, tag=5)
    batch = [dist.P2POp(dist.isend, torch.tensor([rank]), after), dist.P2POp(dist.irecv, y := torch.tensor([9]), before)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert y.item() == before
    future = dist.all_reduce(z := torch.ones(2), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    assert future.wait().tolist() == [8, 8] and z.tolist() == [4, 4]


def check_several_at_once(torch, dist) -> None:
    """Operations that begin in one order may end in another."""
    rank = dist.get_rank()
    many = [torch.full((size,), rank + 1.0, dtype=kind) for size in (3, 200_000) for kind in (torch.bfloat16, torch.float32)]
    single = torch.tensor([rank])
    works = [dist.all_reduce_coalesced(many, async_op=True), dist.all_reduce(single, async_op=True), dist.barrier(async_op=True)]
    for work in reversed(works):
        work.wait()
    assert single.item() == 6 and all((each == 10).all() for each in many)
    gathered = [[torch.zeros(2), torch.zeros(3)] for _ in range(4)]
    dist.all_gather_coalesced(gathered, [torch.full((2,), float(rank)), torch.full((3,), float(rank))])
    assert [pair[0][0].item() + pair[1][2].item() for pair in gathered] == [0, 2, 4, 6]


def check_objects(dist) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    places = [None] * size if rank == 2 else None
    dist.gather_object({"rank": rank}, places, 2)
    assert places is None or places == [{"rank": each} for each in range(size)]
    values = ["a" * rank, rank]
    dist.broadcast_object_list(values, 3)
    assert values == ["aaa", 3]
    out = [None]
    dist.scatter_object_list(out, [list(range(each)) for each in range(size)] if rank == 1 else None, 1)
    assert out == [list(range(rank))]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    if rank == 1:
        pair = [None, None]
        assert dist.recv_object_list(pair, 0) == 0 and pair == [1, "two"]
    dist.barrier()
    dist.monitored_barrier()


def check_refusals(torch, dist) -> None:
    """Wrong calls raise on each rank before anything is sent."""
    rank = dist.get_rank()
    ones = torch.ones(4)
    destroyed = dist.new_group()
    dist.destroy_process_group(destroyed)
    wrong = [
        (ValueError, lambda: dist.send(ones, rank)),
        (ValueError, lambda: dist.send(ones, (rank + 1) % 4, tag=-1)),
        (ValueError, lambda: dist.irecv(ones, (rank + 1) % 4, tag=-1)),
        (ValueError, lambda: dist.all_reduce(ones, group=destroyed)),
        (ValueError, lambda: dist.broadcast(ones, 9)),
        (ValueError, lambda: dist.all_gather([ones], ones)),
        (ValueError, lambda: dist.all_gather_into_tensor(torch.ones(3), ones)),
        (ValueError, lambda: dist.reduce_scatter_tensor(torch.ones(3), ones)),
        (ValueError, lambda: dist.new_group([0, 9])),
        (ValueError, lambda: dist.new_group([0, 0])),
        (ValueError, lambda: dist.init_process_group("mpi")),
        (ValueError, lambda: dist.send_object_list([1], (rank + 1) % 4, use_batch=True)),
        (TypeError, lambda: dist.all_reduce(3)),
        (RuntimeError, lambda: dist.all_reduce(ones, dist.ReduceOp.BAND)),
        (RuntimeError, lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)),
        (RuntimeError, lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3))),
        (RuntimeError, lambda: dist.all_reduce(torch.ones(2, device="meta"))),
    ]
    for kind, call in wrong:
        try:
            call()
        except kind:
            continue
        raise AssertionError(f"no {kind.__name__}")


def check_store(dist) -> None:
    store = dist.distributed_c10d._get_default_store()
    store.set(f"rank{dist.get_rank()}", "here")
    store.wait([f"rank{rank}" for rank in range(4)])
    assert store.get("rank2") == b"here" and store.add("count", 1) >= 1
    dist.barrier()


def check_premultiplied(torch, dist) -> None:
    """Reductions and dtypes that gloo does not have."""
    x = torch.ones(3)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    assert x.tolist() == [2, 2, 2]
    for kind in (torch.int16, torch.uint16, torch.uint32, torch.uint64):
        y = torch.tensor([dist.get_rank(), 3]).to(kind)
        dist.all_reduce(y)
        assert y.to(torch.int64).tolist() == [6, 12]
    z = torch.ones(2).to(torch.float8_e4m3fn) if dist.get_rank() == 0 else torch.zeros(2).to(torch.float8_e4m3fn)
    dist.broadcast(z, 0)
    assert z.float().tolist() == [1, 1]


def check_methods(torch, dist) -> None:
    """What a group's own methods do, with options or in their simple forms."""
    group, rank, size = dist.group.WORLD, dist.get_rank(), dist.get_world_size()
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.MAX
    group.allreduce([x := torch.full((2,), float(rank))], options).wait()
    assert x.tolist() == [3, 3]
    group.allreduce([x, y := torch.ones(2)]).wait()  # two tensors of a rank are added, too
    assert x.tolist() == y.tolist() == [16, 16]
    twice = torch.tensor([rank])
    assert [each.item() for each in group.allreduce_coalesced([twice, twice]).get_future().wait()] == [6, 6]
    group.broadcast([x := torch.tensor([rank]), y := torch.tensor([-1])], _with(dist.BroadcastOptions(), rootRank=2)).wait()
    assert x.item() == y.item() == 2
    group.reduce(x := torch.tensor([rank]), root=1).wait()
    assert x.item() == (6 if rank == 1 else rank)
    parts = [[torch.tensor([-1]) for _ in range(size)]]
    assert [each.item() for each in group.allgather(parts, [torch.tensor([rank])]).get_future().wait()] == [0, 1, 2, 3]
    group.gather([parts[0]] if rank == 3 else [], [torch.tensor([rank + 1])], _with(dist.GatherOptions(), rootRank=3)).wait()
    assert [each.item() for each in parts[0]] == ([1, 2, 3, 4] if rank == 3 else [0, 1, 2, 3])
    group.scatter([x := torch.tensor([-1])], [list(torch.arange(4).split(1))] if rank == 0 else []).wait()
    assert x.item() == rank
    group.reduce_scatter(x := torch.tensor([-1]), list(torch.arange(4).split(1))).wait()
    assert x.item() == rank * size
    group.alltoall_base(x := torch.zeros(4), torch.full((4,), float(rank)), [], []).wait()
    assert x.tolist() == [0, 1, 2, 3]
    group.allgather_into_tensor_coalesced([x := torch.zeros(4), y := torch.zeros(8)], [torch.ones(1), torch.ones(2)]).wait()
    assert x.tolist() == [1] * 4 and y.tolist() == [1] * 8
    group.reduce_scatter_tensor_coalesced([x := torch.zeros(1)], [torch.arange(4.0)]).wait()
    assert x.tolist() == [rank * size]
    group.barrier().wait()


def _with(options, **values):
    for name, value in values.items():
        setattr(options, name, value)
    return options


def check_sparse(torch, dist) -> None:
    """Ranks have elements at different places, and rank 0 has none."""
    rank = dist.get_rank()
    places = torch.tensor([[rank, 4, 4]])[:, : 3 * (rank > 0)]
    mine = torch.sparse_coo_tensor(places, torch.ones(places.shape[1], 2), (6, 2))
    dist.all_reduce(mine)
    assert mine.is_sparse and mine.is_coalesced() and mine.to_dense()[:, 1].tolist() == [0, 1, 1, 1, 6, 0]
    try:
        dist.all_reduce(mine, dist.ReduceOp.MAX)
    except RuntimeError as error:
        assert "unsupported reduction operation" in str(error)
    else:
        raise AssertionError("a maximum of sparse tensors was not refused")


def check_method_refusals(torch, dist) -> None:
    group, one = dist.group.WORLD, torch.zeros(1)
    for text, call in (
        ("invalid root rank", lambda: group.broadcast(one, root=4)),
        ("invalid root tensor", lambda: group.broadcast([one], _with(dist.BroadcastOptions(), rootTensor=1))),
        ("requires non-empty tensor list", lambda: group.allreduce([])),
        ("invalid tensor type", lambda: group.allreduce([one, one.double()])),
        ("invalid tensor size", lambda: group.allreduce([one, torch.zeros(2)])),
        ("invalid output tensor list", lambda: group.allgather([[one] * 3], [one])),
        ("single-element tensor list", lambda: group.reduce([one, one])),
    ):
        try:
            call()
        except RuntimeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"nothing was raised that says {text!r}")


def check_inference_mode(torch, dist) -> None:
    with torch.inference_mode():
        x = torch.full((2,), float(dist.get_rank()))
        parts, turned = [torch.empty(2) for _ in range(4)], torch.ones(3, 2).t()
        works = [dist.all_gather(parts, x, async_op=True), dist.all_reduce(turned, async_op=True)]
    for work in works:
        work.wait()
    assert [part.tolist() for part in parts] == [[float(rank)] * 2 for rank in range(4)] and turned.tolist() == [[4.0] * 3] * 2


def check_barrier_waits(torch, dist) -> None:
    tensors = [torch.full((64, 64), float(number)) for number in range(8)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    assert [tensor[5, 5].item() for tensor in tensors] == [4.0 * number for number in range(8)]


def check_barrier_does_not_wait_for_messages(torch, dist) -> None:
    """A message that is sent after two barriers; the sender's second one needs the receiver's first."""
    rank, found = dist.get_rank(), torch.zeros(1)
    work = dist.irecv(found, 1) if rank == 0 else None
    if work is not None:
        work.get_future()
    for _ in range(2):
        dist.barrier(timeout=timedelta(seconds=30))
    if rank == 1:
        dist.send(torch.ones(1), 0)
    if work is not None:
        work.wait()
        assert found.item() == 1
