"""`vmap`: dimensions, nesting, randomness, writes, gradients through it and inside it, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import func, nn, vmap
from rushlight.func import functional_call, grad, hessian, jacrev, jvp, stack_module_state, vjp

F = nn.functional


def looped(function, *args, dims=None):
    """The results of a loop over the first dimension of the arguments, stacked."""
    count = next(a.shape[0] for a, dim in zip(args, dims or (0,) * len(args), strict=True) if dim is not None)
    rows = (
        tuple(a[i] if d is not None else a for a, d in zip(args, dims or (0,) * len(args), strict=True)) for i in range(count)
    )
    return torch.stack([function(*row) for row in rows])


def same(a, b):
    return a.shape == b.shape and a.dtype is b.dtype and torch.allclose(a, b, atol=1e-5)


X, Y, W = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4)
CASES = {
    "broadcasting": (lambda a, b: a.unsqueeze(1) * b + a.sum(), (X, Y)),
    "a number of another dtype": (lambda a, b: a.sum().double() * b, (X, Y)),
    "indexing": (lambda a, b: a[torch.tensor([0, 2])] + b[[1, 3]], (X, Y)),
    "indices of each example": (lambda a, b: a[b.argsort()], (X, Y)),
    "an index of each example": (lambda a, b: a[b.argmax()], (X, Y)),
    "gather and scatter": (lambda a, b: a.gather(0, b.argsort()).scatter_add(0, a.argsort(), b), (X, Y)),
    "products": (lambda a, b: torch.einsum("i,j->ij", a, b) @ W.t() + a @ b, (X, Y)),
    "sorting": (lambda a, b: a.sort().values + b.topk(4).values.cumsum(0), (X, Y)),
    "joining": (lambda a, b: torch.cat([a, torch.ones(2), b]).view(2, 5).t().contiguous().flatten(), (X, Y)),
    "writes": (lambda a, b: a.new_zeros(6).index_put_((torch.tensor([1, 3, 5, 0]),), b).add_(1).mul_(a[0]), (X, Y)),
    "writes to views": (lambda a, b: written(a, b), (X, Y)),
    "reductions": (lambda a, b: a.var() + b.norm() + a.logsumexp(-1) + a.max() + b.argmin() + a.median(), (X, Y)),
    "where": (lambda a, b: torch.where(a > b, a, b).masked_fill(a > 1, 0.0), (X, Y)),
    "losses": (lambda a, b: F.cross_entropy(a, b.argmax()) + F.mse_loss(a, b) + F.kl_div(a, b.softmax(0)), (X, Y)),
    "factorizations": (lambda a, b: torch.linalg.solve(torch.outer(a, a) + torch.eye(4), b), (X, Y)),
}


def written(a, b):
    made = a.clone()
    made[1:3] = b[:2]
    made[0] += 1
    return made


@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_what_a_loop_gives(name):
    function, args = CASES[name]
    assert same(vmap(function)(*args), looped(function, *args))
    assert same(vmap(function, (1, -1), -1)(*(a.t() for a in args)), looped(function, *args).movedim(0, -1))
    assert same(vmap(function, (0, None))(args[0], args[1][0]), looped(function, args[0], args[1][0], dims=(0, None)))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3, groups=2), nn.ConvTranspose2d(4, 4, 3), nn.LayerNorm([4, 6, 6]), nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4), nn.BatchNorm2d(4, track_running_stats=False), nn.MaxPool2d(2), nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(2), nn.Upsample(scale_factor=2), nn.ReflectionPad2d(1),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_layers_and_ensembles_of_them(layer):
    images = torch.randn(3, 2, 4, 6, 6)
    assert same(vmap(layer)(images), looped(layer, images))
    parameters = {name: torch.stack([p, p * 2, p + 1]).detach() for name, p in layer.named_parameters()}
    if parameters:
        call = vmap(lambda own, image: functional_call(layer, own, image))
        wanted = [functional_call(layer, {n: p[i] for n, p in parameters.items()}, images[i]) for i in range(3)]
        assert same(call(parameters, images), torch.stack(wanted))


def test_attention_with_masks():
    query, key, value = torch.randn(3, 3, 2, 2, 5, 4).unbind(0)
    mask = torch.randn(3, 5, 5) > -0.5
    assert same(vmap(F.scaled_dot_product_attention)(query, key, value), F.scaled_dot_product_attention(query, key, value))
    masked = looped(F.scaled_dot_product_attention, query, key, value, mask)
    assert same(vmap(F.scaled_dot_product_attention)(query, key, value, mask), masked)


def test_trees_keywords_and_results_that_do_not_depend_on_the_batch():
    def function(tree, *, scale):
        return {"sum": tree["a"].sum() * scale, "shared": W[0]}, tree["b"][0] * 2

    found, doubled = vmap(function, ({"a": 0, "b": 1},), ({"sum": 0, "shared": 1}, 0))({"a": X, "b": [X.t()]}, scale=3)
    assert same(found["sum"], X.sum(1) * 3)
    assert same(found["shared"], W[0].expand(3, 4).t())
    assert same(doubled, X * 2)
    assert vmap(lambda a: (a, 2), out_dims=(0, None))(X)[1] == 2


def test_nested_calls():
    assert same(vmap(vmap(torch.dot, (None, 0)), (0, None))(X, Y), X @ Y.t())
    assert same(vmap(lambda a: vmap(lambda b: a + b, out_dims=1)(Y))(X), (X[:, None] + Y).transpose(1, 2))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 10])
def test_chunks(chunk_size):
    assert same(vmap(lambda a, b: a * b, (0, 1), 1, chunk_size=chunk_size)(X, Y.t()), (X * Y).t())


def test_examples_of_no_batch():
    assert vmap(lambda a: a.sin().sum() * torch.ones(2))(torch.empty(0, 3)).shape == (0, 2)


def test_operators_without_a_rule_run_example_by_example():
    with pytest.warns(
        UserWarning, match="performance drop because we have not yet implemented the batching rule for aten::_pdist"
    ):
        found = vmap(torch.pdist)(torch.arange(18.0).view(3, 3, 2))
    assert same(found, looped(torch.pdist, torch.arange(18.0).view(3, 3, 2)))


# Randomness


def test_random_numbers_need_leave():
    for draw in (lambda a: torch.rand(2), lambda a: F.dropout(a), lambda a: torch.bernoulli(a.sigmoid()), torch.randn_like):
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            vmap(draw)(X)
    assert same(vmap(lambda a: F.dropout(a, training=False))(X), X)


@pytest.mark.parametrize(
    "draw",
    [
        lambda a: torch.rand(8), lambda a: torch.randperm(8), lambda a: torch.randn_like(torch.ones(8)),
        lambda a: F.dropout(torch.ones(8)), lambda a: torch.randint(0, 100, (8,)), lambda a: a.new_empty(8).uniform_(),
        lambda a: torch.bernoulli(torch.full((8,), 0.5)), lambda a: torch.normal(torch.zeros(8), 1.0),
        lambda a: torch.normal(torch.zeros(8), torch.ones(1)), lambda a: torch.binomial(torch.full((8,), 9.0), torch.full((8,), 0.5)),
    ],
)  # fmt: skip
def test_same_and_different_numbers(draw):
    torch.manual_seed(0)
    equal, unequal = (vmap(draw, randomness=mode)(torch.zeros(6, 3)) for mode in ("same", "different"))
    assert all(torch.equal(row, equal[0]) for row in equal)
    assert not all(torch.equal(row, unequal[0]) for row in unequal)


def test_writing_random_numbers_of_each_example_to_what_is_shared():
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unbatched tensor"):
        vmap(lambda a: torch.zeros(3).uniform_() + a[0], randomness="different")(X)


def test_distributions_of_each_example_have_numbers_of_their_own():
    mean, deviation = torch.zeros(5, 2, 3), torch.ones(3)
    torch.manual_seed(0)
    expected = torch.normal(mean, deviation)
    torch.manual_seed(0)
    assert torch.equal(vmap(torch.normal, in_dims=(0, None), randomness="different")(mean, deviation), expected)
    for draw in (lambda a: torch.normal(0.0, a), lambda a: torch.normal(a, 1.0), lambda a: torch.normal(deviation, a)):
        with pytest.raises(RuntimeError, match="does not currently support same randomness with a batched tensor"):
            vmap(draw, randomness="same")(mean)


# Gradients


def test_gradients_through_a_map():
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    wanted = torch.autograd.grad((x @ w.t()).tanh().pow(2).sum(), (x, w))
    found = torch.autograd.grad(vmap(lambda a: F.linear(a, w).tanh().pow(2).sum())(x).sum(), (x, w))
    assert all(map(same, found, wanted))


def test_a_gradient_for_each_example():
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    images, labels = torch.randn(5, 1, 6, 6), torch.tensor([0, 3, 1, 2, 1])

    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    found = vmap(grad(loss), (None, 0, 0))(parameters, images, labels)
    wanted = [grad(loss)(parameters, image, label) for image, label in zip(images, labels, strict=True)]
    for name, gradient in found.items():
        assert same(gradient, torch.stack([own[name] for own in wanted]))


def test_an_ensemble():
    models = [nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.BatchNorm1d(3)).eval() for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    assert parameters["0.weight"].shape == (3, 3, 4) and parameters["0.weight"].requires_grad
    found = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(parameters, buffers, X)
    assert same(found, torch.stack([model(X) for model in models]))
    found.sum().backward()
    assert parameters["0.weight"].grad.shape == (3, 3, 4)
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        stack_module_state([])
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(models[0], (dict(models[0].named_parameters()),) * 2, X)


def test_an_ensemble_trains_with_running_statistics():
    models = [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)) for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    found = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(parameters, buffers, X)
    wanted = torch.stack([model(X) for model in models])
    found.pow(3).sum().backward()
    wanted.pow(3).sum().backward()
    assert same(found, wanted)
    assert same(buffers["1.running_var"], torch.stack([model[1].running_var for model in models]))
    assert same(parameters["0.weight"].grad, torch.stack([model[0].weight.grad for model in models]))


def test_transforms_inside_and_outside():
    def function(a):
        return (a.sin() * a.prod()).sum()

    assert same(vmap(hessian(function))(X), looped(hessian(function), X))
    assert same(vmap(jacrev(lambda a: a.cumsum(0).exp()))(X), looped(jacrev(lambda a: a.cumsum(0).exp()), X))
    assert same(vmap(lambda a, b: jvp(function, (a,), (b,))[1])(X, Y), looped(lambda a, b: grad(function)(a) @ b, X, Y))
    pull_back = vjp(torch.sin, X[0])[1]
    assert same(vmap(lambda start: pull_back(start)[0])(torch.eye(4)), torch.diag(X[0].cos()))
    outer = grad(lambda x: vmap(grad(function))(x).pow(2).sum())(X)
    assert same(outer, looped(grad(lambda a: grad(function)(a).pow(2).sum()), X))
    assert same(vmap(grad(lambda a: vmap(lambda b: (a * b).sum().sin())(Y).sum()))(X), looped(
        grad(lambda a: torch.stack([(a * b).sum().sin() for b in Y]).sum()), X
    ))  # fmt: skip


def test_jacobians_take_all_rows_or_some_at_once():
    def function(a):
        return a.exp() @ W.t()

    assert same(jacrev(function)(X), jacrev(function, chunk_size=2)(X))
    with pytest.raises(ValueError, match="`chunk_size` should be greater than 0"):
        jacrev(function, chunk_size=0)
    rows = torch.autograd.grad(X.clone().requires_grad_().sin(), (x := X.clone().requires_grad_()), torch.ones(2, 3, 4),
                               is_grads_batched=True, allow_unused=True)  # fmt: skip
    assert rows == (None,) and x.grad is None
    x = X.clone().requires_grad_()
    (found,) = torch.autograd.grad(x.sin(), x, torch.stack([Y, 2 * Y]), is_grads_batched=True)
    assert same(found, torch.stack([Y * X.cos(), 2 * Y * X.cos()]))


class Doubled(torch.autograd.Function):
    """Twice its argument, with a slope of 3 to tell its derivative by."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


