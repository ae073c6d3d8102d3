"""Steps of DistributedDataParallel with each option, for `run_module.py`: the gradients and errors of a rank, by name."""

from __future__ import annotations

import copy
import pickle

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join

OPTIONS = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True},
    "unused": {"find_unused_parameters": True},
    "static": {"static_graph": True},
    "small buckets": {"bucket_cap_mb": 0.001},
    "no buffers": {"broadcast_buffers": False},
}


def main(torch, dist) -> dict:
    """Return the values of all cases."""
    torch.set_num_threads(1)
    found = {f"{name} step {number}": step for name, options in OPTIONS.items()
             for number, step in enumerate(_steps(torch, dist, options))}  # fmt: skip
    found |= {f"compiled inside step {number}": step for number, step in enumerate(_steps(torch, dist, {}, inside=True))}
    found |= {f"compiled outside step {number}": step for number, step in enumerate(_steps(torch, dist, {}, outside=True))}
    found |= _unused(torch, dist) | _hooks(torch, dist) | _uneven(torch, dist) | _errors(torch, dist)
    found |= _zero(torch, dist) | _in_graph(torch, dist) | _copies(torch, dist)
    found["sampler"] = [list(torch.utils.data.DistributedSampler(range(11), seed=2))]
    return found


def _wrap(torch, module, **options):
    return torch.nn.parallel.DistributedDataParallel(module, **options)


def _network(torch):
    layers = torch.nn
    return layers.Sequential(
        layers.Linear(6, 20), layers.Tanh(), layers.BatchNorm1d(20), layers.Linear(20, 30), layers.Tanh(), layers.Linear(30, 3)
    )


def _inputs(torch, dist, step: int):
    torch.manual_seed(100 + step)
    return torch.linspace(-1, 1, dist.get_world_size() * 24).sin().mul(step + 2).cos().view(-1, 4, 6)[dist.get_rank()]


def _fill(torch, module, offset: float = 0.0):
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            values = torch.linspace(0, 7, parameter.numel()).add(number + offset).sin().view(parameter.shape)
            parameter.copy_(values * 0.3)
    return module


def _values(tensors) -> list:
    return [None if tensor is None else tensor.detach().float().numpy().copy() for tensor in tensors]


def _may_compile(torch, dist, function, wanted: bool):
    """Return a function compiled, with Rushlight: it must give what PyTorch gives without."""
    return torch.compile(function) if wanted and "rushlight" in dist.__file__ else function


def _steps(torch, dist, options: dict, inside: bool = False, outside: bool = False):
    """Five steps with different parameters on each rank at the beginning, and an accumulated one."""
    module = _fill(torch, _network(torch), offset=dist.get_rank())
    model = _wrap(torch, _may_compile(torch, dist, module, inside), **options)
    call = _may_compile(torch, dist, model, outside)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(5):
        optimizer.zero_grad(set_to_none=step != 3)
        if step == 2 and "static_graph" not in options:
            with model.no_sync():
                call(_inputs(torch, dist, 50)).square().mean().backward()
        call(_inputs(torch, dist, step)).square().mean().backward()
        yield _values(parameter.grad for parameter in model.parameters())
        optimizer.step()
    yield _values(model.state_dict().values())
    yield sorted(name.replace("_orig_mod.", "") for name in model.state_dict())


def _in_graph(torch, dist) -> dict:
    """A model without buffers is one graph with its reductions."""
    layers = torch.nn
    module = layers.Sequential(layers.Linear(6, 20), layers.Tanh(), layers.Linear(20, 3))
    model = _wrap(torch, _fill(torch, module), bucket_cap_mb=0.0001)
    call = torch.compile(model, fullgraph=True) if "rushlight" in dist.__file__ else model
    found = {}
    for step in range(3):
        model.zero_grad()
        if step == 2:
            with model.no_sync():
                call(_inputs(torch, dist, 50)).square().mean().backward()
            found["in graph, not reduced"] = _values(parameter.grad for parameter in model.parameters())
            model.zero_grad()
        call(_inputs(torch, dist, step)).square().mean().backward()
        found[f"in graph {step}"] = _values(parameter.grad for parameter in model.parameters())
    return found


def _branches(torch):
    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = (torch.nn.Linear(6, 3) for _ in range(3))

        def forward(self, x, which):
            return {"out": [self.first(x) if which else self.second(x)]}

    return _fill(torch, Branches())


def _unused(torch, dist) -> dict:
    """Each rank uses another part of the module; one part is used by none."""
    found = {}
    for views in (False, True):
        model = _wrap(torch, _branches(torch), find_unused_parameters=True, gradient_as_bucket_view=views)
        for step in range(3):
            model.zero_grad()
            which = dist.get_rank() == 0 or step == 1
            model(_inputs(torch, dist, step), which)["out"][0].sum().backward()
            found[f"unused {views} step {step}"] = _values(parameter.grad for parameter in model.parameters())
    return found


