"""Operators on distributed tensors against the same on whole tensors, for `run_module.py`: the greatest differences, by name."""

from __future__ import annotations

import io
import itertools

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import local_map
from torch.distributed.tensor.parallel import loss_parallel


def main(torch, dist) -> dict:
    """Return the differences, and what was refused."""
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    found = {}
    for name, (function, shapes) in _operators(torch).items():
        found |= {f"{name} {case}": error for case, error in _all_placements(torch, mesh, function, shapes)}
    found |= _losses(torch, mesh) | _random(torch, mesh) | _parts(torch, mesh) | _saved(torch, mesh)
    return found | _moves(torch, mesh) | _refusals(torch, mesh) | (_two_dimensions(torch) if mesh.size() == 4 else {})


def _operators(torch) -> dict:
    F = torch.nn.functional
    indices = torch.tensor([[1, 4, 0], [3, 3, 5]])
    return {
        "linear": (lambda x, w, b: F.linear(x, w, b), [(2, 5, 6), (8, 6), (8,)]),
        "mm": (lambda a, b: a @ b, [(5, 6), (6, 4)]),
        "bmm": (lambda a, b: torch.bmm(a, b), [(4, 5, 6), (4, 6, 3)]),
        "add broadcast": (lambda a, b: a + b * 2, [(4, 6), (6,)]),
        "pointwise": (lambda a, b: torch.where(a > 0, a.tanh(), b.sigmoid() / 3) - a.exp(), [(5, 4), (5, 4)]),
        "gelu": (lambda a: F.gelu(a) + F.silu(a) + F.relu(a), [(5, 4)]),
        "layer_norm": (lambda a, w, b: F.layer_norm(a, (6,), w, b), [(4, 5, 6), (6,), (6,)]),
        "softmax": (lambda a: a.softmax(-1) + a.log_softmax(0), [(4, 6)]),
        "sum": (lambda a: a.sum() + a.sum(0) + a.mean(1, keepdim=True).sum(), [(4, 6)]),
        "mean": (lambda a: a.mean() * a.mean((0, 2)), [(4, 6, 2)]),
        "max": (lambda a: a.amax(0) + a.amin(), [(4, 6)]),
        "norm": (lambda a: torch.linalg.vector_norm(a) + torch.linalg.vector_norm(a, dim=1), [(5, 6)]),
        "shapes": (lambda a: a.view(4, 2, 3).transpose(0, 1).reshape(2, 12).unsqueeze(0).permute(2, 0, 1), [(4, 6)]),
        "split": (lambda a: torch.cat([part * 2 for part in a.chunk(3, -1)], 0), [(4, 6)]),
        "select": (lambda a: a[1] + a[:, 2:4].sum() + torch.stack([a[0], a[2]]).sum(0), [(4, 6)]),
        "expand": (lambda a: a.unsqueeze(1).expand(4, 3, 6).contiguous().sum(1), [(4, 6)]),
        "attention": (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 4, 5, 6)] * 3
        ),
        "embedding": (lambda w: F.embedding(_like(w, indices), w), [(6, 4)]),
        "index": (lambda a: a[_like(a, indices[0])] * 2 + a[:, _like(a, indices[0] % 3)].sum(), [(6, 4)]),
        "median": (lambda a: a.median(), [(6, 4)]),
        "order": (lambda a: a.topk(2, 1)[0] + a.sort(0)[0][:, :2], [(6, 4)]),
        "gather": (lambda a: a.gather(1, _like(a, indices % 3)).sum(1), [(6, 4)]),
        "one element": (lambda a: a + torch.tensor([2.0]), [(6, 4)]),
        "inverse": (lambda a: torch.linalg.inv(a * 0.1 + _like(a, torch.eye(4))), [(4, 4)]),
        "cross_entropy": (lambda a: F.cross_entropy(a, _like(a, indices.view(-1))), [(6, 7)]),
    }  # fmt: skip


def _like(other, values):
    """Return values as a replicated tensor where the other one is distributed."""
    if not isinstance(other, DTensor):
        return values
    return distribute_tensor(values, other.device_mesh, [Replicate()] * other.device_mesh.ndim)


def _values(torch, shape, number: int):
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(0, 9, count).add(number).sin().view(shape)


def _all_placements(torch, mesh, function, shapes):
    """Yield the greatest difference of results and gradients for each placement of the inputs."""
    wholes = [_values(torch, shape, number).requires_grad_() for number, shape in enumerate(shapes)]
    expected = function(*wholes)
    weights = _values(torch, expected.shape, 7)
    (expected * weights).sum().backward()
    choices = [[Replicate(), *(Shard(dim) for dim in range(len(shape)))] for shape in shapes]
    # Some of the combinations suffice, of several inputs, and of four ranks, on which parts are shorter or empty.
    stride = {1: 1, 2: 2}.get(len(shapes), 5) * (1 if mesh.size() == 2 else 3)
    for placements in itertools.islice(itertools.product(*choices), 0, None, stride):
        inputs = [
            distribute_tensor(whole.detach(), mesh, [placement]).requires_grad_()
            for whole, placement in zip(wholes, placements, strict=True)
        ]
        result = function(*inputs)
        (result * _like(result, weights)).sum().backward()
        errors = [_difference(result.full_tensor(), expected)]
        errors += [_difference(each.grad.full_tensor(), whole.grad) for each, whole in zip(inputs, wholes, strict=True)]
        yield str(placements), max(errors)


def _difference(a, b) -> float:
    assert a.shape == b.shape, (a.shape, b.shape)
    return (a.detach() - b.detach()).abs().max().item()