class Generated(Doubled):
    generate_vmap_rule = True


class Mapped(Doubled):
    @staticmethod
    def vmap(info, in_dims, x):
        assert (info.batch_size, info.randomness, in_dims) == (3, "error", (0,))
        return Mapped.apply(x), 0


class WithContext(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


def test_functions_of_users():
    for function in (Generated, Mapped):
        assert same(vmap(function.apply)(X), X * 2)
        assert same(vmap(grad(lambda a: function.apply(a).sum()))(X), torch.full((3, 4), 3.0))  # noqa: B023
        assert same(grad(lambda x: vmap(function.apply)(x).sum())(X), torch.full((3, 4), 3.0))  # noqa: B023
    with pytest.raises(RuntimeError, match="You tried to vmap over Doubled, but it does not have vmap support"):
        vmap(Doubled.apply)(X)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        vmap(WithContext.apply)(X)


# Compiled code


def test_compiled_functions_around_and_inside():
    @torch.compile
    def around(x):
        return vmap(lambda a: a.sin().sum() * 2)(x) + 1

    assert same(around(X), X.sin().sum(1) * 2 + 1)
    compiled = torch.compile(lambda a: (a.sin() * 2).sum())
    assert same(compiled(X[0]), (X[0].sin() * 2).sum())
    assert same(vmap(compiled)(X), (X.sin() * 2).sum(1))


def test_a_captured_map_holds_operators_of_the_whole_batch():
    graph = torch.fx.proxy_tensor.make_fx(vmap(lambda a: a.sin().sum()))(X).graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.alias.default", "aten.sin.default", "aten.sum.dim_IntList",
    ]  # fmt: skip


