"""Programs for tracing, written for either library: `case(name, inputs, others)` marks a function of (torch) that gives the function to
trace; inputs and other inputs are functions of (torch), too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """A program: `make(torch)` returns the function to trace, `inputs(torch)` the examples, `others(torch)` different
    arguments."""

    make: Callable
    inputs: Callable
    others: Callable
    options: dict


CASES: dict[str, Case] = {}


def grid(torch, *sizes, dtype="float32", start=-3.0, step=0.7):
    """Values that both libraries compute alike."""
    count = 1
    for size in sizes:
        count *= size
    values = [(start + step * index) % 5 - 2 for index in range(count)]
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(sizes)


def plain(torch):
    """A (2, 3) matrix."""
    return (grid(torch, 2, 3),)


def larger(torch):
    """A (4, 5) matrix."""
    return (grid(torch, 4, 5, start=1.0),)


def case(inputs=plain, others=None, **options):
    """Add a program; its name is its function's."""

    def add(make):
        CASES[make.__name__] = Case(make, inputs, others or inputs, options)
        return make

    return add


def line(name, text, inputs=plain, others=None, **options):
    """A program of one expression over x (or x and y)."""

    def make(torch):
        scope = {"torch": torch, "math": math, "F": torch.nn.functional, "__name__": __name__}
        return eval(text, scope)

    CASES[name] = Case(make, inputs, others or inputs, options)


def pair(torch):
    """Two (2, 3) matrices."""
    return grid(torch, 2, 3), grid(torch, 2, 3, start=0.5)


def square(torch):
    """A (3, 3) matrix."""
    return (grid(torch, 3, 3),)


def image(torch):
    """A batch of images."""
    return (grid(torch, 1, 3, 8, 8),)


def words(torch):
    """Two rows of indices."""
    return (torch.tensor([[1, 2, 0], [3, 1, 1]]),)


line("sizes", "lambda x: x.view(x.size(0), -1) + x.shape[1] * 2", plain, larger)
line("sizes_arithmetic", "lambda x: x.reshape(x.size(0) // 2, x.shape[1] * 2) + (x.size(0) % 3) + x.size(0) ** 2 + x.size(0) / 2",
     plain, larger)  # fmt: skip
