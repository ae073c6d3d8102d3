"""`vmap` beside torch's: messages, and random numbers from one seed."""

from __future__ import annotations

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def outcome(library, call):
    """What a call raises, in a library, without the specs of trees, which print differently."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(library, library.ones(3, 4))
    return type(caught.value), str(caught.value).split(" has structure")[0].replace("rushlight.core.tensor", "torch")


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.vmap(lambda a: a, in_dims=2)(x),
        lambda t, x: t.vmap(lambda a: a, in_dims=None)(x),
        lambda t, x: t.vmap(lambda a, b: a, in_dims=[0, 0])(x, x),
        lambda t, x: t.vmap(lambda a, b: a, in_dims=(0,))(x, x),
        lambda t, x: t.vmap(lambda a: a, in_dims=(0.5,))(x),
        lambda t, x: t.vmap(lambda a, b: a)(x, t.ones(4, 4)),
        lambda t, x: t.vmap(lambda a, b: a)(x, 2),
        lambda t, x: t.vmap(lambda a, b: a, (None, None))(x, x),
        lambda t, x: t.vmap(lambda: 1)(),
        lambda t, x: t.vmap(lambda a: a, randomness="none")(x),
        lambda t, x: t.vmap(lambda a: a, chunk_size=0)(x),
        lambda t, x: t.vmap(lambda a: a, out_dims=2)(x),
        lambda t, x: t.vmap(lambda a: a, out_dims="x")(x),
        lambda t, x: t.vmap(lambda a: a, out_dims=None)(x),
        lambda t, x: t.vmap(lambda a: a, out_dims=(0, 0))(x),
        lambda t, x: t.vmap(lambda a: {"a": a}, out_dims={"b": 0})(x),
        lambda t, x: t.vmap(lambda a: (a, 2))(x),
        lambda t, x: t.vmap(lambda a: t.rand(2))(x),
        lambda t, x: t.vmap(lambda a: a[a > 0])(x),
    ],
)
def test_messages(call):
    assert outcome(rushlight, call) == outcome(torch, call)


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda t, a: t.rand(2, 3), lambda t, a: t.randn(4), lambda t, a: t.randint(0, 9, (5,)), lambda t, a: t.rand_like(a),
        lambda t, a: t.nn.functional.dropout(a), lambda t, a: t.bernoulli(t.full((6,), 0.5)), lambda t, a: t.randperm(7),
    ],
)  # fmt: skip
def test_one_seed_gives_the_same_numbers(draw, randomness):
    found = []
    for library in (rushlight, torch):
        library.manual_seed(3)
        found.append(library.vmap(lambda a: draw(library, a), randomness=randomness)(library.ones(3, 4)).tolist())  # noqa: B023
    assert found[0] == found[1]