# What it refuses


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a.sum().item(), "It looks like you're calling .item\\(\\) on a Tensor"),
        (lambda a: a if a.sum() > 0 else -a, "use a Tensor in some data-dependent control flow"),
        (lambda a: a.nonzero(), "can output dynamic shape. Attempted to vmap over aten::nonzero"),
        (lambda a: a[a > 0], "Attempting to batch over indexing with a boolean mask"),
        (lambda a: torch.zeros(4).copy_(a), "vmap: inplace arithmetic"),
        (lambda a: a.numpy(), "Cannot access data pointer of Tensor that doesn't have storage"),
        (lambda a: a.sum().backward(), "backward\\(\\) called inside a functorch transform"),
        (nn.BatchNorm1d(4).train().forward, "Batch norm got a batched tensor as input"),
    ],
)
def test_what_depends_on_one_example_raises(function, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(function)(torch.randn(3, 2, 4) if "Batch norm" in message else X)


def test_a_gradient_that_would_be_a_sum_raises():
    w = W[0].clone().requires_grad_()
    with pytest.raises(RuntimeError, match="would be a sum over them"):
        vmap(lambda a: torch.autograd.grad((a * w).sum(), w)[0])(X)
    assert func.vmap is vmap


def test_rows_of_gradients_need_nothing_imported_before():
    program = (
        "import rushlight as torch; x = torch.ones(3, requires_grad=True);"
        "print(torch.autograd.grad(x * 2, x, torch.eye(3), is_grads_batched=True)[0].sum().item())"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "6.0"


def test_a_map_leaves_nothing_behind_when_its_function_raises():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(X)
    assert torch.rand(2).shape == (2,)


def test_batch_normalization_without_running_statistics_is_mapped():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    x = torch.randn(2, 5, 3)
    with pytest.raises(RuntimeError):
        torch.vmap(net)(x)
    assert torch.func.replace_all_batch_norm_modules_(net) is net
    assert net[1].running_mean is None and net[1].num_batches_tracked is None and not net[1].track_running_stats
    torch.testing.assert_close(torch.vmap(net)(x), torch.stack([net(one) for one in x]))


@pytest.mark.parametrize("name", ["eig", "eigvalsh", "inv", "det", "slogdet", "lu_factor", "qr", "svd", "cholesky", "matrix_exp"])
def test_vectors_do_not_pass_for_matrices(name):
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        vmap(getattr(torch.linalg, name))(torch.eye(3))


def test_examples_have_the_dimensions_that_operators_want():
    for pool, shape in ((F.max_pool2d, (2, 2)), (F.avg_pool2d, (2, 2, 2, 2, 2)), (F.adaptive_max_pool2d, (2, 2, 2, 2, 2))):
        with pytest.raises(RuntimeError):
            vmap(lambda x, pool=pool: pool(x, 1))(torch.ones(3, *shape))
    with pytest.raises(RuntimeError, match="should be a 3d or 4d Tensor"):
        F.max_unpool2d(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.int64), 1)


def test_mapped_sources_replace_parts_of_what_is_not_mapped():
    x, zeros = torch.arange(12.0).view(2, 2, 3), torch.zeros(2, 3)
    for scatter in (
        lambda a: torch.slice_scatter(zeros, a[:1], 0, 1), lambda a: torch.select_scatter(zeros, a[0], 0, 1),
        lambda a: torch.diagonal_scatter(zeros, a[0, :2]), lambda a: torch.as_strided_scatter(zeros, a, (2, 3), (3, 1)),
        torch.diag_embed, lambda a: torch.diag(a[0]), torch.diagflat,
    ):  # fmt: skip
        assert torch.equal(vmap(scatter)(x), torch.stack([scatter(one) for one in x]))
    assert zeros.count_nonzero() == 0


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_histograms_are_mapped():
    assert vmap(lambda a: a.histc(2))(torch.tensor([[0.0, 1, 2], [0, 8, 9]])).tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize("drop", [F.dropout, F.dropout2d, F.alpha_dropout, F.feature_alpha_dropout])
def test_dropout_that_draws_nothing_is_mapped(drop):
    x = torch.ones(2, 3, 4, 5)
    assert torch.equal(vmap(lambda a: drop(a, 0.0))(x), x)