line("sizes_negative", "lambda x: x.expand(x.size(0) - 2 + 2, 1 - (-x.size(1) + 1))", plain, larger)
line("sizes_unpacked", "lambda x: [x.reshape(b * c) for b, c in [x.shape]][0]", plain, larger)
line("size_slices", "lambda x: x[: x.size(0) - 1, -x.size(1) :]", plain, larger)
line("size_arange", "lambda x: x + torch.arange(x.size(1)).float()", plain, larger)
line("size_zeros", "lambda x: torch.zeros(x.size(1), x.size(0)) + torch.ones(x.shape[1], 1) + x.t()", plain, larger)
line("size_full", "lambda x: torch.full((x.size(0), 1), 2.5) * x", plain, larger)
line("numel", "lambda x: x * x.numel()", plain, larger)
line("flatten", "lambda x: x.flatten(1).unsqueeze(0).squeeze(0)")
line("arithmetic", "lambda x: (1 - x) / 2 - x**2 + (2 / x)")
line("arithmetic_numbers", "lambda x: x + 1.5 - 2 * x / 3.0")
line("remainders", "lambda x: x % 2 + x // 2 + x.fmod(2) + x.remainder(2.0) + torch.floor_divide(x, 2) + x.true_divide(2)")
line("unary", "lambda x: (-x) + abs(x) + x.exp().log() + x.sin().cos().tanh() + x.sigmoid().sqrt() + x.floor().ceil().round()")
line("powers", "lambda x: abs(x) ** x + 2**x + x**3")
line("comparisons", "lambda x: (x > 0) | (x < x) & (x == 1.5) & ~(x != 0) ^ (x >= 1)")
line("where", "lambda x: torch.where(x > 0, x, 0.0) + x.masked_fill(x > 0, 0) + x.clamp(0, 1)")
line("reductions", "lambda x: x.sum() + x.mean() + x.sum(-1).mean(0) + x.max() + x.min(1)[0].sum() + x.prod() + x.argmax(1)")
line("reductions_kept", "lambda x: x.mean(1, keepdim=True) + x.var(1, keepdim=True) + x.amax(0, keepdim=True)")
line("softmaxes", "lambda x: torch.softmax(x, 1) + F.softmax(x, -1) + F.log_softmax(x, 0) + x.logsumexp(1, True)")
line("products", "lambda x: x @ x.t() + x.matmul(x.transpose(0, 1)) + x.mm(x.permute(1, 0)) + torch.bmm(x[None], x.t()[None])[0]")
line("addmm", "lambda x: torch.addmm(x[:, :2], x, x.t()) + torch.einsum('ij,kj->ik', x, x)")
line("conversions", "lambda x: x.to(torch.float64).type_as(x).half().float().to('cpu').long().int()")
line("conversions_both", "lambda x: x.to('cpu', torch.float64) + x.to(torch.zeros(1)).double()")
line("literals", "lambda x: x + torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(2)")
line("factories", "lambda x: torch.zeros(2, 3) + torch.ones(2, 3, dtype=torch.float64) + torch.eye(3)[:2] + torch.arange(0, 3, 2).sum() + x")
line("likes", "lambda x: torch.zeros_like(x) + x.new_zeros(2, 3) + torch.full_like(x, 2) + x.new_full((3,), 1.5) + x")
line("indices", "lambda x: x[0] + x[1, 2] + x[None, :, ::2].sum() + x[..., 1].sum() + x[:, 1].sum()")
line("indices_tensor", "lambda x: x[x > 0].sum() + x[torch.tensor([1, 0])] + x.index_select(0, torch.tensor([0, 1]))")
line("gather", "lambda x: x.gather(1, torch.tensor([[0, 1], [2, 0]])).scatter(1, torch.tensor([[0], [1]]), 5.0)")
line("pieces", "lambda x: torch.cat([x, x.t().reshape(2, 3)], 1).chunk(2, -1)[0].split(1, 0)[1].unbind(0)[0]")
line("pieces_sized", "lambda x: torch.split(x, [1, 2], 1)[1] + torch.stack([x, x])[0][:, :1]")
line("sorted", "lambda x: x.sort()[0] + x.topk(3)[0] + x.argsort(1) + x.cumsum(1)")
line("views", "lambda x: x.contiguous().clone().view(3, 2).T.repeat(1, 1).unsqueeze(1).squeeze(1)")
line("expansion", "lambda x: x.unsqueeze(0).expand(2, -1, -1) + x.expand_as(x)")
line("in_place", "lambda x: x.clone().add_(1)[0].mul_(2).sub_(0.5).relu_()")
line("activations", "lambda x: F.relu(x) + F.gelu(x) + F.silu(x) + F.elu(x) + F.leaky_relu(x, 0.1) + torch.sigmoid(x) + F.softplus(x)")
line("activations_more", "lambda x: F.gelu(x, approximate='tanh') + F.hardtanh(x) + F.hardswish(x) + F.relu6(x) + F.mish(x) + F.logsigmoid(x)")
line("layer_norm", "lambda x: F.layer_norm(x, (3,)) + F.normalize(x, dim=1)")
line("padding", "lambda x: F.pad(x, (1, 1)) + F.pad(x, (1, 1), value=2.0)")
line("dropout_off", "lambda x: F.dropout(x, 0.5, False)")
line("pooling", "lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2) + F.adaptive_avg_pool2d(x, 4)", image)
line("convolution", "lambda x: F.conv2d(x, torch.ones(2, 3, 3, 3), padding=1, stride=2)", image)
line("interpolation", "lambda x: F.interpolate(x, scale_factor=2.0, mode='nearest')", image)
line("embedding", "lambda x: F.embedding(x, torch.ones(4, 3))", words)
line("one_hot", "lambda x: F.one_hot(x, 5)", words)
line("attention", "lambda x: F.scaled_dot_product_attention(x, x, x)", lambda torch: (grid(torch, 1, 2, 4, 8),))
line("triangles", "lambda x: torch.tril(x) + x.triu(1) + torch.diag(x.diagonal())", square)
line("several", "lambda x, y: (x + y, (x - y, x * y))", pair)
line("list_out", "lambda x, y: [x + y, x - y]", pair, strict=False)
line("dict_out", "lambda x, y: {'sum': x + y, 'both': x * y}", pair, strict=False)
line("dict_in", "lambda d: d['a'] + d['b']", lambda torch: (dict(zip("ab", pair(torch), strict=True)),))
line("list_in", "lambda d, t: d[0] + d[1] + t[0] + t[1][0]",
     lambda torch: (list(pair(torch)), (grid(torch, 2, 3), (grid(torch, 2, 3, start=2.0),))))  # fmt: skip
