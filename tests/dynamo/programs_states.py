"""Programs: tensors' attributes and methods, modes of the thread, random numbers, autograd, and what else changes tensors."""

# ruff: noqa: B009, E731

from __future__ import annotations

import numpy as np

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.utils.checkpoint import checkpoint
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
m = torch.arange(6.0).reshape(2, 3)
STATE = torch.zeros(3)
LINEAR = nn.Linear(3, 3)


def leaf():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@one(m)
def shapes_unpacked(a):
    rows, columns = a.shape
    n, *rest = a.size()
    return a.reshape(columns, rows), a.view(-1, rows), a * n, rest, a.size(-1), a.shape[-1], a.dim(), a.shape.numel(), len(a.size())


@one(x)
def methods_by_getattr(a):
    return [getattr(a, name)() for name in ("sum", "exp", "neg")], getattr(torch, "cos")(a), getattr(a, "dtype"), getattr(F, "relu")(a)


@one(x)
def dtype_and_device(a):
    kind = torch.float64 if a.dtype == torch.float32 else torch.float32
    return a.to(kind), a.device == torch.device("cpu"), a.device.type, a.to(a.device), a.dtype in (torch.float16, torch.float32), torch.promote_types(a.dtype, kind)


@program(x)
def item_breaks(a):
    n = (a + 1).sum().item()
    return a * n


@program(x)
def truth_breaks(a):
    if (a + 1).sum() > 3:
        return a * 2
    return a


@program(x)
def list_breaks(a):
    values = (a + 1).tolist()
    return a * values[0], len(values)


@program(x)
def numpy_breaks(a):
    found = (a + 1).numpy()
    return a + float(found.sum()), torch.from_numpy(np.ones(3, dtype=np.float32)) + a


@program(x)
def numbers_of_tensors(a):
    s = a.sum()
    return a * int(s), a * float(s), range(int(s))[-1], f"{s.item():.1f}"


@program(x)
def tensor_texts(a):
    b = a + 1
    return str(b), repr(b), f"{b}"


@one(x)
def data_of_a_result(a):
    b = a * 2
    return b.data + 1, b.detach() + 1


@one(x)
def data_of_an_argument(a):
    a.data.add_(1)
    return a + 1, a.data * 2


@one()
def data_of_parameters():
    average = [torch.ones_like(parameter) for parameter in LINEAR.parameters()]
    for kept, parameter in zip(average, LINEAR.parameters(), strict=True):
        kept.data.mul_(0.9).add_(parameter.data, alpha=0.1)
    return average, LINEAR.weight.data.requires_grad


@program()
def gradient_of_a_leaf():
    w = leaf()
    (w * 2).sum().backward()
    return w.grad, w.grad + 1


@program(x)
def requires_grad_switched(a):
    b = (a * 2).detach().requires_grad_()
    (b * b).sum().backward()
    return b.grad


@program(x)
def gradient_function(a):
    b = a.clone().requires_grad_()
    (found,) = torch.autograd.grad((b**2).sum(), b)
    return found


@one(x)
def in_place_on_a_global(a):
    STATE.add_(a)
    return STATE + 1


@one(x)
def in_place_chain(a):
    a.mul_(2).add_(1)
    a[0] = 7
    a[1:] += 1
    return a, a + 1


@one(x)
def out_arguments(a):
    target = torch.empty(3)
    found = torch.add(a, 1, out=target)
    torch.mul(target, 2, out=target)
    return target, found is target


@program(x)
def out_argument_of_a_global(a):
    torch.sin(a, out=STATE)
    return STATE + 1


@one(x)
def grad_modes(a):
    w = LINEAR(a)
    with torch.no_grad():
        first = LINEAR(a)
        with torch.enable_grad():
            second = LINEAR(a)
    with torch.set_grad_enabled(False):
        third = LINEAR(a)
    return w.requires_grad, first.requires_grad, second.requires_grad, third.requires_grad, torch.is_grad_enabled()


@program(x)
def inference_mode_block(a):
    with torch.inference_mode():
        b = a * 2
        inside = torch.is_inference_mode_enabled()
    return b + 1, inside, torch.is_inference_mode_enabled()


@one(x)
def grad_enabled_called(a):
    torch.set_grad_enabled(False)
    first = LINEAR(a)
    torch.set_grad_enabled(True)
    return first.requires_grad, LINEAR(a).requires_grad


@program(x)
def grad_left_disabled(a):
    torch.set_grad_enabled(False)
    return a + 1


@torch.no_grad()
def without(a):
    return LINEAR(a)


@torch.enable_grad()
def within(a):
    return LINEAR(a)


@torch.inference_mode()
def inferred(a):
    return a * 2


@torch.set_grad_enabled(False)
def disabled(a):
    return LINEAR(a)


