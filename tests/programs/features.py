"""Programs about the machinery of training: schedules, precision, hooks, saving, loading data, custom derivatives."""

import copy
import pickle

from tests.programs.common import fit, gradients, parameters


def _model(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def _data(torch):
    return torch.randn(24, 6), torch.randint(0, 3, (24,))


def low_rank_adaptation(torch):
    nn, parametrize = torch.nn, torch.nn.utils.parametrize

    class LoRA(nn.Module):
        def __init__(self, inputs, outputs, rank=2, alpha=4):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(rank, outputs)), nn.Parameter(torch.zeros(inputs, rank))
            nn.init.normal_(self.a, mean=0, std=1)
            self.scale, self.enabled = alpha / rank, True

        def forward(self, weight):
            return weight + torch.matmul(self.b, self.a).view(weight.shape) * self.scale if self.enabled else weight

    model, (x, y) = _model(torch), _data(torch)
    for layer in (model[0], model[3]):
        parametrize.register_parametrization(layer, "weight", LoRA(*layer.weight.shape))
    for name, parameter in model.named_parameters():
        parameter.requires_grad = "parametrizations.weight.0" in name
    losses = fit(
        torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-2),
        lambda: torch.nn.functional.cross_entropy(model(x), y),
        5,
    )
    keys, text = list(model.state_dict()), repr(model)
    parametrize.remove_parametrizations(model[0], "weight", leave_parametrized=True)
    return {"losses": losses, "keys": keys, "text": text, "merged": model[0].weight, "grads": gradients(model)}


def normalised_weights(torch):
    nn = torch.nn
    p = nn.utils.parametrizations
    model = nn.Sequential(
        p.weight_norm(nn.Linear(6, 8)), nn.Tanh(), p.spectral_norm(nn.Linear(8, 8)), nn.Tanh(), p.orthogonal(nn.Linear(8, 3))
    )
    x, y = _data(torch)
    losses = fit(torch.optim.SGD(model.parameters(), 0.1), lambda: nn.functional.cross_entropy(model(x), y), 4)
    w = model[4].weight
    return {
        "losses": losses,
        "keys": list(model.state_dict()),
        "orthogonal": (w @ w.T - torch.eye(3)).abs().max() < 1e-5,
        "grads": gradients(model),
    }


def averaged_weights(torch):
    """A moving average by hand, stochastic weight averaging with its schedule, batch statistics renewed."""
    swa, model, (x, y) = torch.optim.swa_utils, _model(torch), _data(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    averaged, schedule = swa.AveragedModel(model), swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
    shadow = {k: v.clone() for k, v in model.state_dict().items()}
    for _ in range(5):
        fit(optimizer, lambda: torch.nn.functional.cross_entropy(model(x), y), 1)
        averaged.update_parameters(model)
        schedule.step()
        with torch.no_grad():
            for key, value in model.state_dict().items():
                if value.dtype.is_floating_point:
                    shadow[key].lerp_(value, 0.1)
                else:
                    shadow[key].copy_(value)
    swa.update_bn([x[:12], x[12:]], averaged)
    return {"averaged": parameters(averaged), "shadow": shadow, "lr": optimizer.param_groups[0]["lr"]}


def accumulate_and_clip(torch):
    nn, model, (x, y) = torch.nn, _model(torch), _data(torch)
    optimizer, norms = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(3):
        for xs, ys in zip(x.chunk(3), y.chunk(3), strict=True):
            (nn.functional.cross_entropy(model(xs), ys) / 3).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5, error_if_nonfinite=True))
        optimizer.step()
        optimizer.zero_grad()
    flat = nn.utils.parameters_to_vector(model.parameters())
    return {"norms": norms, "flat": flat, "none": all(p.grad is None for p in model.parameters())}


def schedulers(torch):
    s = torch.optim.lr_scheduler
    makers = {
        "step": lambda o: s.StepLR(o, 3, 0.5),
        "multi": lambda o: s.MultiStepLR(o, [2, 5]),
        "exp": lambda o: s.ExponentialLR(o, 0.9),
        "cosine": lambda o: s.CosineAnnealingLR(o, T_max=5, eta_min=1e-4),
        "warm": lambda o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
        "cyclic": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"),
        "poly": lambda o: s.PolynomialLR(o, 6, 2.0),
        "chain": lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 6)], milestones=[4]),
        "both": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
        "times": lambda o: s.MultiplicativeLR(o, lambda e: 0.95),
    }
    rates = {}
    for name, maker in makers.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        scheduler, rates[name] = maker(optimizer), []
        for _ in range(10):
            optimizer.step()
            scheduler.step()
            rates[name].append(optimizer.param_groups[0]["lr"])
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))])
    plateau = s.ReduceLROnPlateau(optimizer, mode="min", factor=0.1, patience=1)
    for value in (3.0, 2.0, 2.1, 2.2, 2.3, 2.4):
        plateau.step(value)
    saved = plateau.state_dict()
    return {"rates": rates, "plateau": optimizer.param_groups[0]["lr"], "bad": saved["num_bad_epochs"], "best": saved["best"]}


