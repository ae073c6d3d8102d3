"""Tensors: operators, indexing, attributes, functions, in-place changes."""

from typing import List, Optional, Tuple

import rushlight as torch
import rushlight.nn.functional as F


def arithmetic(a: torch.Tensor, b: torch.Tensor):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** 2, -a, a @ b
#: (torch.arange(1, 5).float(), torch.full((4,), 2.0))


def compared(a: torch.Tensor, b: torch.Tensor):
    return a < b, a <= b, a > b, a >= b, a == b, a != b
#: (torch.arange(3), torch.ones(3))


def logical(a: torch.Tensor, b: torch.Tensor):
    return a & b, a | b, a ^ b, ~a
#: (torch.tensor([True, False]), torch.tensor([True, True]))


def shifts(a: torch.Tensor):
    return a << 2, a >> 1
#: (torch.arange(4),)


def in_place(a: torch.Tensor):
    a += 1
    a *= 2
    a -= torch.ones(2)
    a /= 2
    a.add_(3)
    return a
#: (torch.ones(2),)


def indexed(a: torch.Tensor):
    return a[0], a[-1], a[0, 1], a[:, 1], a[1:], a[:, ::2], a[..., 0], a[None], a[:, None, 1:]
#: (torch.arange(12).reshape(3, 4),)


def indexed_by_tensors(a: torch.Tensor, i: torch.Tensor):
    return a[i], a[:, i], a[i, i], a[a > 4]
#: (torch.arange(12).reshape(3, 4), torch.tensor([0, 2]))


def indexed_by_lists(a: torch.Tensor):
    return a[[0, 2]], a[[0, 1], [1, 2]]
#: (torch.arange(12).reshape(3, 4),)


def indexed_by_variables(a: torch.Tensor, i: int, j: int):
    return a[i], a[i:j], a[i, j]
#: (torch.arange(12).reshape(3, 4), 1, 2)


def assigned(a: torch.Tensor):
    a[0] = 1
    a[1, 2] = 9
    a[:, 0] = torch.tensor([5, 6, 7])
    a[2, 1:] += 2
    return a
#: (torch.zeros(3, 4),)


def assigned_by_mask(a: torch.Tensor):
    a[a > 1] = 0
    a[torch.tensor([0, 1])] = 7
    return a
#: (torch.arange(4),)


def attributes(a: torch.Tensor):
    return a.shape, a.ndim, a.dtype, a.device, a.requires_grad, a.is_cuda, a.layout, a.is_leaf
#: (torch.ones(2, 3),)


def transposed(a: torch.Tensor):
    return a.T, a.mT, a.t()
#: (torch.ones(2, 3),)


def sizes(a: torch.Tensor):
    return a.size(), a.size(0), a.shape[1], a.dim(), a.numel(), len(a), a.stride()
#: (torch.ones(2, 3),)


def reshaped(a: torch.Tensor):
    b = a.view(-1)
    return b, a.view(3, 2), a.reshape([6]), a.view(a.size(1), a.size(0)), a.flatten(), a.permute(1, 0), a.unsqueeze(0)
#: (torch.arange(6).reshape(2, 3),)


def expanded(a: torch.Tensor):
    return a.expand(3, 2), a.repeat(2), a.expand_as(torch.ones(4, 2)), a.repeat(2, 2)
#: (torch.ones(2),)


def reductions(a: torch.Tensor):
    return a.sum(), a.mean(0), a.max(), a.min(1), a.prod(), a.std(), a.sum(dim=1, keepdim=True), a.argmax(), a.norm()
#: (torch.arange(6).reshape(2, 3).float(),)


def constructed(n: int):
    return torch.zeros(n), torch.ones([2, n]), torch.full((n,), 3.5), torch.arange(n), torch.eye(2), torch.linspace(0, 1, n), torch.empty(0)
#: (3,)


def constructed_like(a: torch.Tensor):
    return torch.zeros_like(a), a.new_ones([2]), torch.full_like(a, 2), torch.zeros(2, dtype=a.dtype, device=a.device)
#: (torch.ones(2, dtype=torch.float64),)


def typed(a: torch.Tensor):
    return a.to(torch.int64), a.float(), a.double().dtype == torch.float64, a.long(), a.type_as(torch.ones(1)), a.bool(), a.half()
#: (torch.arange(3),)


def tensor_literals():
    return torch.tensor(3), torch.tensor(2.5), torch.tensor([1, 2]), torch.tensor([[1.0]]), torch.tensor(True), torch.tensor([1, 2], dtype=torch.float32)
#: ()


def dtype_argument(x: torch.Tensor, d: torch.dtype):
    return x.to(d)
#: (torch.ones(2), torch.float64)


def device_values(x: torch.Tensor):
    d = torch.device("cpu")
    return x.to(d), x.device == d, x.device.type, torch.zeros(1, device=d)
#: (torch.ones(2),)


def joined(a: torch.Tensor, b: torch.Tensor):
    return torch.cat([a, b]), torch.stack((a, b), dim=1), torch.cat((a, b), 0)
#: (torch.ones(2), torch.zeros(2))


def divided(a: torch.Tensor):
    x, y = a.chunk(2)
    p, q = torch.split(a, 2)
    parts = a.split([1, 3])
    return x, y, p, q, parts, a.unbind(0)
#: (torch.arange(4),)


def functions(a: torch.Tensor):
    return torch.relu(a), torch.sigmoid(a), a.tanh(), torch.exp(a), a.abs().sqrt(), torch.clamp(a, min=0), a.clamp(-1, 1), torch.where(a > 0, a, -a)
#: (torch.tensor([-2.0, 0.5, 3.0]),)


