"""Programs: nn.Modules with hooks, calls of their own, containers of all kinds, attributes that change, modes."""

# ruff: noqa: E731

from __future__ import annotations

import functools

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
LISTED = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
SEEN = []
COUNTS = {"calls": 0}


class Affine(nn.Module):
    def __init__(self, size=3, scale=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), float(scale)))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, z, shift=0.0):
        return z * self.weight + self.bias + shift


def hooked(register, *hooks, kind=Affine, **options):
    made = kind()
    for hook in hooks:
        getattr(made, register)(hook, **options)
    return made


AFTER = hooked("register_forward_hook", lambda module, args, out: out * 2)
AFTER_NOTHING = hooked("register_forward_hook", lambda module, args, out: None)
AFTER_TWICE = hooked("register_forward_hook", lambda m, args, out: out + 1, lambda m, args, out: out * 3)
BEFORE = hooked("register_forward_pre_hook", lambda module, args: (args[0] + 1,))
BEFORE_SINGLE = hooked("register_forward_pre_hook", lambda module, args: args[0] * 2)
BEFORE_NOTHING = hooked("register_forward_pre_hook", lambda module, args: None)
BEFORE_KEYWORDS = hooked(
    "register_forward_pre_hook", lambda module, args, kwargs: (args, {**kwargs, "shift": 5.0}), with_kwargs=True
)
AFTER_KEYWORDS = hooked(
    "register_forward_hook", lambda module, args, kwargs, out: out + kwargs.get("shift", 7), with_kwargs=True
)
ALWAYS = hooked("register_forward_hook", lambda module, args, out: out + 1, always_call=True)
NOTING = hooked("register_forward_hook", lambda module, args, out: SEEN.append(len(args)))
INNER = nn.Sequential(hooked("register_forward_hook", lambda module, args, out: out.relu()), nn.Tanh())


class Failing(nn.Module):
    def forward(self, z):
        raise ValueError("no")


ALWAYS_FAILING = hooked(
    "register_forward_hook", lambda module, args, out: SEEN.append(out is None), kind=Failing, always_call=True
)


@one(x)
def forward_hook(a):
    return AFTER(a)


@one(x)
def forward_hook_without_result(a):
    return AFTER_NOTHING(a)


@one(x)
def forward_hooks(a):
    return AFTER_TWICE(a)


@one(x)
def pre_hook(a):
    return BEFORE(a)


@one(x)
def pre_hook_single(a):
    return BEFORE_SINGLE(a)


@one(x)
def pre_hook_without_result(a):
    return BEFORE_NOTHING(a)


@one(x)
def pre_hook_with_keywords(a):
    return BEFORE_KEYWORDS(a, shift=1.0)


@one(x)
def forward_hook_with_keywords(a):
    return AFTER_KEYWORDS(a, shift=2.0), AFTER_KEYWORDS(a)


@one(x)
def always_called_hook(a):
    return ALWAYS(a)


@program(x)
def always_called_hook_after_a_failure(a):
    try:
        ALWAYS_FAILING(a)
    except ValueError as error:
        return a + 1, str(error), list(SEEN)


@one(x)
def hook_with_effects(a):
    return NOTING(a), SEEN


@one(x)
def hook_of_a_submodule(a):
    return INNER(a)


@program(x)
def hook_registered_inside(a):
    layer = Affine()
    handle = layer.register_forward_hook(lambda module, args, out: out + 1)
    found = layer(a)
    handle.remove()
    return found.detach(), layer(a).detach()


@program(x)
def hook_on_all_modules(a):
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2)
    try:
        return AFTER_NOTHING(a)
    finally:
        handle.remove()


@program(x)
def backward_hook(a):
    layer = Affine()
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: SEEN.append(len(grad_out)))
    layer(a).sum().backward()
    return layer.weight.grad, SEEN