@one(x)
def decorated_modes(a):
    return without(a).requires_grad, within(a).requires_grad, disabled(a).requires_grad, torch.is_grad_enabled()


@program(x)
def decorated_inference(a):
    return inferred(a) + 1, inferred(a).is_inference(), torch.is_inference_mode_enabled()


@program(x)
def autocast_raising(a):
    try:
        with torch.autocast("cpu"):
            b = LINEAR(a)
            raise ValueError("inside")
    except ValueError:
        return b, LINEAR(a).dtype


@program(x)
def autocast_nested_with_a_break(a):
    with torch.autocast("cpu"):
        b = LINEAR(a)
        with torch.autocast("cpu", enabled=False):
            print(end="")
            c = LINEAR(a)
        d = LINEAR(a)
    return b, c, d, LINEAR(a)


@program(x)
def autocast_entered_by_hand(a):
    region = torch.autocast("cpu")
    region.__enter__()
    try:
        b = LINEAR(a)
    finally:
        region.__exit__(None, None, None)
    return b, LINEAR(a)


@program(torch.tensor([1.0, 2.0]))
def made_tensor_written(a):
    b = torch.tensor([1.0, 2.0])
    b += a
    return b


@one(x)
def decorated_inside(a):
    @torch.no_grad()
    def go(b):
        return LINEAR(b)

    return go(a).requires_grad, torch.no_grad()(lambda b: LINEAR(b))(a).requires_grad


@one(x)
def autocast_block(a):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = LINEAR(a)
        inside = torch.is_autocast_enabled("cpu")
    return b, b.dtype, LINEAR(a).dtype, inside, torch.is_autocast_enabled("cpu")


@one(x)
def autocast_nested(a):
    with torch.autocast("cpu"):
        b = LINEAR(a)
        with torch.autocast("cpu", enabled=False):
            c = LINEAR(a)
        d = a @ a
    return b.dtype, c.dtype, d.dtype, b.float() + c


@torch.autocast("cpu", dtype=torch.bfloat16)
def cast(a):
    return LINEAR(a)


@one(x)
def autocast_decorated(a):
    return cast(a), cast(a).dtype


@program(x)
def autocast_with_a_break(a):
    with torch.autocast("cpu"):
        b = LINEAR(a)
        print(end="")
        c = LINEAR(a)
    return b, c, c.dtype


@program(x)
def default_dtype_switched(a):
    torch.set_default_dtype(torch.float64)
    try:
        return torch.ones(2) + 1, torch.get_default_dtype()
    finally:
        torch.set_default_dtype(torch.float32)


@program(x)
def seeds(a):
    torch.manual_seed(3)
    first = torch.rand(3) + a
    torch.manual_seed(3)
    return first, torch.rand(3) + a, torch.randn(2), torch.randint(0, 9, (3,)), torch.randperm(4)


@one(x)
def random_numbers(a):
    return torch.rand(3) + a, F.dropout(a), torch.normal(a, 1.0), torch.randint(0, 5, (2,)), torch.randperm(3), torch.rand_like(a), a.clone().uniform_()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value * value

    @staticmethod
    def backward(ctx, grad):
        (value,) = ctx.saved_tensors
        return grad * 2 * value


@program()
def autograd_function():
    w = leaf()
    found = Square.apply(w)
    found.sum().backward()
    return found, w.grad


@program(x)
def checkpointed(a):
    found = checkpoint(LINEAR, a, use_reentrant=False)
    LINEAR.zero_grad()
    found.sum().backward()
    return found, LINEAR.weight.grad


class Doubling(nn.Module):
    def forward(self, weight):
        return weight * 2


PARAMETRIZED = nn.Linear(3, 3)
nn.utils.parametrize.register_parametrization(PARAMETRIZED, "weight", Doubling())
NORMED = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))


@program(x)
def parametrized(a):
    return PARAMETRIZED(a), PARAMETRIZED.weight


@program(x)
def weight_normed(a):
    return NORMED(a)


@program(x)
def parameter_made_inside(a):
    weight = nn.Parameter(torch.ones(3))
    return (weight * a).requires_grad, weight + a


class Tagged(torch.Tensor):
    pass


@program(x)
def tensor_subclass(a):
    tagged = a.as_subclass(Tagged)
    return isinstance(tagged, Tagged), type(tagged + 1).__name__


@one(m)
def functional_arguments(a):
    return (
        F.softmax(a, 1), F.softmax(a, dim=-1), F.softmax(input=a, dim=0, dtype=torch.float64), F.pad(a, (1, 1), value=2.0),
        F.pad(a[None], [0, 1], mode="replicate"), F.gelu(a, approximate="tanh"), F.leaky_relu(a, 0.2, inplace=False), F.elu(a),
        F.layer_norm(a, [3]), F.layer_norm(a, normalized_shape=(3,), eps=1e-3), F.dropout(a, p=0.0), F.normalize(a, p=1, dim=0),
        F.cross_entropy(a, torch.tensor([0, 2])), F.cross_entropy(a, torch.tensor([0, 2]), reduction="sum", label_smoothing=0.1),
        F.interpolate(a[None], size=6), F.interpolate(a[None], scale_factor=2, mode="linear", align_corners=False),
        F.avg_pool1d(a[None], 2), F.unfold(a[None, None], kernel_size=(1, 2)), F.cosine_similarity(a, a + 1, dim=1), F.glu(a[:, :2]),
    )  # fmt: skip


