"""Operators made of Python functions: eager, with gradients, as nodes of compiled graphs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Optional

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.dynamo.guarded_code import Unsupported
from rushlight.fx import GraphModule
from rushlight.library.checks import OpCheckError

counter = itertools.count()


def fresh(short: str) -> str:
    return f"test_custom_ops::{short}{next(counter)}"


@pytest.fixture
def scaled():
    """x * by, unknown to everything but NumPy, with its gradient."""

    @torch.library.custom_op(fresh("scaled"), mutates_args=())
    def scaled(x: Tensor, by: float) -> Tensor:
        """By a number."""
        return torch.from_numpy(x.numpy() * np.float32(by))

    @scaled.register_fake
    def _(x, by):
        return x.new_empty(x.shape)

    def keep(ctx, inputs, output):
        ctx.by = inputs[1]

    def backward(ctx, grad):
        assert ctx.needs_input_grad == (True, False)
        return grad * ctx.by, None

    scaled.register_autograd(backward, setup_context=keep)
    return scaled


def compiled(function, *args, **options):
    """The result, and the one graph that was captured."""
    graphs = []

    def backend(module: GraphModule, inputs: list):
        graphs.append(module)
        return torch.compile(module)

    found = torch.compile(function, backend=backend, fullgraph=True, **options)(*args)
    assert len(graphs) == 1
    return found, graphs[0]


def test_calls(scaled):
    x = torch.randn(3)
    torch.testing.assert_close(scaled(x, by=2.0), x * 2)
    torch.testing.assert_close(getattr(torch.ops.test_custom_ops, scaled._name)(x, 3.0), x * 3)
    assert scaled.__doc__ == "By a number." and repr(scaled) == f"<CustomOpDef(test_custom_ops::{scaled._name})>"
    assert scaled(torch.empty(4, device="meta"), 1.0).shape == (4,)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_call_is_one_node(scaled, dynamic):
    def function(x):
        return scaled(x.relu() + 1, 2.0).sum(0) * x.shape[0]

    x = torch.randn(5, 4)
    found, graph = compiled(function, x, dynamic=dynamic)
    torch.testing.assert_close(found, function(x))
    assert sum(node.target is scaled._opoverload for node in graph.graph.nodes) == 1
    torch.testing.assert_close(torch.compile(function, fullgraph=True)(x), function(x))


def test_gradients(scaled):
    def function(x):
        return scaled(x.sin(), 3.0) * x

    for run in (function, torch.compile(function, fullgraph=True)):
        x = torch.arange(4.0, requires_grad=True)
        found = run(x).sum()
        for times in (1, 2):
            found.backward(retain_graph=True)
            torch.testing.assert_close(x.grad, times * 3 * (x.cos() * x + x.sin()).detach())


def test_lists_and_keywords():
    @torch.library.custom_op(fresh("mixed"), mutates_args=())
    def mixed(parts: Sequence[Tensor], more: Tensor | None, *, power: int = 2) -> tuple[Tensor, list[Tensor]]:
        return sum(part**power for part in parts), [part * 2 for part in parts]

    @mixed.register_fake
    def _(parts, more, *, power=2):
        return torch.empty_like(parts[0]), [torch.empty_like(part) for part in parts]

    def keep(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs[0])
        ctx.power = keyword_only_inputs["power"]

    def backward(ctx, grad, grads):
        assert ctx.needs_input_grad == ([True, False], False)
        return [ctx.power * part ** (ctx.power - 1) * grad + 2 * other
                for part, other in zip(ctx.saved_tensors, grads, strict=True)], None  # fmt: skip

    mixed.register_autograd(backward, setup_context=keep)

    def function(a, b):
        total, doubled = mixed([a, b], None, power=3)
        return total + doubled[0] * doubled[1]

    for run in (function, torch.compile(function, fullgraph=True)):
        a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 5.0])
        found = run(a, b)
        torch.testing.assert_close(found.detach(), (a**3 + b**3 + 4 * a * b).detach())
        found.sum().backward()
        torch.testing.assert_close(a.grad, (3 * a**2 + 4 * b).detach())


def test_writes():
    @torch.library.custom_op(fresh("raised"), mutates_args=("x",))
    def raised(x: Tensor, by: Tensor) -> None:
        x.numpy()[...] += by.numpy()

    def function(x, y):
        z = y * 2
        raised(z, x)
        raised(x, z)
        return z + x

    x, y = torch.randn(3), torch.randn(3)
    expected, seen = function(x, y), x.clone()
    for backend in ("eager", "aot_eager", "inductor"):
        x = seen - y * 2 - (seen - y * 2) / 2
        before = x.clone()
        found = torch.compile(function, backend=backend, fullgraph=True)(x, y)
        torch.testing.assert_close(x, before + before + 2 * y)
        torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        raised.register_autograd(lambda ctx, grad: None)
    with pytest.raises(RuntimeError, match="no derivative with respect to a tensor that it writes to"):
        raised(torch.ones(3, requires_grad=True), y)
    version = x._version
    raised(x, torch.ones(3, requires_grad=True))
    assert x._version == version + 1


def test_writes_to_parameters_are_noticed():
    @torch.library.custom_op(fresh("doubled"), mutates_args=("x",))
    def doubled(x: Tensor) -> None:
        x.numpy()[...] *= 2

    layer, x = torch.nn.Linear(8, 8), torch.randn(2, 8)
    run = torch.compile(layer)
    with torch.no_grad():
        for _ in range(3):
            doubled(layer.weight)
            torch.testing.assert_close(run(x), layer(x))
        step = torch.compile(lambda: doubled(layer.weight), fullgraph=True)
        for _ in range(3):
            step()
            torch.testing.assert_close(run(x), layer(x))


def test_without_a_rule_for_shapes():
    @torch.library.custom_op(fresh("opaque"), mutates_args=())
    def opaque(x: Tensor) -> Tensor:
        return x.clone()

    x = torch.ones(2)
    with pytest.raises(Unsupported, match="no fake impl registered for <CustomOpDef.test_custom_ops::opaque.*register_fake"):
        torch.compile(lambda x: opaque(x + 1), fullgraph=True)(x)
    torch.testing.assert_close(torch.compile(lambda x: opaque(x + 1) * 2)(x), x * 4)


def test_without_a_derivative():
    @torch.library.custom_op(fresh("plain"), mutates_args=())
    def plain(x: Tensor) -> Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()))

    found = plain(torch.ones(2, requires_grad=True))
    assert found.requires_grad
    with pytest.raises(RuntimeError, match="Trying to backward through .* but no autograd formula was registered"):
        found.sum().backward()


def test_backwards_that_do_not_fit():
    @torch.library.custom_op(fresh("pair"), mutates_args=())
    def pair(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    pair.register_autograd(lambda ctx, grad: grad)
    with pytest.raises(RuntimeError, match="its backward returned 1 gradients, expected one, or None, for each of its 2"):
        pair(torch.ones(1, requires_grad=True), torch.ones(1)).backward()


def test_results_are_memory_of_their_own():
    @torch.library.custom_op(fresh("view"), mutates_args=())
    def view(x: Tensor) -> Tensor:
        return x[1:]

    with pytest.raises(RuntimeError, match="shares its memory with an argument or with another result; return a clone"):
        view(torch.ones(3))


def test_rules_by_name():
    name = fresh("named")
    torch.library.define(name, "(Tensor x, int n=2) -> Tensor")
    torch.library.impl(name, "cpu", lambda x, n=2: x.repeat(n))
    torch.library.register_fake(name)(lambda x, n=2: x.new_empty(x.shape[0] * n))
    torch.library.register_autograd(name, lambda ctx, grad: (grad.view(2, -1).sum(0), None))
    op = getattr(torch.ops.test_custom_ops, name.partition("::")[2])
    found, graph = compiled(lambda x: op(x) + 1, torch.ones(3))
    assert found.tolist() == [2.0] * 6
    x = torch.ones(3, requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_rules_in_a_library():
    """Rules at the key Meta may call operators that know nothing of fake tensors."""
    library = torch.library.Library("test_custom_library", "DEF")
    library.define("wide(Tensor x, int n) -> Tensor[]")
    library.impl("wide", lambda x, n: [x.repeat(n), x + n], "CPU")
    library.impl("wide", lambda x, n: [torch.empty(x.shape[0] * n), torch.empty_like(x)], "Meta")
    library.define("constant(int n) -> Tensor")
    library.impl("constant", torch.ones, "CPU")
    library.impl("constant", torch.empty, "Meta")
    ops = torch.ops.test_custom_library

    def function(x):
        wide, moved = ops.wide(x, 2)
        return wide[: x.shape[0]] * moved + ops.constant(3)

    try:
        x = torch.arange(3.0)
        library.impl("constant", torch.ones, "CompositeExplicitAutograd")
        for dynamic in (False, True):
            found, _ = compiled(function, x, dynamic=dynamic)
            torch.testing.assert_close(found, x * (x + 2) + 1)
    finally:
        library._destroy()


def test_checks_of_an_operator(scaled):
    x = torch.randn(3, 4, requires_grad=True)
    assert set(torch.library.opcheck(scaled, (x, 2.0)).values()) == {"SUCCESS"}
    assert len(torch.library.opcheck(scaled, (x,), {"by": 2.0}, test_utils="test_schema")) == 1
    with pytest.raises(ValueError, match="there is no test other; tests are test_schema, "):
        torch.library.opcheck(scaled, (x, 2.0), test_utils=["other"])


def faulty():
    library = torch.library.Library("test_faulty", "FRAGMENT")
    rule = lambda x: torch.empty_like(x)  # noqa: E731
    return library, {
        "writes": (lambda x: x.add_(1).clone(), rule, "test_schema failed with RuntimeError: the operator wrote to argument x"),
        "shares": (lambda x: x.view(-1), lambda x: x.new_empty(12), "test_schema failed .* a result shares its memory"),
        "unknown": (lambda x: x.detach() * 2, rule, "test_autograd_registration failed .* no autograd formula"),
        "shaped": (lambda x: x.detach()[:2] * 1, rule, "test_faketensor failed .* shape .*3, 4.* for result 0, .*2, 4"),
        "strides": (lambda x: x.detach().t().contiguous().t(), rule, "test_faketensor failed .* stride"),
    }


@pytest.mark.parametrize("name", faulty()[1])
def test_faults_that_checks_find(name):
    library, cases = faulty()
    kernel, rule, message = cases[name]
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, kernel, "CPU")
    library.impl(name, rule, "Meta")
    try:
        with pytest.raises(OpCheckError, match=message):
            x = torch.randn(3, 4, requires_grad=name == "unknown")
            torch.library.opcheck(getattr(torch.ops.test_faulty, name), (x,))
    finally:
        library._destroy()


def test_names_and_rules_that_are_not_there():
    with pytest.raises(ValueError, match="expected the name of an operator as 'namespace::name', got 'lonely'"):
        torch.library.custom_op("lonely", lambda: None, mutates_args=())
    with pytest.raises(RuntimeError, match="belongs to Rushlight"):
        torch.library.register_fake("aten::relu", lambda x: x)
    with pytest.raises(RuntimeError, match="No such operator test_custom_ops::missing"):
        torch.library.register_fake("test_custom_ops::missing", lambda x: x)


SIGNATURES = {
    "plain": "(x: Tensor, s: float = 1.0, n: int = 2, b: bool = True, text: str = 'a') -> Tensor",
    "lists": "(x: Sequence[Tensor], y: list[int], z: Sequence[Optional[Tensor]], w: Optional[list[float]] = None) -> list[Tensor]",
    "optional": "(x: Optional[Tensor], n: int | None = None, *, d: Optional[dtype] = None, e: Optional[device] = None) -> None",
    "number": "(x: Tensor, by: int | float | bool = 1, *, other: bool = False) -> tuple[Tensor, int, float]",
}
WRITES = [("plain", ()), ("plain", ("x",)), ("plain", "unknown"), ("lists", ()), ("lists", ("x", "z")), ("optional", ("x",)),
          ("number", ())]  # fmt: skip


def annotated(library, name: str):
    """A function with the annotations of one library."""
    names = {"Sequence": Sequence, "Optional": Optional, **{kind: getattr(library, kind) for kind in ("Tensor", "dtype", "device")}}
    exec(f"def function{SIGNATURES[name]}: ...", names)
    return names["function"]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "written"), WRITES)
def test_schemas_are_those_of_torch(name, written):
    oracle = pytest.importorskip("torch")
    expected = oracle.library.infer_schema(annotated(oracle, name), mutates_args=written, op_name="a")
    assert torch.library.infer_schema(annotated(torch, name), mutates_args=written, op_name="a") == expected


def refused():
    def untyped(x) -> None: ...
    def tuples(x: tuple[int, int]) -> None: ...
    def many(*x: Tensor) -> None: ...
    def unreturned(x: Tensor): ...
    def returned(x: Tensor) -> dict: ...
    def default(x: Sequence[int] = (1,)) -> None: ...
    def number(x: int) -> None: ...

    return {
        "Parameter x must have a type annotation": (untyped, ()), "Parameter x has unsupported type": (tuples, ()),
        "do not support positional-only args, varargs": (many, ()), "No return type annotation": (unreturned, ()),
        "Return has unsupported type": (returned, ()), "unsupported default value type": (default, ()),
        "in mutates_args were not found": (number, ("y",)), "only Tensors or collections of Tensors": (number, ("x",)),
    }  # fmt: skip


@pytest.mark.parametrize("message", refused())
def test_functions_that_make_no_schema(message):
    function, written = refused()[message]
    with pytest.raises(ValueError, match=message):
        torch.library.infer_schema(function, mutates_args=written)


HERE = torch.device("cpu")


def test_defaults_of_every_kind():
    def fill(
        x: Tensor, kind: torch.dtype = torch.float32, other: torch.dtype | None = torch.bfloat16, flag: torch.dtype = torch.bool,
        text: str = "a, b=(c", where: torch.device = HERE, long: torch.dtype = torch.int64,
    ) -> Tensor:  # fmt: skip
        assert (other, flag, long, str(where)) == (torch.bfloat16, torch.bool, torch.int64, "cpu")
        return torch.full_like(x, len(text), dtype=kind)

    made = torch.library.custom_op("defaults_test::fill", fill, mutates_args=())
    made.register_fake(lambda x, kind=torch.float32, *others: torch.empty_like(x, dtype=kind))
    x = torch.ones(2)
    assert made(x).tolist() == [7.0, 7.0]
    assert made(x, torch.int32).dtype == torch.int32
    assert torch.compile(lambda x: made(x, text="b,"), fullgraph=True)(x).tolist() == [2.0, 2.0]
    schema = "fill(Tensor x, ScalarType kind=float32, ScalarType? other=bfloat16, ScalarType flag=bool, str text=\"a, b=(c\", "
    assert str(torch.ops.defaults_test.fill.default._schema).startswith(schema)


def test_a_name_may_be_used_again():
    """As where a notebook's cell is run again; an operator that was defined otherwise stays."""

    def define(factor):
        @torch.library.custom_op("again_test::scaled", mutates_args=())
        def scaled(x: Tensor) -> Tensor:
            return x * factor

        scaled.register_fake(torch.empty_like)
        return scaled

    x, compiled = torch.ones(2), torch.compile(lambda op, x: op(x) + 1, fullgraph=True)
    for factor in (2.0, 3.0):
        scaled = define(factor)
        assert scaled(x).tolist() == torch.ops.again_test.scaled(x).tolist() == [factor, factor]
        assert compiled(scaled, x).tolist() == [factor + 1, factor + 1]
    torch.library.define("again_test::other", "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="same name"):
        torch.library.custom_op("again_test::other", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")


def test_kernels_for_the_operators_of_a_library():
    library = torch.library.Library("impl_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    @torch.library.impl(library, "twice", "CompositeExplicitAutograd")
    def twice(x):
        return x * 2

    @torch.library.impl(library, "twice", "Meta")
    def twice_meta(x):
        return torch.empty_like(x)

    x = torch.ones(2)
    assert torch.compile(torch.ops.impl_test.twice, fullgraph=True)(x).tolist() == twice(x).tolist() == [2.0, 2.0]