line("same_twice", "lambda a, b: a + b * 2", lambda torch: (grid(torch, 2, 3),) * 2)
line("untouched", "lambda x: x")
line("to_int", "lambda x: x * int(x.sum()) + float(x.sum()) + x.sum().item()")
line("branch", "lambda x: x if x.sum() > 100 else -x")
line("iteration", "lambda x: tuple([y + 1 for y in x])")
line("length", "lambda x: x * len(x)")
line("counted", "lambda x: sum(x * i for i in range(x.size(0)))")
line("detached", "lambda x: x.detach() + x.contiguous() + x.clone()")


@case(pair)
def writes_to_views(torch):
    """Writes through views and indices."""

    def function(x, y):
        z = x.clone()
        z[0] = y[0]
        z[:, 1] += 1
        z[1, 2] = 5.0
        w = z.t()
        w.mul_(2)
        w[0].add_(y[0, 0])
        return z, w

    return function


@case()
def writes_by_mask(torch):
    """A write through a mask."""

    def function(x):
        z = x.clone()
        z[z > 1] = 0.5
        return z

    return function


@case(plain, larger)
def captured(torch):
    """A constant from outside, and functions inside functions."""
    weight = grid(torch, 1, 1, start=2.0)
    scale = 3

    def inner(a, b=2):
        return a * b + weight

    return lambda x: inner(x) + inner(x, scale)


@case(plain, larger)
def scripted_inside(torch):
    """A trace that calls a scripted function with a loop."""
    from tests.jit.tracing import scripts

    looped = torch.jit.script(scripts.looped)
    return lambda x: looped(x, 3) + looped(x * 2, 1)


def _layers(torch):
    nn = torch.nn

    class Block(nn.Module):
        """Linear, normalisation, activation."""

        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, width)
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            return torch.relu(self.norm(self.linear(x))) + x

    return nn, Block


def fill(torch, module):
    """The same parameters in both libraries."""
    with torch.no_grad():
        for index, value in enumerate(module.parameters()):
            value.copy_(grid(torch, *value.shape, start=0.3 * index, step=0.37) * 0.3)
    return module


@case(plain)
def module_linear(torch):
    """One layer."""
    return fill(torch, torch.nn.Linear(3, 4))


@case(plain)
def module_sequential(torch):
    """Layers in a row."""
    nn = torch.nn
    return fill(torch, nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Tanh()).eval())


@case(plain)
def module_nested(torch):
    """Modules in modules, one called twice, a parameter read from outside its module."""
    nn, Block = _layers(torch)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Block(3), Block(3)
            self.scale = nn.Parameter(torch.ones(3))
            self.register_buffer("offset", torch.ones(3))
            self.plain = torch.ones(3)

        def forward(self, x):
            x = self.second(self.first(self.first(x)))
            return x * self.scale + self.offset + self.plain + self.first.linear.weight.sum()

    return fill(torch, Net())