def softmaxes(a: torch.Tensor):
    return torch.softmax(a, dim=-1), a.log_softmax(-1), torch.softmax(a, 0, dtype=torch.float64)
#: (torch.arange(3).float(),)


def products(a: torch.Tensor, b: torch.Tensor):
    return torch.mm(a, b), a.matmul(b), torch.addmm(torch.ones(2), a, b), torch.einsum("ij,jk->ik", [a, b]), torch.bmm(a[None], b[None])
#: (torch.ones(2, 3), torch.ones(3, 2))


def sorted_values(a: torch.Tensor):
    values, order = a.sort(descending=True)
    top = a.topk(2)
    return values, order, top.values, top[1]
#: (torch.tensor([3, 1, 2]),)


def functional(x: torch.Tensor, w: torch.Tensor):
    return torch.nn.functional.linear(x, w)
#: (torch.ones(2, 3), torch.ones(4, 3))


def conditions(a: torch.Tensor):
    return bool(a.any()), bool(a.all()), int(a.sum()), float(a.float().mean())
#: (torch.tensor([1, 0, 3]),)


def gradient(x: torch.Tensor):
    y = (x * x).sum()
    return y, x.requires_grad, y.requires_grad
#: (torch.ones(2, requires_grad=True),)


def detached(x: torch.Tensor):
    return x.detach() * 2, x.clone(), x.data
#: (torch.ones(2, requires_grad=True),)


def optional_tensor(x: torch.Tensor, y: Optional[torch.Tensor] = None):
    if y is None:
        return x
    return x + y
#: (torch.ones(2),)
#: (torch.ones(2), torch.ones(2))


def optional_refined(y: Optional[torch.Tensor]):
    assert y is not None
    return y * 2
#: (torch.ones(2),)
#: (None,)


def list_of_tensors(xs: List[torch.Tensor]):
    total = torch.zeros(2)
    for x in xs:
        total += x
    return total, xs[0], len(xs)
#: ([torch.ones(2), torch.ones(2)],)


def tuple_of_tensors(t: Tuple[torch.Tensor, int]):
    x, n = t
    return x * n
#: ((torch.ones(2), 3),)


def scalar_results(x: torch.Tensor):
    a = x.item()
    return x.size(0) * 2.5, x.sum().item() > 2
#: (torch.ones(3),)


def implicit_scalars(x: torch.Tensor, n: torch.Tensor):
    return x.view(int(n), -1), torch.ones(int(n))
#: (torch.ones(4), torch.tensor(2))


def loops_over_sizes(x: torch.Tensor):
    out = torch.zeros(x.size(0))
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            out[i] += x[i, j] * (j + 1)
    return out
#: (torch.ones(2, 3),)


def views_write(x: torch.Tensor):
    y = x.view(-1)
    y[0] = 5
    z = x[1]
    z.mul_(10)
    return x
#: (torch.ones(2, 2),)


def newaxis(x: torch.Tensor):
    return x[:, None] + x[None, :], x.unsqueeze(-1).squeeze(-1)
#: (torch.arange(3),)


def statistics(x: torch.Tensor):
    return x.var(0, unbiased=False), torch.var_mean(x), x.median(), x.cumsum(0), x.flip([0]), x.roll(1, 0)
#: (torch.arange(6).reshape(2, 3).float(),)


def gathers(x: torch.Tensor, i: torch.Tensor):
    return x.gather(1, i), x.index_select(0, torch.tensor([1])), x.masked_fill(x > 2, -1.0), x.scatter(1, i, 0.5)
#: (torch.arange(6).reshape(2, 3).float(), torch.tensor([[0], [2]]))


def shape_arithmetic(x: torch.Tensor):
    b, c = x.shape
    return x.reshape(b * c), x.new_zeros(b + 1, c // 2), [b, c]
#: (torch.ones(2, 4),)


def activations(x: torch.Tensor):
    return F.relu(x), F.gelu(x), F.softmax(x, dim=-1), F.silu(x), F.leaky_relu(x, 0.1), F.elu(x), F.hardtanh(x), F.softplus(x)
#: (torch.tensor([-1.0, 0.5, 2.0]),)


def losses(x: torch.Tensor, y: torch.Tensor, t: torch.Tensor):
    return F.mse_loss(x, y), F.l1_loss(x, y), F.cross_entropy(x, t), F.nll_loss(F.log_softmax(x, 1), t), F.smooth_l1_loss(x, y)
#: (torch.arange(6).reshape(2, 3).float(), torch.ones(2, 3), torch.tensor([0, 2]))


def convolved(x: torch.Tensor, w: torch.Tensor):
    return F.conv2d(x, w, padding=1), F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.interpolate(x, scale_factor=2.0), F.adaptive_avg_pool2d(x, 1)
#: (torch.arange(16).reshape(1, 1, 4, 4).float(), torch.ones(1, 1, 3, 3))


def normalised(x: torch.Tensor):
    return F.layer_norm(x, [3]), F.normalize(x), F.dropout(x, 0.5, training=False), F.pad(x, [1, 1]), F.one_hot(torch.tensor([0, 2]), 3)
#: (torch.arange(6).reshape(2, 3).float(),)


def sliced_by_tensors(x: torch.Tensor, t: torch.Tensor):
    return x[:, :t], x[t:], [1, 2, 3][:t]
#: (torch.arange(6).reshape(2, 3), torch.tensor(1))


def tensors_for_a_list(x: torch.Tensor, y: torch.Tensor):
    return torch.einsum('ij,jk->ik', x, y), torch.einsum('ij->j', [x]), F.triplet_margin_loss(x, y, x + 1)
#: (torch.arange(4).reshape(2, 2).float(), torch.ones(2, 2))
