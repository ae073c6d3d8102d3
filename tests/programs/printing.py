"""Programs that print: what tensors, types, models and optimizers look like, with the library's name left out."""


def _text(torch, value, show=repr):
    return show(value).replace(torch.__name__ + ".", "torch.")


def tensors(torch):
    values = [
        torch.tensor(3),
        torch.tensor(2.5),
        torch.tensor([]),
        torch.tensor([1, -20, 300]),
        torch.tensor([True, False]),
        torch.randn(3, 4),
        torch.randn(2, 2, 3) * 1e5,
        torch.tensor([1e-9, 1.0, 1e8]),
        torch.tensor([float("nan"), float("inf"), -1.0]),
        torch.arange(2000),
        torch.randn(40, 40),
        torch.zeros(2, 0, 3),
        torch.tensor([1 + 2j, -0.5j]),
        torch.ones(2, dtype=torch.float64),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.uint8),
        torch.randn(2, requires_grad=True),
        torch.randn(2, requires_grad=True).exp(),
        torch.nn.Parameter(torch.ones(2, 2)),
        torch.empty(3, 2, device="meta"),
        torch.arange(4.0).to_sparse(),
        torch.tensor([0.1, 1000.25]),
        torch.tensor([123456789.0]),
        torch.tensor([1.0, 2.0, 3.0]),
        torch.randn(3, 40),
        torch.ones(3, dtype=torch.half) / 3,
        torch.randn(3, 3) > 0,
        torch.randint(-1000, 1000, (3, 3)),
        torch.tensor(1.5, requires_grad=True) * 2,
        torch.tensor([[1 + 1e-5j]], dtype=torch.complex128),
        torch.finfo(torch.float32),
        torch.iinfo(torch.int8),
        torch.Size([2, 3]),
        torch.device("cpu"),
        torch.float32,
        torch.long,
        torch.channels_last,
        torch.strided,
        torch.randn(2, 3).max(dim=1),
        torch.randn(3).sort(),
        torch.randn(2, 2).shape,
        torch.Generator().device,
    ]
    shown = [_text(torch, v) for v in values]
    torch.set_printoptions(precision=2, sci_mode=False, linewidth=60)
    shown += [_text(torch, v) for v in (torch.randn(3, 12) * 100, torch.tensor([1e-5, 1e4]))]
    torch.set_printoptions(profile="default")
    x = torch.tensor(3.14159)
    return {
        "shown": shown,
        "formats": [f"{x:.2f}", f"{x}", format(x, ">8.3f"), str(x), f"{torch.tensor(7):03d}", f"{torch.ones(2)}"],
    }


def modules(torch):
    nn = torch.nn
    made = [
        nn.Linear(2, 3, bias=False),
        nn.Bilinear(2, 3, 4),
        nn.Conv1d(1, 2, 3, dilation=2),
        nn.Conv2d(4, 8, (3, 5), stride=2, padding=(1, 2), groups=4, padding_mode="reflect"),
        nn.ConvTranspose2d(2, 3, 3, output_padding=1, stride=2),
        nn.BatchNorm2d(3, track_running_stats=False),
        nn.LayerNorm((2, 3)),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm1d(3),
        nn.RMSNorm(4),
        nn.Dropout(0.1, inplace=True),
        nn.Embedding(5, 3, padding_idx=0),
        nn.EmbeddingBag(5, 3),
        nn.LSTM(3, 4, 2, bidirectional=True),
        nn.GRUCell(2, 3),
        nn.RNN(2, 3, nonlinearity="relu"),
        nn.MultiheadAttention(4, 2),
        nn.TransformerEncoderLayer(8, 2),
        nn.MaxPool2d(2, 2, 1),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d((1, None)),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.ReLU(inplace=True),
        nn.LeakyReLU(0.2),
        nn.GELU(),
        nn.Softmax(dim=-1),
        nn.PReLU(3),
        nn.Threshold(0.1, 20),
        nn.Hardtanh(),
        nn.ELU(0.5),
        nn.Softplus(),
        nn.GLU(),
        nn.CrossEntropyLoss(),
        nn.MSELoss(),
        nn.ModuleList([nn.ReLU(), nn.ReLU()]),
        nn.Sequential(nn.Sequential(nn.Tanh())),
        nn.ModuleDict({"a": nn.Sigmoid()}),
        nn.ParameterList([nn.Parameter(torch.ones(2))]),
        nn.ParameterDict({"w": nn.Parameter(torch.ones(2, 3))}),
        nn.Identity(),
        nn.Flatten(),
        nn.Unflatten(1, (2, 3)),
        nn.PixelShuffle(2),
        nn.ZeroPad2d(1),
        nn.CosineSimilarity(),
        nn.LazyLinear(3),
        nn.Fold((4, 4), 2),
        nn.Unfold(2),
        nn.AlphaDropout(),
        nn.UpsamplingNearest2d(scale_factor=2),
        nn.LocalResponseNorm(2),
        nn.TripletMarginLoss(),
        nn.MaxUnpool2d(2),
        nn.Transformer(8, 2, 1, 1, 16),
        nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    ]
    return {
        "shown": [_text(torch, m) for m in made],
        "types": [str(type(m)).replace(torch.__name__ + ".", "torch.").count("torch.nn") for m in made[:3]],
    }


def names(torch):
    types = (
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
        "bool",
        "complex64",
        "complex128",
    )
    x = torch.ones(2, 3)
    return {
        "types": [_text(torch, getattr(torch, t)) for t in types],
        "aliases": [torch.float is torch.float32, torch.half is torch.float16, torch.double is torch.float64],
        "type": [x.type().replace(torch.__name__ + ".", "torch."), x.long().type().replace(torch.__name__ + ".", "torch.")],
        "kind": type(x).__name__,
        "node": [
            x.requires_grad_().exp().grad_fn.name(),
            (x @ x.T).grad_fn.name(),
            x.view(6).grad_fn.name(),
            x[0].grad_fn.name(),
            x.sum().grad_fn.name(),
        ],
        "size": [repr(x.size()), str(x.shape), x.shape.numel(), list(x.shape[1:]), x.nbytes, x.element_size(), x.ndim],
    }


def optimizer_texts(torch):
    o, s = torch.optim, torch.optim.lr_scheduler
    p = [torch.nn.Parameter(torch.ones(2))]
    made = [
        o.SGD(p, 0.1),
        o.Adam(p),
        o.AdamW(p, weight_decay=0.1),
        o.RMSprop(p),
        o.Adagrad(p),
        o.LBFGS(p),
        o.Adamax(p),
        o.NAdam(p),
        o.RAdam(p),
        o.Rprop(p),
        o.ASGD(p),
        o.Adadelta(p),
        o.SparseAdam(p),
    ]
    scheduler = s.StepLR(made[0], 3)
    return {
        "shown": [_text(torch, x) for x in made],
        "state": {k: v for k, v in scheduler.state_dict().items() if not k.startswith("_")},
        "keys": sorted(made[1].state_dict()),
    }