def autocast_bfloat16(torch):
    nn, model, (x, y) = torch.nn, _model(torch), _data(torch)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    optimizer, losses, types = torch.optim.AdamW(model.parameters(), 1e-2), [], []
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        types += [str(out.dtype).split(".")[1], str(loss.dtype).split(".")[1]]
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        losses.append(round(loss.item(), 1))
    low = copy.deepcopy(model).bfloat16().eval()
    return {
        "losses": losses,
        "types": types,
        "low": low(x.bfloat16()).dtype.itemsize,
        "grads": [str(p.grad.dtype)[-7:] for p in model.parameters()],
    }


def checkpointing(torch):
    checkpoint = torch.utils.checkpoint
    blocks = torch.nn.ModuleList(
        torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Dropout(0.3)) for _ in range(3)
    )
    x, kept = torch.randn(4, 6, requires_grad=True), []
    y = x
    for block in blocks:
        y = checkpoint.checkpoint(block, y, use_reentrant=False)
    y.sum().backward()
    segments = checkpoint.checkpoint_sequential(torch.nn.Sequential(*blocks), 2, x, use_reentrant=False)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.shape), t.half())[1], lambda t: t.float()):
        z = (x * x).exp()
    return {
        "x": x.grad.clone(),
        "grads": gradients(blocks),
        "segments": segments,
        "packed": len(kept),
        "z": torch.autograd.grad(z.sum(), x),
    }


def custom_function(torch):
    class Quantize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return torch.round(x * scale) / scale

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= 1).to(grad.dtype), None

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x.sigmoid()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            s = x.sigmoid()
            return grad * (s + x * s * (1 - s))

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            assert ctx.needs_input_grad == (True, False)
            return grad.neg() * ctx.strength, None

    x = (torch.randn(5, dtype=torch.float64) * 1.5).requires_grad_()
    out = Quantize.apply(x, 4.0)
    out.pow(2).sum().backward()
    (first,) = torch.autograd.grad(Swish.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    reverse = torch.autograd.grad(Reverse.apply(x, 0.5).sum(), x)
    return {
        "out": out,
        "grad": x.grad,
        "first": first,
        "second": second,
        "reverse": reverse,
        "checked": torch.autograd.gradcheck(Swish.apply, (x,)),
        "name": out.grad_fn.name(),
        "checked2": torch.autograd.gradgradcheck(Swish.apply, (x,)),
    }


def hooks(torch):
    model, (x, y), log = _model(torch), _data(torch), []
    activations = {}
    handles = [
        module.register_forward_hook(lambda m, i, o, n=name: activations.update({n: o.detach()}))
        for name, module in model.named_children()
    ]
    handles.append(model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,)))
    handles.append(
        model[3].register_full_backward_hook(
            lambda m, gi, go: log.append(("backward", gi[0].norm().item(), go[0].norm().item()))
        )
    )
    handles.append(model[3].register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True))
    handles.append(model[0].weight.register_hook(lambda g: g * 0.5))
    model[3].bias.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad.sum().item())))
    hidden = model[:3](x)
    hidden.retain_grad()
    hidden.register_hook(lambda g: g.clamp(-0.01, 0.01))
    out = model[3](hidden)
    loss = torch.nn.functional.cross_entropy(out, y)
    loss.backward()
    for handle in handles:
        handle.remove()
    return {
        "activations": activations,
        "log": log,
        "hidden": hidden.grad,
        "grads": gradients(model),
        "leaf": [hidden.is_leaf, x.is_leaf],
        "node": loss.grad_fn.name(),
        "next": [f.name() for f, _ in loss.grad_fn.next_functions],
    }


def save_and_load(torch, folder):
    model, (x, y) = _model(torch), _data(torch)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    loss = lambda: torch.nn.functional.cross_entropy(model(x), y)  # noqa: E731
    fit(optimizer, loss, 3)
    scheduler.step()
    torch.save(
        {
            "epoch": 3,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
        },
        folder / "checkpoint.pt",
    )
    first = fit(optimizer, loss, 2)
    checkpoint = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    message = str(model.load_state_dict(checkpoint["model"]))
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    torch.set_rng_state(checkpoint["rng"])
    second = fit(optimizer, loss, 2)
    with open(folder / "weights.pt", "wb") as file:
        torch.save(model.state_dict(), file)
    fresh = _model(torch)
    fresh.load_state_dict(torch.load(str(folder / "weights.pt")), assign=True)
    return {
        "first": first,
        "second": second,
        "message": message,
        "same": torch.equal(fresh(x), model(x)),
        "groups": optimizer.state_dict()["param_groups"],
        "keys": sorted(checkpoint),
    }