@one(torch.arange(24.0).reshape(2, 3, 4))
def rearranged(a):
    batch, rows, columns = a.shape
    heads = a.reshape(batch, rows, 2, columns // 2).permute(0, 2, 1, 3)
    back = heads.transpose(1, 2).contiguous().view(batch, rows, columns)
    return heads, back, a.flatten(1), a.unflatten(2, (2, 2)), torch.einsum("brc->bcr", a), a.view(batch, -1).t(), a.movedim(-1, 0)


@one(x)
def complex_numbers(a):
    z = torch.complex(a, a * 2)
    return z.real, z.imag, z.abs(), z * 1j, torch.view_as_real(z), z.conj().resolve_conj(), a * 2j, torch.fft.fft(a), z.angle(), z.is_complex()


@one(x)
def sizes_calculated(a):
    n = a.shape[0]
    size = torch.Size([n, 2]) + (1,)
    return a.new_zeros(size), torch.ones(*size), torch.zeros(n * 2), size.numel(), a.expand(2, n), a.repeat(n, 1), a.new_full((n,), n)


@one(m)
def indexing_of_all_kinds(a):
    i = torch.tensor([0, 1])
    return a[i], a[:, i], a[i, i], a[..., 0], a[None], a[a.shape[0] - 1], a[[1, 0]], a[1:, ::2], a[True], a[slice(0, 1)], a[(0, 1)]


@one(x)
def comparisons_with_none(a):
    return a is None, a is not None, a == None, None in [1, None], a is a, [a][0] is a  # noqa: E711


@one(x)
def tensors_in_containers(a):
    table = {"a": a, "b": [a + 1, (a * 2,)]}
    table["b"].append(table["a"])
    return table, table["b"][2] is a, sum(table["b"][:1]) + 1, len(table["b"])


@program(x)
def tensor_membership(a):
    items = [a + 1, a]
    return a + 1, any(item is a for item in items)


@one(x)
def tensor_attributes_of_all_kinds(a):
    return a.T, a.mT if a.ndim > 1 else a, a.real, a.ndim, a.is_leaf, a.requires_grad, a.layout, a.is_cuda, a.itemsize, a.nbytes, a.is_contiguous(), a.stride(), a.storage_offset(), a.element_size(), a.names if False else None, a + 1


@one(x)
def tensors_made(a):
    return torch.tensor([1.0, 2.0]), torch.tensor(3), torch.as_tensor([1, 2]), torch.full((2,), 7), torch.tensor(2.5) * a, torch.tensor([[1, 2], [3, 4]], dtype=torch.float64), a.new_tensor([1.0, 2.0])


@program(x)
def attributes_given_to_tensors(a):
    b = a + 1
    b.note = "kept"
    return b, b.note


@program(x)
def compile_state(a):
    return a + 1, torch.compiler.is_compiling() in (True, False)


MADE_IN_INFERENCE_MODE = inferred(x)


@one(x)
def tensors_of_inference_mode(a):
    with torch.inference_mode():
        b = LINEAR(a)
        c = b.view(-1).add_(1)
        with torch.inference_mode(False):
            d = a + 1
    return b, c, d, [t.is_inference() for t in (a, b, c, d, b + 1, MADE_IN_INFERENCE_MODE)], torch.is_inference_mode_enabled()


@program.broken(x, pieces=3)
def inference_mode_with_a_break(a):
    with torch.inference_mode():
        b = LINEAR(a)
        print(end="")
        c = b + 1
    return b, c, a + 1, b.is_inference(), c.is_inference(), torch.is_grad_enabled()


@one(x, x.clone())
def asked_for_inference(a, b):
    return a.is_inference(), a + 1


@one(m)
def shapes_changed_in_place(a):
    b = a * 2
    view = b.view(-1)
    b.t_().unsqueeze_(0)
    view[0] = 7
    shape = a.shape
    same = a.t_() is a
    a.squeeze_()
    return b, b.stride(), view, shape, a.shape, same, a + 1


@program(m)
def shape_changed_before_a_break(a):
    a.t_()
    print(end="")
    return a @ a.t()


@program(x)
def random_numbers_that_nothing_uses(a):
    for _ in range(3):
        b = torch.rand(3) + a
    torch.nn.functional.dropout(a, 0.5)
    return b, torch.rand(2)