@case(plain)
def module_shared(torch):
    """One module under two names, and a weight that two layers share."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = self.a
            self.c = nn.Linear(3, 3)
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.a(x) + self.b(x) * 2 + self.c(x)

    return fill(torch, Net())


@case(plain)
def module_lists(torch):
    """Module lists and dicts."""
    nn, Block = _layers(torch)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(3) for _ in range(2)])
            self.heads = nn.ModuleDict({"one": nn.Linear(3, 1), "two": nn.Linear(3, 2)})

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return tuple([head(x) for head in self.heads.values()])

    return fill(torch, Net())


@case(plain)
def module_dicts(torch):
    """Modules that take and give containers."""
    nn = torch.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, parts):
            a, b = parts["a"], parts["b"]
            return {"sum": self.linear(a) + b, "a": a}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            out = self.inner({"a": x, "b": x * 2})
            return out["sum"] + out["a"]

    return fill(torch, Net())


@case(image)
def module_convolutions(torch):
    """Convolution, batch normalisation and pooling."""
    nn = torch.nn
    layers = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2), nn.Dropout()
    )
    return fill(torch, layers.eval())


@case(image)
def module_batch_norm_training(torch):
    """Batch normalisation that writes its statistics."""
    return fill(torch, torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.BatchNorm2d(2)))


@case(words)
def module_embedding(torch):
    """An embedding and a head."""
    return fill(torch, torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2)))


@case(plain)
def module_functional_state(torch):
    """A module without parameters inside one that calls functions of others' parameters."""
    nn = torch.nn

    class Scale(nn.Module):
        def forward(self, x, weight):
            return x * weight

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = Scale()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.scale(x, self.weight) + self.weight

    return fill(torch, Net())


@case(plain)
def module_scripted_inside(torch):
    """A traced module with a scripted submodule."""
    from tests.jit.tracing import scripts

    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.jit.script(scripts.make_branching(torch))
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(self.inner(x))

    return fill(torch, Net())


