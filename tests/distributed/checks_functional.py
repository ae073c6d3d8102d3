"""Functional collectives and collectives with gradients on two ranks, eager and compiled."""

from __future__ import annotations

import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as with_gradients


def main(torch, dist) -> None:
    check_functions(torch, dist)
    check_compiled(torch, dist)
    check_gradients(torch, dist)


def check_functions(torch, dist) -> None:
    rank, everyone = dist.get_rank(), dist.group.WORLD
    x = torch.arange(4.0).reshape(2, 2) + rank
    assert funcol.all_reduce(x, "sum", everyone).tolist() == [[1, 3], [5, 7]]
    assert x.tolist() == [[rank, 1 + rank], [2 + rank, 3 + rank]]
    assert funcol.all_gather_tensor(x, 1, everyone).tolist() == [[0, 1, 1, 2], [2, 3, 3, 4]]
    assert funcol.reduce_scatter_tensor(x, "avg", 1, everyone).tolist() == [[0.5 + rank], [2.5 + rank]]
    assert funcol.all_to_all_single(x, None, None, everyone).tolist() == [[2 * rank, 1 + 2 * rank], [1 + 2 * rank, 2 + 2 * rank]]
    assert funcol.broadcast(x, 1, everyone).tolist() == [[1, 2], [3, 4]]
    assert funcol.permute_tensor(x, [1, 0], everyone).tolist() == (torch.arange(4.0).reshape(2, 2) + 1 - rank).tolist()
    assert [each.tolist() for each in funcol.all_reduce_coalesced([x[0], x[1]], "max", everyone)] == [[1, 2], [3, 4]]
    assert torch.ops._c10d_functional.wait_tensor(x) is not x


def check_compiled(torch, dist) -> None:
    """A compiled function holds the collectives as operators; values and gradients are those of eager."""
    everyone = dist.group.WORLD

    def step(x, weight):
        y = funcol.all_reduce((x @ weight).relu(), "sum", everyone)
        z = funcol.reduce_scatter_tensor(funcol.all_gather_tensor(y, 0, everyone).exp(), "avg", 0, everyone)
        return (z * 2).sum() + y.sum()

    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(4, 4) * (dist.get_rank() + 1) / 4
    compiled = torch.compile(step, fullgraph=True)
    for _ in range(2):
        losses = [function(x, weight) for function in (step, compiled)]
        grads = [torch.autograd.grad(loss, weight)[0] for loss in losses]
        torch.testing.assert_close(losses[0], losses[1])
        torch.testing.assert_close(grads[0], grads[1])


def check_gradients(torch, dist) -> None:
    rank = dist.get_rank()

    def gradient(function) -> list:
        x = torch.full((2,), rank + 1.0, requires_grad=True)
        loss = sum((index + 1) * (part * part).sum() for index, part in enumerate(function(x)))
        return torch.autograd.grad(loss, x)[0].tolist()

    mine = rank + 1.0
    assert gradient(lambda x: [with_gradients.all_reduce(x)]) == [12, 12]
    assert gradient(lambda x: [with_gradients.broadcast(x, 0)]) == ([4, 4] if rank == 0 else [0, 0])
    assert gradient(lambda x: [with_gradients.reduce(x, 1)])[0] == 2 * 3
    assert gradient(with_gradients.all_gather) == [2 * 2 * (rank + 1) * mine] * 2
    assert gradient(lambda x: with_gradients.gather(x, 0)) == [2 * (rank + 1) * mine] * 2
    assert gradient(lambda x: [with_gradients.scatter([x, 2 * x], 0)]) == ([2 + 2 * 2 * 2, 10] if rank == 0 else [0, 0])
    assert gradient(lambda x: [with_gradients.reduce_scatter(x[:1], [x[:1], x[1:]])]) == [6, 6]
    sent = gradient(lambda x: with_gradients.all_to_all([x[:1], x[1:]], [x[:1], x[1:]]))
    assert sent == [2 * (rank + 1) * mine] * 2
    x = torch.full((2,), mine, requires_grad=True)
    with_gradients.all_to_all_single(torch.empty(2), x).square().sum().backward()
    assert x.grad.tolist() == [2 * mine] * 2