class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def __call__(self, z, twice=False):
        found = super().__call__(z)
        return found * 2 if twice else found

    def forward(self, z):
        return z + self.weight


OWN_CALL = OwnCall()


@one(x)
def own_call(a):
    return OWN_CALL(a), OWN_CALL(a, twice=True)


class PlainCall(nn.Module):
    def __call__(self, z):
        return z - 1


PLAIN_CALL = PlainCall()


@one(x)
def call_without_forward(a):
    return PLAIN_CALL(a)


class Holders(nn.Module):
    def __init__(self):
        super().__init__()
        self.listed = nn.ParameterList([nn.Parameter(torch.full((3,), float(n))) for n in range(3)])
        self.named = nn.ParameterDict({"p": nn.Parameter(torch.ones(3)), "q": nn.Parameter(torch.full((3,), 2.0))})
        self.parts = nn.ModuleDict({"first": nn.Linear(3, 3), "second": nn.ReLU()})
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Tanh(), Affine()])
        self.steps = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())

    def forward(self, z):
        for layer in self.layers:
            z = layer(z)
        for index, weight in enumerate(self.listed):
            z = z + weight * index
        for key, weight in self.named.items():
            z = z * weight if key == "p" else z + weight
        for name in self.parts:
            z = self.parts[name](z)
        return self.steps(z)


HOLDERS = Holders()


@one(x)
def holders(a):
    return HOLDERS(a)


@one(x)
def module_list_operations(a):
    layers = HOLDERS.layers
    return [layer(a) for layer in layers[1:]], len(layers), layers[-1](a), [type(layer).__name__ for layer in reversed(layers)]


@one(x)
def module_list_enumerated(a):
    for index, layer in enumerate(HOLDERS.layers):
        if index != 1:
            a = layer(a)
    return a


@one(x)
def module_list_zipped(a):
    for layer, scale in zip(HOLDERS.layers, [1, 2, 3], strict=True):
        a = layer(a) * scale
    return a


@one(x)
def module_dict_operations(a):
    parts = HOLDERS.parts
    return (
        [name for name in parts], list(parts.keys()), [part(a) for part in parts.values()], "first" in parts, len(parts),
        [(name, part(a)) for name, part in parts.items()], parts["second"](a),
    )  # fmt: skip


@one(x)
def parameter_list_operations(a):
    listed = HOLDERS.listed
    return a + listed[0], a * listed[-1], len(listed), sum(p for p in listed), [p * a for p in listed]


@one(x)
def parameter_dict_operations(a):
    named = HOLDERS.named
    return named["p"] + a, "q" in named, len(named), list(named.keys()), [v + a for v in named.values()], sorted(named)


@one(x)
def sequential_operations(a):
    steps = HOLDERS.steps
    for step in steps:
        a = step(a)
    return a, len(steps), steps[0](a), steps[:1](a) if False else None, type(steps[1]).__name__


@one(x)
def parameters_of_a_module(a):
    return [a + p.sum() for p in HOLDERS.parameters()], [name for name, _ in HOLDERS.named_parameters()]


@one(x)
def children_of_a_module(a):
    return [name for name, _ in HOLDERS.named_children()], [type(m).__name__ for m in HOLDERS.modules()], a + 1


@one(x)
def buffers_of_a_module(a):
    norm = NORM
    return a + norm.running_mean, [name for name, _ in norm.named_buffers()], list(dict(norm.named_parameters()))


NORM = nn.BatchNorm1d(3)
NORM_EVAL = nn.BatchNorm1d(3).eval()


@one(x)
def evaluated_norm(a):
    return NORM_EVAL(a[None])


@one(torch.ones(4, 3))
def running_statistics(a):
    layer = nn.functional.batch_norm(a, torch.zeros(3), torch.ones(3), training=True)
    return layer + 1


class Holder:
    def __init__(self, layer):
        self.layer = layer
        self.table = {"affine": layer}
        self.line = [layer]


