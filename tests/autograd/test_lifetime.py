"""Graphs of any depth, freed at once and without recursion; several threads on shared leaves."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import rushlight as rl
from rushlight.autograd import Function

DEPTH = 100_000


@pytest.fixture
def without_gc(small_heap):
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_chains_of_100_000_nodes():
    x = rl.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1 and y.item() == DEPTH + 1
    del y


def test_long_chains_that_save_tensors_are_freed():
    x = rl.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 1.0
    for _ in range(2000):
        y = y.exp().log()
    end = weakref.ref(y)
    del y
    assert end() is None


def test_long_chains_of_in_place_writes_and_views():
    x = rl.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(5000):
        y[0].mul_(1.0)
        y.add_(0.0)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_long_chains_of_functions():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = rl.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = Same.apply(y)
    y.backward()
    assert x.grad.item() == 1
    del y


def build_plain(x):
    return (x * x).exp().sum()


def build_saved_output(x):
    return x.exp().sigmoid().sqrt().sum()


def build_views(x):
    y = x * 2
    y[0].mul_(3)
    return (y.view(-1)[1:] * y.t().sum()).sum()


def build_hooks(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    return (y * y).sum()


def build_function(x):
    class Square(Function):
        @staticmethod
        def forward(ctx, value):
            result = value * value
            ctx.save_for_backward(value, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    return Square.apply(x * 1).sum()


def build_module(x):
    model = rl.nn.Sequential(rl.nn.Linear(3, 4), rl.nn.GELU(), rl.nn.LayerNorm(4))
    return model(x).sum()


@pytest.mark.parametrize(
    "build", [build_plain, build_saved_output, build_views, build_hooks, build_function, build_module],
    ids=lambda build: build.__name__,
)  # fmt: skip
@pytest.mark.parametrize("backward", ["none", "once", "retained", "create_graph"])
def test_graphs_are_freed_without_the_garbage_collector(build, backward, without_gc):
    x = rl.ones(2, 3, requires_grad=True)
    result = build(x)
    if backward in ("once", "retained"):
        result.backward(retain_graph=backward == "retained")
    if backward == "create_graph":
        rl.autograd.grad(result, x, create_graph=True)
    alive = [weakref.ref(value) for value in (result, result.grad_fn, result.grad_fn.next_functions[0][0], x._impl.storage)]
    del result
    assert [reference() is None for reference in alive[:3]] == [True] * 3
    del x
    assert alive[3]() is None


def test_gradients_do_not_keep_graphs_alive(without_gc):
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    y.sum().backward()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None and x.grad is not None
    accumulator = weakref.ref((x * 1).grad_fn.next_functions[0][0])
    assert accumulator() is None


def test_threads_run_backward_at_once_on_one_leaf():
    x = rl.ones(1000, requires_grad=True)
    start, errors = threading.Barrier(8), []

    def work():
        try:
            start.wait()
            for _ in range(50):
                (x * 2).sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and (x.grad == 8 * 50 * 2).all().item()


def test_threads_train_models_of_their_own():
    results = {}

    def train(seed: int) -> None:
        generator = rl.Generator().manual_seed(seed)
        w = rl.randn(4, generator=generator).requires_grad_()
        for _ in range(20):
            loss = ((w - 3) ** 2).sum()
            (gradient,) = rl.autograd.grad(loss, w)
            with rl.no_grad():
                w.sub_(gradient * 0.1)
        results[seed] = w.tolist()

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parallel = dict(results)
    for seed in range(6):
        train(seed)
    assert parallel == results


class Give(Function):
    """Its gradient is what `make` returns."""

    @staticmethod
    def forward(ctx, x, make):
        ctx.make = make
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.make(), None


def test_leaves_take_over_views_whose_base_nobody_holds():
    leaf = rl.ones(2, 3, requires_grad=True)
    Give.apply(leaf, lambda: rl.arange(6.0).view(2, 3)).sum().backward()
    assert leaf.grad._base is None and leaf.grad.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    "view", [lambda base: base.view(2, 3), lambda base: base.view(1, 2, 3)[0], lambda base: base.view(3, 2).view(2, 3)]
)
def test_leaves_copy_views_of_kept_bases(view):
    base = rl.arange(6.0)
    leaf = rl.ones(2, 3, requires_grad=True)
    Give.apply(leaf, lambda: view(base)).sum().backward()
    expected = view(base).tolist()
    base.fill_(9.0)
    assert leaf.grad.tolist() == expected


def test_leaves_copy_parts_of_larger_storages():
    leaf = rl.ones(2, 3, requires_grad=True)
    Give.apply(leaf, lambda: rl.arange(600.0).view(200, 3)[:2]).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert leaf.grad.untyped_storage().nbytes() == 24
