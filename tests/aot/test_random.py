"""Random operators as functions of one seed: which graphs come out, and which are left alone."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.aot.random import seed_random
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.proxy_tensor import capture


def seeded(function, *inputs):
    """The captured graph after the pass and functionalization."""
    with torch.no_grad():
        module = capture(function, inputs).module
    seed_random(module)
    functionalize(module)
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


def operators(module) -> list[str]:
    return [node.target._schema.name for node in module.graph.nodes if node.op == "call_function"]


def test_dropout_becomes_a_comparison():
    module = seeded(lambda x: torch.nn.functional.dropout(x, 0.25), torch.ones(2, 3))
    assert module.code.strip() == (
        "def forward(self, arg0_1):\n"
        "    seed = torch.ops.aten._philox_seed.default()\n"
        "    _philox_uniform = torch.ops.aten._philox_uniform.default(seed, 0, [2, 3], dtype = torch.float32);  seed = None\n"
        "    lt = torch.ops.aten.lt.Tensor(_philox_uniform, 0.75);  _philox_uniform = None\n"
        "    mul = torch.ops.aten.mul.Tensor(arg0_1, lt);  arg0_1 = lt = None\n"
        "    mul_1 = torch.ops.aten.mul.Tensor(mul, 1.3333333333333333);  mul = None\n"
        "    return (mul_1,)"
    )


def test_each_operator_takes_streams_of_its_own():
    module = seeded(lambda x: (torch.rand(3), torch.rand(3, dtype=torch.float64), torch.randn(3), torch.randint(5, (3,))), 1)
    draws = [node for node in module.graph.nodes if node.op == "call_function" and "philox" in str(node.target)]
    assert [node.args[1] for node in draws[1:]] == [0, 1, 3, 4, 5]
    assert sum("_philox_seed" in name for name in operators(module)) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rand(3, generator=torch.default_generator),
        lambda x: torch.randperm(4),
        lambda x: torch.empty(3, dtype=torch.complex64).uniform_(),
        lambda x: torch.empty(3, dtype=torch.int64).random_(-(2**62), 2**62),
        lambda x: x.clone().bernoulli_(1.5),
    ],
    ids=["generator", "randperm", "complex", "wide", "refused"],
)
def test_what_eager_goes_on_drawing(function):
    assert not any("philox" in name for name in operators(seeded(function, torch.ones(2, 3))))


def test_fills_of_views_and_of_permuted_memory():
    def fill(x):
        made = torch.zeros(4, 3)
        made.t()[1].uniform_(2, 3)
        return made, torch.rand_like(x.t()), x.t().clone().normal_()

    module = seeded(fill, torch.ones(2, 5))
    torch.manual_seed(1)
    made, like, normal = Interpreter(module).run(torch.ones(2, 5))
    assert bool((made[:, 1] >= 2).all() and (made[:, [0, 2]] == 0).all())
    assert like.stride() == (1, 5) and normal.stride() == (1, 5)
    assert len(set(like.flatten().tolist())) == 10