def state_dict_surgery(torch):
    nn, model = torch.nn, _model(torch)
    old = model.state_dict()
    renamed = {f"backbone.{k}" if not k.startswith("3.") else k.replace("3.", "head."): v for k, v in old.items()}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head, self.extra = _model(torch)[:3], nn.Linear(16, 3), nn.Linear(3, 1)

    net = Net()
    result = net.load_state_dict(renamed, strict=False)
    failures = []
    for bad in ({**renamed, "more": torch.ones(1)}, {**net.state_dict(), "head.weight": torch.ones(2, 2)}):
        try:
            net.load_state_dict(bad)
        except RuntimeError as error:
            failures.append(str(error))
    frozen = [name for name, p in net.named_parameters() if p.requires_grad_(not name.startswith("backbone")).requires_grad]
    net.head.weight.data[0] = 7.0
    del net.extra
    net.add_module("late", nn.Identity())
    net.backbone.append(nn.Dropout(0.5))
    return {
        "missing": result.missing_keys,
        "unexpected": result.unexpected_keys,
        "failures": failures,
        "frozen": frozen,
        "net": repr(net),
        "buffers": [n for n, _ in net.named_buffers()],
        "modules": [n for n, _ in net.named_modules()],
        "state": parameters(net),
    }


def copying_and_pickling(torch):
    model, (x, y) = _model(torch), _data(torch)
    twin = copy.deepcopy(model)
    restored = pickle.loads(pickle.dumps(model))
    fit(torch.optim.SGD(model.parameters(), 0.5), lambda: torch.nn.functional.cross_entropy(model(x), y), 2)
    tensor = torch.randn(3, 4).t()
    again = pickle.loads(pickle.dumps(tensor))
    shared = copy.deepcopy({"a": tensor, "b": tensor})
    parameter = copy.copy(torch.nn.Parameter(torch.ones(2)))
    return {
        "twin": twin(x),
        "restored": restored(x),
        "stride": again.stride(),
        "shared": shared["a"] is shared["b"],
        "kind": type(parameter).__name__,
        "dtype": str(pickle.loads(pickle.dumps(torch.float16)))[-7:],
        "device": str(pickle.loads(pickle.dumps(torch.device("cpu")))),
    }


def data_loading(torch):
    data = torch.utils.data

    class Sentences(data.Dataset):
        def __init__(self):
            self.items = [list(range(1, n % 5 + 2)) for n in range(17)]

        def __len__(self):
            return len(self.items)

        def __getitem__(self, i):
            return {"ids": torch.tensor(self.items[i]), "label": i % 2, "name": f"s{i}", "weight": float(i)}

    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            start, step = (0, 1) if info is None else (info.id, info.num_workers)
            return iter(range(start, 8, step))

    def collate(batch):
        ids = torch.nn.utils.rnn.pad_sequence([b["ids"] for b in batch], batch_first=True)
        return {"ids": ids, "rest": data.default_collate([{k: v for k, v in b.items() if k != "ids"} for b in batch])}

    sentences = Sentences()
    plain = list(data.DataLoader(sentences, batch_size=4, shuffle=True, collate_fn=collate, drop_last=True))
    workers = list(data.DataLoader(sentences, batch_size=4, collate_fn=collate, num_workers=2))
    x, y = _data(torch)
    train, test = data.random_split(data.TensorDataset(x, y), [20, 4], generator=torch.Generator().manual_seed(0))
    weighted = data.WeightedRandomSampler([0.1, 0.9, 0.5, 0.2] * 5, num_samples=10, replacement=True)
    sampled = [[b.sum() for b in batch] for batch in data.DataLoader(train, sampler=weighted, batch_size=4)]
    stream = list(data.DataLoader(Stream(), batch_size=2, num_workers=2))
    joined = data.ConcatDataset([train, data.Subset(test, [0, 2])])
    return {
        "plain": plain,
        "workers": workers,
        "test": test.indices,
        "sampled": sampled,
        "stream": stream,
        "joined": len(joined),
        "batches": list(data.BatchSampler(data.SequentialSampler(range(7)), 3, False)),
    }