the_holder = Holder(Affine(scale=3.0))


@one(x)
def module_of_a_plain_object(a):
    return the_holder.layer(a) + the_holder.table["affine"](a) + the_holder.line[0](a)


@program(Holder(Affine(scale=2.0)), x)
def module_of_an_argument(holder, a):
    return holder.layer(a).detach()


@program(nn.Linear(3, 3), x)
def module_as_an_argument(layer, a):
    return layer(a).detach()


@program([nn.Tanh(), nn.ReLU()], x)
def modules_in_a_list(layers, a):
    for layer in layers:
        a = layer(a)
    return a


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.cache = {}
        self.history = []
        self.last = None

    def forward(self, z):
        self.calls += 1
        self.history.append(len(z))
        self.cache["key"] = "value"
        self.last = z * 2
        return z + 1


@program(Counting(), x)
def counters_of_a_module(layer, a):
    found = layer(a)
    return found, layer.calls, layer.history, layer.cache, layer.last


@program(Counting(), x)
def counters_twice(layer, a):
    layer(a)
    layer(a + 1)
    return layer.calls, layer.history, layer.last


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, z):
        size = len(z)
        if size not in self.kept:
            self.kept[size] = torch.ones(size) * 3
        return z + self.kept[size]


@program(Remembering(), x)
def cache_of_a_module(layer, a):
    return layer(a), layer(a * 2), list(layer.kept)


class Averaging(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("nothing", None)

    def forward(self, z):
        self.mean = self.mean * 0.9 + z * 0.1
        self.count += 1
        return z - self.mean


class AveragingInPlace(Averaging):
    def forward(self, z):
        self.mean.mul_(0.9).add_(z * 0.1)
        self.count.add_(1)
        return z - self.mean


@program(Averaging(), x)
def buffer_assigned(layer, a):
    found = layer(a)
    return found, layer.mean, layer.count, dict(layer.named_buffers()), layer.nothing


@program(AveragingInPlace(), x)
def buffer_written_in_place(layer, a):
    found = layer(a)
    return found, layer.mean, layer.count


AVERAGING = Averaging()


@one(x)
def buffer_assigned_of_a_global(a):
    AVERAGING.mean = AVERAGING.mean * 0 + a
    return AVERAGING.mean + 1


class Moody(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, z):
        return self.drop(z) if self.training else z * 2


MOODY, CALM = Moody(), Moody().eval()


@one(x)
def training_mode(a):
    return MOODY(a), MOODY.training


@one(x)
def evaluation_mode(a):
    return CALM(a), CALM.training, CALM.drop.training


@program(x)
def mode_switched_inside(a):
    layer = Moody()
    layer.eval()
    first = layer(a)
    layer.train()
    return first, layer.training, layer.drop.training


@program(Moody(), x)
def mode_of_an_argument_switched(layer, a):
    layer.eval()
    found = layer(a)
    layer.train()
    return found, layer.training


@program(Moody(), x)
def training_flag_written(layer, a):
    layer.training = False
    return layer(a)


class Functional(nn.Module):
    scale = 2

    def __init__(self):
        super().__init__()
        self.activation = F.relu
        self.shapes = (3, 1)
        self.options = {"dim": -1}
        self.inner = functools.partial(torch.add, alpha=2)
        self.own = self._own

    def _own(self, z):
        return z - 1

    @property
    def doubled(self):
        return self.scale * 2

    def forward(self, z):
        z = self.activation(z).view(self.shapes)
        z = F.softmax(z, **self.options)
        return self.inner(self.own(z), z) * self.doubled


FUNCTIONAL = Functional()


@one(x)
def functions_as_attributes(a):
    return FUNCTIONAL(a)


class Recursive(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layer = Affine(scale=depth)
        self.below = Recursive(depth - 1) if depth else None

    def forward(self, z):
        z = self.layer(z)
        return z if self.below is None else self.below(z)


RECURSIVE = Recursive(3)


@one(x)
def recursive_modules(a):
    return RECURSIVE(a)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, z):
        return self.second(self.first(z)) + (self.first.weight is self.second.weight)


SHARED = Shared()


@one(x)
def shared_parameters(a):
    return SHARED(a)


class WithGetattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Affine(scale=4.0)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, z):
        return z * self.weight


