"""Modules: parameters, buffers, attributes, containers, methods, properties, hooks, constants."""

from typing import Dict, Final, List, Optional, Tuple

import rushlight as torch
from rushlight import nn
import rushlight.nn.functional as F


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3, 2), 0.5))
        self.bias = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)
#: (torch.ones(4, 2),)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))
        self.register_buffer("missing", None)

    def forward(self, x):
        if self.missing is not None:
            x = x + self.missing
        return x * self.scale
#: (torch.ones(2),)


class Counting(nn.Module):
    calls: int

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = torch.jit.Attribute([], List[int])

    def forward(self, x: int):
        self.calls += 1
        self.seen.append(x)
        return self.calls, self.seen
#: (3,)
#: (4,)


class Constants(nn.Module):
    __constants__ = ["width", "name", "flag"]
    size: Final[int]

    def __init__(self):
        super().__init__()
        self.width = 4
        self.name = "layer"
        self.flag = False
        self.size = 3

    def forward(self, x):
        if self.flag:
            return x
        return x * self.width + self.size, self.name
#: (torch.ones(2),)


class Methods(nn.Module):
    def helper(self, x, k: int = 2):
        return x * k

    def named(self, name: str) -> str:
        return name + "!"

    @staticmethod
    def plus(x: int, y: int) -> int:
        return x + y

    def forward(self, x):
        return self.helper(x), self.helper(x, k=3), self.named("a"), self.plus(1, 2)
#: (torch.ones(2),)


class Exported(nn.Module):
    @torch.jit.export
    def extra(self, x: int) -> int:
        return x + 1

    @torch.jit.unused
    def dropped(self, x):
        return [y for y in {1, 2}]

    @torch.jit.ignore
    def python_only(self, x) -> torch.Tensor:
        return x + len({1, 2, 3})

    def forward(self, x):
        if not torch.jit.is_scripting():
            return self.dropped(x)
        return self.python_only(x)
#: (torch.ones(2),)


class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self._value = 2

    @property
    def value(self) -> int:
        return self._value * 10

    @value.setter
    def value(self, new: int):
        self._value = new

    def forward(self, x: int):
        before = self.value
        self.value = x
        return before, self.value
#: (5,)


class Child(nn.Module):
    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x):
        return x + self.k

    def other(self, x):
        return x - self.k


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Child(1)
        self.second = Child(2)

    def forward(self, x):
        return self.second(self.first(x)) + self.first.other(x) + self.second.k
#: (torch.ones(2),)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Child(3)
        self.b = self.a

    def forward(self, x):
        return self.a(x) + self.b(x)
#: (torch.ones(2),)


class InSequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Child(1), nn.ReLU(), Child(-5))

    def forward(self, x):
        return self.layers(x), len(self.layers)
#: (torch.arange(6).float(),)


class InList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Child(i) for i in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers):
            x = layer(x) * i
        return x, self.layers[1](x), len(self.layers)
#: (torch.ones(2),)


class InDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": Child(1), "b": Child(2)})

    def forward(self, x):
        names: List[str] = []
        for name, layer in self.layers.items():
            x = layer(x)
            names.append(name)
        for layer in self.layers.values():
            x = layer(x)
        for key in self.layers.keys():
            names.append(key)
        return x, names, "a" in self.layers, self.layers["b"](x)
#: (torch.ones(2),)


class Zipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList([Child(i) for i in range(2)])
        self.b = nn.ModuleList([Child(i + 5) for i in range(2)])

    def forward(self, x):
        for p, q in zip(self.a, self.b):
            x = p(x) * q(x)
        return x
#: (torch.ones(2),)


class Reversed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Child(2), Child(3)])

    def forward(self, x):
        out: List[torch.Tensor] = []
        for layer in self.layers:
            out.append(layer(x))
        return torch.stack(out)
#: (torch.ones(2),)