def containers(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(torch.randn(3, 3)) for _ in range(2)])
            self.named = nn.ParameterDict({"scale": nn.Parameter(torch.ones(3)), "shift": nn.Parameter(torch.zeros(3))})
            self.choices = nn.ModuleDict([["relu", nn.ReLU()], ["prelu", nn.PReLU()], ["hard", nn.Hardtanh(-2, 2)]])
            self.register_buffer("steps", torch.tensor(0))
            self.register_buffer("mean", torch.zeros(3))
            self.register_parameter("unused", None)

        def forward(self, x, choice="relu"):
            if self.training:
                self.steps += 1
                self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            for w in self.weights:
                x = self.choices[choice]((x - self.mean) @ w)
            return x * self.named["scale"] + self.named.shift if hasattr(self.named, "shift") else x

        def extra_repr(self):
            return f"depth={len(self.weights)}"

    net = Net().train()
    out = [net(torch.randn(5, 3), choice) for choice in net.choices]
    torch.stack(out).sum().backward()
    state = parameters(net)
    net.eval().double()
    return {
        "out": out,
        "grads": gradients(net),
        "state": state,
        "net": str(net),
        "count": len(list(net.children())),
        "sub": net.get_submodule("choices.prelu").weight,
        "dtypes": sorted({str(t.dtype)[-5:] for t in net.state_dict().values()}),
    }


def optimizers(torch):
    """Every optimizer on Rosenbrock's valley, with parameter groups, `maximize` and a changed rate."""
    o, found = torch.optim, {}
    makers = {
        "sgd": lambda p: o.SGD(p, 1e-4, momentum=0.9, dampening=0.1),
        "adam": lambda p: o.Adam(p, 0.05),
        "adamw": lambda p: o.AdamW(p, 0.05),
        "adafactor": lambda p: o.Adafactor(p, 0.05),
        "adagrad": lambda p: o.Adagrad(p, 0.1),
        "adadelta": lambda p: o.Adadelta(p),
        "nadam": lambda p: o.NAdam(p, 0.01),
        "radam": lambda p: o.RAdam(p, 0.01),
        "rmsprop": lambda p: o.RMSprop(p, 0.01, centered=True, momentum=0.5),
        "rprop": lambda p: o.Rprop(p),
        "asgd": lambda p: o.ASGD(p, 1e-4),
        "adamax": lambda p: o.Adamax(p),
        "lbfgs": lambda p: o.LBFGS(p, 0.1),
    }
    for name, maker in makers.items():
        point = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        optimizer = maker([point])

        def closure(point=point, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2
            loss.backward()
            return loss

        for step in range(6):
            optimizer.step(closure)
            if step == 3:
                optimizer.param_groups[0]["lr"] *= 0.5
        found[name] = (point, repr(optimizer))
    return found


def errors_users_meet(torch):
    """Mistakes and the kind of exception they raise, with words that people search for."""
    x, w = torch.randn(2, 3), torch.randn(3, 2, requires_grad=True)
    y = w.exp()
    mistakes = {
        "matmul": (lambda: x @ x, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        "broadcast": (lambda: x + torch.ones(2, 2), "must match the size of tensor"),
        "view": (lambda: x.t().view(6), "view size is not compatible"),
        "shape": (lambda: x.view(4, 2), "is invalid for input of size 6"),
        "index": (lambda: x[5], "out of bounds"),
        "item": (lambda: x.item(), "cannot be converted to Scalar"),
        "bool": (lambda: bool(x), "ambiguous"),
        "numpy": (lambda: w.numpy(), "requires grad"),
        "leaf": (lambda: w.add_(1), "leaf"),
        "grad": (lambda: x.sum().backward(), "does not require grad"),
        "scalar": (lambda: y.backward(), "scalar outputs"),
        "twice": (lambda: [(s := w.sin().sum()).backward(), w.exp().sum().backward(), s.backward()], "through"),
        "dtype": (lambda: x @ torch.ones(3, 2, dtype=torch.float64), "same dtype"),
        "dim": (lambda: x.sum(5), "Dimension out of range"),
        "cat": (lambda: torch.cat([x, x[:, :2]]), "Sizes of tensors must match"),
        "linear": (lambda: torch.nn.Linear(4, 2)(x), "shapes cannot be multiplied"),
        "modified": (lambda: (z := w.exp(), z.add_(1), z.sum().backward()), "modified by an inplace operation"),
        "target": (lambda: torch.nn.functional.cross_entropy(x, torch.tensor([0, 9])), "out of bounds"),
        "unknown": (lambda: x.frobnicate(), "has no attribute"),
        "keyword": (lambda: torch.zeros(2, shape=3), ""),
        "embedding": (lambda: torch.nn.Embedding(3, 2)(torch.tensor([7])), ""),
        "long": (lambda: torch.tensor([1, 2]).mean(), "dtype"),
        "conv": (lambda: torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 2, 8, 8)), "channels"),
        "reshape": (lambda: x.reshape(5), "is invalid for input of size 6"),
    }
    found = {}
    for name, (mistake, words) in mistakes.items():
        try:
            mistake()
            found[name] = "none"
        except Exception as error:
            found[name] = (type(error).__name__, words in str(error))
    return found