def _losses(torch, mesh) -> dict:
    """Cross entropy of logits that are cut along the classes: only sums and maxima travel."""
    F, found = torch.nn.functional, {}
    whole, target = _values(torch, (6, 7), 1), torch.tensor([0, 6, -100, 3, 3, 5])
    for reduction, weight in itertools.product(("mean", "sum", "none"), (None, _values(torch, (7,), 2).abs())):
        logits = whole.clone().requires_grad_()
        expected = F.cross_entropy(logits, target, weight, reduction=reduction)
        expected.sum().backward()
        parts = distribute_tensor(whole, mesh, [Shard(1)]).requires_grad_()
        with loss_parallel(), CommDebugMode() as comms:
            loss = F.cross_entropy(
                parts, target if weight is None else _like(parts, target), weight, reduction=reduction
            )
            loss.sum().backward()
        name = f"loss {reduction} {'weighted' if weight is not None else ''}"
        found[name] = max(_difference(loss.full_tensor(), expected), _difference(parts.grad.full_tensor(), logits.grad))
        found[f"{name} travels"] = float(torch.ops.c10d_functional.all_gather_into_tensor in comms.get_comm_counts())
    return found


def _random(torch, mesh) -> dict:
    """Ranks whose generators differ have equal replicated tensors, and different parts."""
    torch.manual_seed(mesh.get_local_rank())
    replicated = torch.rand_like(distribute_tensor(torch.ones(3, 3), mesh, [Replicate()])).to_local()
    first = distribute_tensor(replicated, mesh, [Replicate()]).to_local()
    ones = distribute_tensor(torch.ones(mesh.size(), 64), mesh, [Shard(0)])
    dropped = torch.nn.functional.dropout(ones, 0.5).full_tensor()
    return {
        "random replicated": _difference(replicated, first),
        "random parts": float(torch.equal(dropped[0], dropped[1])),
        "random share": float(not 0.3 < (dropped == 0).float().mean() < 0.7),
    }


def _parts(torch, mesh) -> dict:
    """Functions of parts, and tensors on some of the ranks."""
    a, b = _values(torch, (4, 6), 0), _values(torch, (6, 3), 1)
    product = local_map(lambda x, y: x @ y, [Partial()], ([Shard(1)], [Shard(0)]))
    columns, rows = distribute_tensor(a, mesh, [Shard(1)]), distribute_tensor(b, mesh, [Shard(0)])
    pair = DeviceMesh("cpu", [0, mesh.size() - 1])
    some = DTensor.from_local(torch.ones(3, 4), pair, [Shard(0)]) + 2
    mine = some.to_local()
    expected = torch.full((3, 4), 3.0) if pair.get_coordinate() else torch.zeros(0)
    with mesh:
        inside = distribute_tensor(a, placements=[Shard(0)])
    return {
        "local_map": _difference(product(columns, rows).full_tensor(), a @ b),
        "local_map refuses": _message(lambda: product(inside, rows), ValueError, "mismatched placements"),
        "some ranks": _difference(mine, expected) if mine.numel() else float(mine.shape != expected.shape),
        "mesh of a context": _difference(inside.full_tensor(), a),
    }


def _saved(torch, mesh) -> dict:
    whole, file = _values(torch, (4, 6), 0), io.BytesIO()
    torch.save(distribute_tensor(whole, mesh, [Shard(0)]), file)
    file.seek(0)
    return {"saved": _difference(torch.load(file, weights_only=True).full_tensor(), whole)}


def _moves(torch, mesh) -> dict:
    """All changes of placement, for lengths that do not divide, and gradients of local parts."""
    found = {}
    rank, ranks = mesh.get_local_rank(), mesh.size()
    for shape in ((4, 6), (5, 7), (1, 3)):
        whole = _values(torch, shape, 0)
        for before, after in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2):
            tensor = distribute_tensor(whole, mesh, [before]).redistribute(placements=[after])
            found[f"{shape} {before} to {after}"] = _difference(tensor.full_tensor(), whole)
        for after in (Replicate(), Shard(0), Shard(1)):
            part = (whole * (rank + 1)).requires_grad_()
            tensor = DTensor.from_local(part, mesh, [Partial()]).redistribute(placements=[after])
            total = sum(range(1, ranks + 1))
            found[f"{shape} partial to {after}"] = _difference(tensor.full_tensor(), whole * total)
            (tensor.full_tensor() * whole).sum().backward()
            found[f"{shape} partial to {after} gradient"] = _difference(part.grad, whole)
    return found


def _refusals(torch, mesh) -> dict:
    rows = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    return {
        "mixed": _message(lambda: rows + torch.ones(4, 4), RuntimeError, "got mixed torch.Tensor and DTensor"),
        "no rule": _message(lambda: torch.fft.fft(rows), NotImplementedError, "no rule for distributed tensors"),
        "partial": _message(lambda: rows.redistribute(placements=[Partial()]), RuntimeError, "Can not redistribute to Partial"),
    }


def _message(call, kind, text: str) -> float:
    """Return 0 where a call raises an error with a text, else 1."""
    try:
        call()
    except kind as error:
        return 0.0 if text in str(error) else 1.0
    return 1.0


def _two_dimensions(torch) -> dict:
    """A mesh of two dimensions that cut the same or different dimensions of a tensor."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    whole, found = _values(torch, (6, 5), 0), {}
    every = list(itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2))
    for before, after in itertools.product(every, repeat=2):
        tensor = distribute_tensor(whole, mesh, before).redistribute(placements=after)
        found[f"2-D {before} to {after}"] = _difference(tensor.full_tensor(), whole)
    return found