def _hooks(torch, dist) -> dict:
    hooks = {
        "allreduce": (None, default_hooks.allreduce_hook),
        "half": (None, default_hooks.fp16_compress_hook),
        "brain": (None, _brain_hook(dist)),
        "half wrapper": (None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
        "power": (_power_state(1), powerSGD_hook.powerSGD_hook),
        "full power": (_power_state(40), powerSGD_hook.powerSGD_hook),
        "batched power": (_power_state(2), _batched_hook(dist)),
    }
    found = {}
    for name, (state, hook) in hooks.items():
        # PyTorch's PowerSGD begins its second sums in several threads, which gloo confuses unless there is one bucket.
        options = {} if "power" in name else {"bucket_cap_mb": 0.001}
        model = _wrap(torch, _fill(torch, _network(torch)), **options)
        model.register_comm_hook(state, hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for step in range(8):
            optimizer.zero_grad()
            loss = model(_inputs(torch, dist, step % 2)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if "batched" not in name:
            found[f"hook {name} losses"] = losses
        found[f"hook {name} agree"] = _same_everywhere(torch, dist, model)
    return found


def _brain_hook(dist):
    """Return the hook that sends bfloat16; PyTorch has it on GPUs only, and sends float16 instead."""
    return default_hooks.bf16_compress_hook if "rushlight" in dist.__file__ else default_hooks.fp16_compress_hook


def _batched_hook(dist):
    """Return the batched hook; PyTorch's raises AssertionError on the CPU."""
    return powerSGD_hook.batched_powerSGD_hook if "rushlight" in dist.__file__ else powerSGD_hook.powerSGD_hook


def _power_state(rank: int):
    return powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2, min_compression_rate=0.01)


def _same_everywhere(torch, dist, model) -> bool:
    flat = torch.cat([parameter.detach().view(-1) for parameter in model.parameters()])
    copies = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(copies, flat)
    return all(torch.equal(copy, flat) for copy in copies)


def _uneven(torch, dist) -> dict:
    """Ranks have different numbers of inputs."""
    found = {}
    for divide in (True, False):
        for options in ({}, {"find_unused_parameters": True}):
            model = _wrap(torch, _fill(torch, _network(torch)), **options)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with model.join(divide_by_initial_world_size=divide):
                for step in range(2 + 2 * (dist.get_world_size() - dist.get_rank())):
                    optimizer.zero_grad()
                    model(_inputs(torch, dist, step)).square().mean().backward()
                    optimizer.step()
            found[f"join {divide} {sorted(options)}"] = _values(model.state_dict().values())
    model = _wrap(torch, _fill(torch, _network(torch)))
    try:
        with Join([model], throw_on_early_termination=True):
            for step in range(2 + dist.get_rank()):
                model(_inputs(torch, dist, step)).square().mean().backward()
        found["join throws"] = "nothing"
    except RuntimeError:
        found["join throws"] = "RuntimeError"
    return found


def _zero(torch, dist) -> dict:
    """The optimizer's state is spread over ranks, collected, and given to a new optimizer."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = _wrap(torch, _fill(torch, _network(torch)))
    head, *rest = model.parameters()
    groups = [{"params": [head], "lr": 0.02}, {"params": rest}]
    optimizer = ZeroRedundancyOptimizer(groups, torch.optim.AdamW, lr=0.01)
    found = {}
    for step in range(6):
        optimizer.zero_grad()
        model(_inputs(torch, dist, step)).square().mean().backward()
        optimizer.step()
        if step == 2:
            optimizer.param_groups[0]["lr"] = 0.1
            optimizer.consolidate_state_dict(to=1)
            saved = [optimizer.state_dict() if dist.get_rank() == 1 else None]
            dist.broadcast_object_list(saved, src=1)
            found["zero state"] = [_values(state.values()) for _, state in sorted(saved[0]["state"].items())]
            optimizer = ZeroRedundancyOptimizer(groups, torch.optim.AdamW, lr=0.5)
            optimizer.load_state_dict(saved[0])
    found["zero parameters"] = _values(model.parameters())
    found["zero own state"] = sum(len(state) for state in optimizer.optim.state.values())
    found["zero too early"] = _error(optimizer.state_dict)[:60]
    return found


def _copies(torch, dist) -> dict:
    """Copies average gradients among themselves, and have buckets of their own."""
    torch.manual_seed(0)
    model, x, found = _wrap(torch, _network(torch)), _inputs(torch, dist, 0), {}
    for name, made in (("deepcopy", copy.deepcopy(model)), ("pickle", pickle.loads(pickle.dumps(model)))):
        model.zero_grad()
        made(x).pow(2).sum().backward()
        assert all(each.grad is None for each in model.parameters())
        model(x).pow(2).sum().backward()
        same = [torch.allclose(one.grad, other.grad) for one, other in zip(model.parameters(), made.parameters(), strict=True)]
        found[name] = [[float(all(same))]]
    return found


def _errors(torch, dist) -> dict:
    layers = torch.nn
    frozen = layers.Linear(2, 2).requires_grad_(False)
    found = {
        "frozen": _error(lambda: _wrap(torch, frozen)),
        "devices": _error(lambda: _wrap(torch, layers.Linear(2, 2), device_ids=[0]))[:90],
        "hook": _error(lambda: _wrap(torch, layers.Linear(2, 2)).register_comm_hook(None, 3)),
    }
    if "rushlight" in dist.__file__:  # rank 0 of PyTorch waits on when rank 1 has raised this
        assert "does not match rank 0" in _error(lambda: _wrap(torch, layers.Linear(2, 2 + dist.get_rank())))
        assert "have no effect" in _error(lambda: _wrap(torch, layers.Linear(2, 2), dim=1))
        assert "have no effect" in _error(lambda: _wrap(torch, layers.Linear(2, 2), check_reduction=True))
        assert "batch_tensors" in _error(lambda: powerSGD_hook.PowerSGDState(None, batch_tensors_with_same_shape=True))
        assert "inconsistent" in _error(lambda: _wrap(torch, layers.Linear(2, 2, bias=bool(dist.get_rank()))))
    model = _wrap(torch, _branches(torch))
    model(_inputs(torch, dist, 0), True)["out"][0].sum().backward()
    found["unfinished"] = _error(lambda: model(_inputs(torch, dist, 0), True))[:120]
    return found


def _error(call) -> str:
    try:
        call()
    except Exception as error:  # the class is what the test compares
        return f"{type(error).__name__}: {str(error)[:400]}"
    return "no error"