@case(lambda torch: (grid(torch, 4, 2, 3),))
def module_recurrent(torch):
    """A cell in a loop of Python's."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(3, 4)

        def forward(self, x):
            state = torch.zeros(x.size(1), 4)
            for step in x:
                state = self.cell(step, state)
            return state

    return fill(torch, Net())


@case(lambda torch: (grid(torch, 2, 5, 8),))
def module_attention(torch):
    """Attention written with views, as models write it."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self, width=8, heads=2):
            super().__init__()
            self.heads, self.width = heads, width
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(x).view(batch, length, 3, self.heads, self.width // self.heads).permute(2, 0, 3, 1, 4)
            query, key, value = parts[0], parts[1], parts[2]
            scores = query @ key.transpose(-2, -1) / (self.width // self.heads) ** 0.5
            mixed = scores.softmax(-1) @ value
            return self.out(mixed.transpose(1, 2).reshape(batch, length, self.width))

    return fill(torch, Attention())


for _name, _text in {
    "t_in_place": "(x * 1).t_()",
    "transpose_in_place": "(x * 1).transpose_(0, 1) + 1",
    "swapaxes_in_place": "(x * 1).swapaxes_(0, 1)",
    "swapdims_in_place": "(x * 1).swapdims_(dim0=0, dim1=1)",
    "unsqueeze_in_place": "(x * 1).unsqueeze_(-1).add_(1).mul_(2)",
    "squeeze_in_place": "(x * 1).unsqueeze_(0).squeeze_()",
    "squeeze_dim_in_place": "(x * 1).unsqueeze_(0).squeeze_(0)",
    "as_strided_in_place": "(x * 1).as_strided_((2, 2), (1, 1))",
    "set_in_place": "(x * 1).set_(x * 2)",
    "detach_in_place": "(x * 1).detach_() + 1",
    "input_changes_shape": "x.t_()",
    "size_to_a_power": "x * x.size(0) ** -0.5",
    "shape_to_a_power": "x / x.shape[-1] ** 0.5",
    "size_times_float": "x * (x.size(0) * 0.25)",
    "float_times_size": "x * (0.25 * x.size(0))",
    "float_over_size": "x * (1.5 / x.size(0))",
    "size_over_number": "x * (x.size(0) / 2)",
    "size_plus_float": "x + (x.size(0) + 0.5)",
    "float_minus_size": "x + (0.5 - x.size(0))",
    "float_to_a_size": "x + 2.0 ** x.size(0)",
    "number_to_a_size": "x + 2 ** x.size(0)",
    "size_floor_float": "x + x.size(0) // 1.5",
    "size_modulo_float": "x + x.size(0) % 1.5",
    "size_magnitude": "x + abs(x.size(0) - 3)",
    "size_shifted": "x + (x.size(0) >> 1) + (x.size(0) << 1)",
    "size_bits": "x + (x.size(0) & 6) + (x.size(0) | 1) + (x.size(0) ^ 3)",
    "size_and_complex": "x + 1j * x.size(0)",
    "elements_times_float": "x + x.numel() * 0.25",
    "product_of_sizes": "x + sum(x.shape) * 0.5 + x.size(0) * x.size(1) * 0.5",
    "root_of_a_size": "x / math.sqrt(x.size(0))",
    "int_of_a_scaled_size": "x[: int(x.size(0) * 0.5)]",
    "size_as_a_fill": "torch.full((2,), x.size(0) * 0.5)",
    "size_as_alpha": "torch.add(x, 1, alpha=x.size(0) * 0.5)",
    "size_as_a_tensor": "x + torch.sqrt(torch.tensor(x.size(0)))",
    "size_as_a_bound": "torch.arange(x.size(0) * 0.5)",
    "size_and_integers": "x.int() * x.size(0) ** -0.5",
}.items():
    line(_name, f"lambda x: {_text}", plain, larger)


def integers(torch):
    """Three integers."""
    return (torch.tensor([1, 2, 3]),)


for _name, _text in {
    "integers_times_float": "x * 0.5",
    "integers_plus_float": "x + 1.5",
    "integers_minus_float": "x - 1.5",
    "integers_over_float": "x / 2.5",
    "integers_plus_scaled_float": "torch.add(x, 0.5, alpha=2)",
    "integers_floor_float": "x // 2.5",
    "integers_floor_mode": "x.div(2.0, rounding_mode='floor')",
    "integers_times_complex": "x * 1j",
    "integers_and_a_sign": "x.copysign(-1.5)",
    "truths_times_float": "x.bool() * 0.5",
    "bytes_times_float": "x.to(torch.uint8) * 0.5",
    "sums_of_scaled_integers": "(x * 0.5 + x.sum() * 0.25).sum()",
    "integers_close_to_floats": "torch.isclose(x.float(), x * 1.0)",
    "doubles_times_float": "x.double() * 0.5",
    "integers_times_a_double": "x * torch.tensor(0.5, dtype=torch.float64)",
    "a_float_first": "torch.add(0.5, x)",
}.items():
    line(_name, f"lambda x: {_text}", integers)


def changes_shape_in_place(torch):
    """A shape that changes within a program and is read afterwards."""

    def program(x):
        y = x * 2
        y.transpose_(0, 1)
        z = y.reshape(y.shape[0], -1)
        z.unsqueeze_(0)
        return y, z, z.size(1) * z

    return program


case(plain, larger)(changes_shape_in_place)

line("sizes_as_results", "lambda x: (x, x.shape, x.size(0) * 2, x.numel(), x.shape[1:])", plain, larger)
line("a_size_as_result", "lambda x: x.size(1)", plain, larger)