WITH_GETATTR = WithGetattr()


@one(x)
def module_with_getattr(a):
    return WITH_GETATTR(a), hasattr(WITH_GETATTR, "bias"), hasattr(WITH_GETATTR, "nope")


@one(x)
def module_without_an_attribute(a):
    try:
        return AFTER.nope
    except AttributeError as error:
        return a + 1, str(error)


@one(x)
def getattr_of_a_module(a):
    return getattr(AFTER, "weight") + a, getattr(AFTER, "nope", 3), hasattr(AFTER, "bias"), isinstance(AFTER, nn.Module)  # noqa: B009


@one(x)
def methods_of_modules(a):
    method = AFTER_NOTHING.forward
    return method(a), AFTER_NOTHING.forward(a, shift=1.0), Affine.forward(AFTER_NOTHING, a, 2.0)


@program(x)
def module_made_inside(a):
    torch.manual_seed(3)
    layer = nn.Linear(3, 2)
    return layer(a).detach()


@program(x)
def state_of_a_module(a):
    return {name: tuple(value.shape) for name, value in HOLDERS.layers.state_dict().items()}, a + 1


@program(x)
def requires_grad_of_parameters(a):
    return [p.requires_grad for p in AFTER.parameters()], AFTER.weight.requires_grad, (AFTER.weight * a).requires_grad


@program(x)
def submodule_replaced(a):
    holder = nn.Sequential(nn.ReLU())
    holder[0] = nn.Tanh()
    return holder(a)


@one(torch.ones(1, 4, 3))
def recurrent_layers(a):
    return LSTM(a)[0], GRU(a)[0]


LSTM, GRU = nn.LSTM(3, 2, batch_first=True), nn.GRU(3, 2, batch_first=True)
ATTENTION = nn.MultiheadAttention(4, 2, batch_first=True)
ENCODER = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)


@one(torch.ones(1, 3, 4))
def attention_layers(a):
    return ATTENTION(a, a, a)[0], ENCODER(a)


CONVOLUTIONS = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())


@one(torch.ones(2, 1, 4, 4))
def convolutional_layers(a):
    return CONVOLUTIONS.eval()(a) if False else CONVOLUTIONS(a)


EMBEDDING = nn.Embedding(5, 3, padding_idx=0)


@one(torch.tensor([0, 1, 4]))
def embedding_layer(a):
    return EMBEDDING(a) + 1


@one(x)
def parts_listed(a):
    net = nn.Sequential
    names = [name for name, _ in LISTED.named_parameters()], [name for name, _ in LISTED.named_modules()]
    counts = len(list(LISTED.parameters())), len(list(LISTED.modules())), len(list(LISTED.buffers())), len(list(LISTED.children()))
    return a + sum(p.sum() for p in LISTED.parameters()), names, counts, isinstance(LISTED, net), sum(p.numel() for p in LISTED.parameters())


@one(x)
def modules_in_sets(a):
    seen = {LISTED, LISTED[0]}
    scales = {LISTED[0]: 2, LISTED[2]: 3}
    weights = {p: name for name, p in LISTED.named_parameters()}
    for module in LISTED.modules():
        if module in seen:
            a = a + scales.get(module, 1)
    return a, LISTED[2] in seen, len(seen), weights[LISTED[0].weight], {m.__class__.__name__ for m in scales}


@program(x)
def modules_in_sets_after_a_break(a):
    scales = {module: index for index, module in enumerate(LISTED)}
    print(end="")
    return a + scales[LISTED[1]], len(scales)
