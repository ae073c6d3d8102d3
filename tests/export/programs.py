"""Modules to export, for either library: each function takes the library and returns a module, arguments and dynamic sizes."""

from __future__ import annotations

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def mlp(lib):
    nn = lib.nn
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), (lib.randn(2, 4),), {}, None


@program
def mlp_open(lib):
    module, args, kwargs, _ = mlp(lib)
    return module, args, kwargs, {"input": {0: lib.export.Dim("batch")}}


@program
def convolutions(lib):
    nn = lib.nn
    module = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return module.eval(), (lib.randn(2, 3, 8, 8),), {}, ({0: lib.export.Dim("batch")},)


@program
def batch_norm_in_training(lib):
    return lib.nn.BatchNorm1d(3), (lib.randn(4, 3),), {}, None


@program
def counter(lib):
    class Counter(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", lib.zeros(1))
            self.register_buffer("hidden", lib.ones(2), persistent=False)
            self.constant = lib.ones(2)
            self.weight = lib.nn.Parameter(lib.ones(2))

        def forward(self, x, scale=2):
            self.count.add_(1)
            x.mul_(scale)
            return {"y": x * self.weight + self.hidden + self.constant + lib.tensor([1.0, 2.0]), "n": scale}, self.count + 1

    return Counter(), (lib.randn(3, 2),), {"scale": 3}, None


@program
def trees(lib):
    class Trees(lib.nn.Module):
        def forward(self, pair, named, *, flag=True):
            first, second = pair
            return [first + named["a"], (second * named["b"], None)]

    args = (lib.ones(2), lib.ones(3)), {"a": lib.ones(2), "b": lib.ones(3)}
    return Trees(), args, {"flag": False}, None


@program
def tied(lib):
    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = lib.nn.Embedding(5, 4)
            self.head = lib.nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    return Tied(), (lib.tensor([[1, 2, 3]]),), {}, None


@program
def encoder(lib):
    layer = lib.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return layer, (lib.randn(2, 5, 8),), {}, ({0: lib.export.Dim("batch"), 1: lib.export.Dim("length", max=64)},)


@program
def views_written(lib):
    class Views(lib.nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:, 0].fill_(1.0)
            y.view(-1).add_(2)
            return y

    return Views(), (lib.randn(4, 3),), {}, ({0: lib.export.Dim("batch")},)
