"""Programs: operations on tensors and modules, each an expression that must be captured as one graph."""

# ruff: noqa: E501, E731

from __future__ import annotations

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
x = torch.tensor([1.0, 2.0, 3.0])
m = torch.arange(6.0).reshape(2, 3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.drop = nn.Dropout(0.5)
        self.scale = 2
        self.register_buffer("shift", torch.ones(3))

    def forward(self, z):
        return self.drop(self.norm(self.first(z))) * self.scale + self.shift


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.heads = nn.ModuleDict({"p": nn.ReLU(), "q": nn.Tanh()})
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, z, head="p"):
        for block in self.blocks:
            z = block(z) + z
        for name, module in self.heads.items():
            if name == head:
                z = module(z)
        return z * self.weight if self.training else z


BLOCK, EVAL, TREE = Block(), Block().eval(), Tree()
SEQUENCE = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 3))

EXPRESSIONS = {
    "attributes": lambda a, b: (a.shape, a.dtype, a.ndim, a.numel(), b.T, b.size(0), a.device, a.is_floating_point(), len(b), b.stride(), a + 1),
    "indexing": lambda a, b: (a[0], a[-1], a[1:], b[:, 1], b[..., 0], b[None].shape, b[0, 1], a[[0, 2]], b[1][2], a[:2] + 1),
    "shapes": lambda a, b: (b.reshape(3, 2), b.view(-1), b.flatten(), b.t(), b.transpose(0, 1), b.permute(1, 0), b.unsqueeze(0), b.expand(2, 3)),
    "reductions": lambda a, b: (b.sum(), b.mean(0), b.max(), b.amax(1), b.argmax(1), b.prod(), b.std(), b.var(1), b.sum(1, keepdim=True)),
    "named_results": lambda a, b: (b.max(1).values, b.min(0).indices, b.sort(1, descending=True)[0], b.topk(2, 1)[0]),
    "pairs": lambda a, b: [v + 1 for v in b.max(dim=1)],
    "joining": lambda a, b: (torch.cat([a, a]), torch.stack((a, a), 1), torch.cat((b, b), dim=1), torch.hstack([a, a])),
    "splitting": lambda a, b: (b.split(1), b.chunk(2, 0), b.unbind(1), [v * 2 for v in b.unbind()], torch.split(b, [1, 2], 1)),
    "pointwise": lambda a, b: (a.sin(), a.exp(), a.sqrt(), torch.log(a), torch.tanh(a), a.sigmoid(), a.abs(), -a, a.clamp(1, 2), a.pow(2), a.square()),
    "binary": lambda a, b: (a + b, a * b, b - a, b / (a + 1), torch.maximum(b, a), torch.add(a, b, alpha=2), a**2, 2**a, b // 2, b % 2),
    "comparing": lambda a, b: (a > 1, a.eq(2), torch.where(b > 2, b, a), (b > 1) & (b < 4), ~(b > 1), b.masked_fill(b > 2, 0.0), a != 2),
    "matmul": lambda a, b: (b @ a, torch.matmul(b, b.T), b.mm(b.t()), torch.einsum("ij,kj->ik", b, b), a.dot(a), torch.outer(a, a)),
    "creation": lambda a, b: (torch.zeros(3) + a, torch.ones_like(b), torch.arange(3) + a, torch.full((2,), 3.0), torch.eye(3) @ a, a.new_zeros(2), torch.linspace(0, 1, 3)),
    "conversion": lambda a, b: (a.to(torch.float64), a.double(), a.int(), a.long() + 1, a.to(b.dtype), a.bool(), a.half(), a.type_as(b), b.contiguous()),
    "cumulative": lambda a, b: (b.cumsum(1), a.cumprod(0), b.diff(), b.flip(0), b.roll(1, 1), torch.tril(b), torch.triu(b)),
    "gathering": lambda a, b: (b.gather(1, torch.zeros(2, 1, dtype=torch.int64)), b.index_select(1, torch.tensor([0, 2])), torch.take(b, torch.tensor([1]))) if b.ndim == 5 else b.index_select(0, torch.zeros(1, dtype=torch.int64)),
    "functional": lambda a, b: (F.relu(b - 2), F.softmax(b, dim=-1), F.log_softmax(b, 1), F.gelu(a), F.silu(a), F.layer_norm(b, (3,)), F.normalize(b)),
    "losses": lambda a, b: (F.mse_loss(b, b + 1), F.l1_loss(a, a * 2), F.smooth_l1_loss(a, a + 1), F.huber_loss(a, a * 3)),
    "linear": lambda a, b: (F.linear(b, torch.ones(4, 3)), F.linear(a, torch.eye(3), a), F.pad(b, (1, 1)), F.one_hot(torch.arange(3), 3)),
    "random": lambda a, b: (torch.rand(3) + a, F.dropout(b, 0.5, True), torch.randn(2), torch.rand_like(a), torch.bernoulli(torch.full((3,), 0.5))),
    "detached": lambda a, b: (a.detach() + 1, a.clone(), a.requires_grad, (a * 2).is_leaf, a.detach().requires_grad),
    "size_arithmetic": lambda a, b: (b.reshape(b.shape[1], b.shape[0]), a * b.shape[0], b.view(*b.shape), b.shape[-1] // 2, list(b.shape), b * 1),
    "methods_of_the_class": lambda a, b: (torch.Tensor.add(a, 1), torch.Tensor.__add__(a, a), torch.Tensor.__rsub__(a, 2), torch.Tensor.__getitem__(b, 0), torch.Tensor.size(b, 1) * a, [*map(torch.Tensor.sum, (a, b))], a.__mul__(2)),
    "triangles": lambda a, b: (torch.tril_indices(3, 4, -1), torch.triu_indices(3, 2, 1), b[tuple(torch.tril_indices(2, 2))], torch.nonzero_static(b > 2, size=4)),
    "as_tensor_of_tensors": lambda a, b: (torch.as_tensor(a) * 2, torch.as_tensor(b, dtype=torch.float64) + 1, torch.as_tensor(a, device="cpu"), torch.as_tensor(3.0) * a),
    "requires_grad_as_it_is": lambda a, b: (a * 2).requires_grad_(False) + torch.signal.windows.hamming(3),
    "loops": lambda a, b: [row * i for i, row in enumerate(b)],
    "sums": lambda a, b: (sum(v for v in b), sum([a, a], a), sum(b.unbind(1)), max(b.shape) * a),
    "dtypes": lambda a, b: (a + 1 if a.dtype == torch.float32 else a, a.dtype.is_floating_point, torch.float32 == a.dtype, {torch.float32: 1}[a.dtype], str(a.dtype)),
    "isinstance": lambda a, b: a + 1 if isinstance(a, torch.Tensor) and torch.is_tensor(b) and torch.is_floating_point(a) else b,
    "getattr": lambda a, b: (getattr(a, "sum")(), hasattr(a, "nope"), getattr(a, "nope", 1), getattr(torch, "sin")(a), torch.Tensor.cos(a)),  # noqa: B009
    "dim_methods": lambda a, b: (b.squeeze(), b.unsqueeze(-1).squeeze(-1), b.movedim(0, 1), b.swapaxes(0, 1), b.repeat(1, 2), torch.broadcast_to(a, (2, 3))),
    "linear_algebra": lambda a, b: (torch.linalg.norm(a), b.norm(), torch.linalg.det(torch.eye(2)), torch.linalg.inv(torch.eye(2) * 2), torch.trace(b @ b.T)),
    "logic": lambda a, b: (torch.logical_and(a > 1, a < 3), torch.logical_not(a > 1), (b > 0).any(), (b >= 0).all(1), torch.isnan(a), torch.isfinite(b)),
    "module": lambda a, b: EVAL(b),
    "module_training": lambda a, b: BLOCK(b),
    "module_tree": lambda a, b: TREE(b, head="q"),
    "module_sequence": lambda a, b: SEQUENCE(b) + SEQUENCE[0](b).sum(),
    "module_members": lambda a, b: (len(TREE.blocks), TREE.blocks[0].weight.sum(), "p" in TREE.heads, TREE.heads["p"](a), EVAL.shift * 2, BLOCK.training, EVAL.drop.p),
    "module_parameters": lambda a, b: sum(p.sum() for p in SEQUENCE.parameters()),
    "module_children": lambda a, b: [type(v).__name__ for v in SEQUENCE] + [a + 1],
}
for _name, _expression in EXPRESSIONS.items():
    _expression.__name__ = _name
    PROGRAMS.one(x, m)(_expression)


def _statement(name, source):
    namespace = {"torch": torch, "F": F}
    exec(f"def {name}(a, b):\n    " + "\n    ".join(source.split("; ")), namespace)
    PROGRAMS.one(x, m)(namespace[name])


STATEMENTS = {
    f"{kind}_{index}": text.format(op)
    for kind, text in {
        "in_place": "c = a.clone(); c.{}; return c, a",
        "on_input": "a.{}; return a",
        "on_view": "c = b.clone(); c[0].{}; return c",
    }.items()
    for index, op in enumerate(
        ("add_(1)", "mul_(2)", "sub_(a)", "div_(2)", "neg_()", "zero_()", "fill_(3)", "relu_()", "clamp_(max=2)", "copy_(a * 2)", "sqrt_()", "exp_()")
    )
} | {
    f"operator_{index}": f"c = a.clone(); c {op} 2; return c, a"
    for index, op in enumerate(("+=", "-=", "*=", "/=", "**="))
} | {
    "store_item": "c = a.clone(); c[0] = 9; return c",
    "store_slice": "c = b.clone(); c[:, 1] = a[:2]; return c",
    "store_mask_free": "c = b.clone(); c[0] += 1; return c",
    "out_argument": "c = torch.empty(3); torch.add(a, 1, out=c); return c",
    "view_of_input": "c = b[0]; c.add_(1); return b, c",
    "chained_in_place": "c = a.clone().add_(1).mul_(2); return c",
    "same_result_twice": "c = a + 1; return c, c, [c]",
    "input_returned": "return a, a + 1, b",
}  # fmt: skip
for _name, _source in STATEMENTS.items():
    _statement(_name, _source)


@PROGRAMS.one(x, torch.tensor([4.0, 5.0]))
def data_replaced(a, b):
    a.data = b
    a.add_(1)
    c = b * 2
    c.data = torch.zeros(1)
    return a, c + 1, a.shape


@PROGRAMS.one(torch.ones(3, requires_grad=True), torch.tensor([4.0, 5.0]))
def data_of_a_leaf_replaced(a, b):
    a.data = b * 2
    return a, b + 1