class OptionalChild(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = None
        self.up = Child(1)

    def forward(self, x):
        if self.down is not None:
            x = self.down(x)
        if self.up is not None:
            x = self.up(x)
        return x
#: (torch.ones(2),)


class Attributes(nn.Module):
    table: Dict[str, int]
    maybe: Optional[int]

    def __init__(self):
        super().__init__()
        self.table = {"a": 1}
        self.maybe = None
        self.pair: Tuple[int, str] = (1, "x")
        self.names = ["p", "q"]
        self.typed = torch.jit.Attribute([], List[int])

    def forward(self, k: str, v: int):
        self.table[k] = v
        if self.maybe is None:
            self.maybe = v
        self.typed.append(v)
        return self.table, self.maybe, self.pair[1], self.names, self.typed
#: ('b', 2)
#: ('c', 3)


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        if self.training:
            return self.drop(x) * 0
        return self.drop(x)
#: (torch.ones(2),)


def outer_function(x, k: int):
    return x * k


class CallsFunctions(nn.Module):
    def forward(self, x):
        return outer_function(x, 3) + torch.relu(x) + F.relu(x)
#: (torch.ones(2),)


class Inherits(Methods):
    def helper(self, x, k: int = 2):
        return x + k

    def forward(self, x):
        return self.helper(x) * 2
#: (torch.ones(2),)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(8, 3)
        with torch.no_grad():
            for p in self.parameters():
                p.fill_(0.1)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        x = torch.flatten(x, 1)
        return F.log_softmax(self.out(x), dim=1)
#: (torch.arange(16).reshape(1, 1, 4, 4).float(),)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, 3)
        self.lstm = nn.LSTM(2, 3, batch_first=True)
        self.gru = nn.GRU(3, 3)
        with torch.no_grad():
            for p in self.parameters():
                p.fill_(0.2)

    def forward(self, x):
        h = torch.zeros(x.size(0), 3)
        c = torch.zeros(x.size(0), 3)
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
        out, (hn, cn) = self.lstm(x)
        out2, hn2 = self.gru(out)
        return h, c, out, hn, cn, out2, hn2
#: (torch.ones(2, 3, 2),)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.k = nn.Linear(4, 4)
        self.v = nn.Linear(4, 4)
        self.heads = 2
        self.norm = nn.LayerNorm(4)
        self.embed = nn.Embedding(5, 4)
        with torch.no_grad():
            for p in self.parameters():
                p.fill_(0.3)

    def split(self, x):
        b, t, d = x.shape
        return x.view(b, t, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, ids, mask: Optional[torch.Tensor] = None):
        x = self.embed(ids)
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-2, -1) / (k.size(-1) ** 0.5)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(x.size(0), x.size(1), -1)
        return self.norm(x + y)
#: (torch.tensor([[0, 1, 2]]),)
#: (torch.tensor([[0, 1, 2]]), torch.ones(3, 3).tril())


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.GELU(), nn.Tanh(), nn.Sigmoid(), nn.SiLU(), nn.LeakyReLU(0.1), nn.ELU(), nn.Softplus())

    def forward(self, x):
        return self.layers(x)
#: (torch.arange(4).float(),)


class Greedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.cell = nn.GRUCell(4, 4)
        self.out = nn.Linear(4, 6)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.arange(p.numel()).reshape(p.shape) % 7 * 0.1 - 0.2 * (i % 2))

    def forward(self, start: int, limit: int):
        tokens: List[int] = [start]
        h = torch.zeros(1, 4)
        for _ in range(limit):
            x = self.embed(torch.tensor([tokens[-1]]))
            h = self.cell(x, h)
            token = int(self.out(h).argmax(1).item())
            tokens.append(token)
            if token == 0:
                break
        return tokens
#: (1, 5)


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(2) * i) for i in range(3)])

    def forward(self, x):
        for w in self.weights:
            x = x + w
        return x
#: (torch.ones(2),)


class Callable_(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = F.relu
        self.own = outer_function

    def forward(self, x):
        return self.own(self.activation(x), 2)
#: (torch.ones(2),)


class Letters(nn.Module):
    alphabet: Final[str] = "-abc"

    def forward(self, x):
        row: List[int] = x.tolist()
        return "".join([self.alphabet[k] for k in row])
#: (torch.tensor([3, 0, 1]),)
