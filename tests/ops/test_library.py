"""Operators and kernels registered from outside."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.thread_state import IncludeKeys
from rushlight.ops.library import Library, fallthrough_kernel


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Kernels that are registered for operators of the project keep the process from using captures of others, for good."""
    monkeypatch.setattr("rushlight.ops.library._changed", [])


@pytest.fixture
def library():
    made = Library("test_library", "DEF")
    yield made
    made._destroy()


def test_define_and_impl(library):
    assert library.define("scale(Tensor self, float by=2.) -> Tensor") == "scale"
    library.impl("scale", lambda self, by=2.0: self * by, "CompositeImplicitAutograd")
    assert rl.ops.test_library.scale(rl.ones(2)).tolist() == [2, 2]
    assert rl.ops.test_library.scale(rl.ones(2), by=3.0).tolist() == [3, 3]
    assert rl.ops.test_library.scale.default._schema.name == "scale"


def test_overloads_are_chosen_by_type(library):
    library.define("pick.Tensor(Tensor self, Tensor other) -> str")
    library.define("pick.Scalar(Tensor self, Scalar other) -> str")
    library.impl("pick.Tensor", lambda self, other: "tensor")
    library.impl("test_library::pick.Scalar", lambda self, other: "scalar")
    pick, x = rl.ops.test_library.pick, rl.ones(1)
    assert (pick(x, x), pick(x, 1.5)) == ("tensor", "scalar") and pick.overloads() == ["Tensor", "Scalar"]


def test_destroying_takes_operators_away(library):
    library.define("gone(Tensor self) -> Tensor")
    assert rl.ops.test_library.gone.overloads() == ["default"]
    library._destroy()
    with pytest.raises(AttributeError):
        rl.ops.test_library.gone  # noqa: B018
    library.define("gone(Tensor self) -> Tensor")


def test_destroying_takes_kernels_away():
    implementation = Library("aten", "IMPL", "Tracer")
    calls = []

    def traced(self):
        calls.append("traced")
        return self

    implementation.impl("relu", traced)
    x = rl.ones(1)
    with IncludeKeys(bit(DispatchKey.Tracer)):
        assert rl.relu(x) is x and calls == ["traced"]
        implementation._destroy()
        assert rl.relu(x) is not x and calls == ["traced"]


def test_a_replaced_kernel_comes_back():
    implementation = Library("aten", "IMPL", "CPU")
    implementation.impl("sign", lambda self: self)
    x = rl.tensor([-2.0])
    assert rl.sign(x).item() == -2
    implementation._destroy()
    assert rl.sign(x).item() == -1


def test_fallbacks_belong_to_the_namespace_underscore():
    fallback = Library("_", "IMPL", "Tracer")
    calls = []

    def note(op, keys, stack):
        calls.append(op._schema.name)
        stack[:] = [op.redispatch(keys, *stack[: op._schema.positional_count])]

    fallback.fallback(note)
    x = rl.ones(1)
    with IncludeKeys(bit(DispatchKey.Tracer)):
        rl.exp(x)
        fallback._destroy()
        rl.exp(x)
    assert calls == ["exp"]
    with pytest.raises(RuntimeError, match="fallbacks belong to the namespace '_', not 'aten'"):
        Library("aten", "IMPL", "CPU").fallback(note)


def test_fallthrough_kernel(library):
    library.define("plain(Tensor self) -> Tensor")
    library.impl("plain", lambda self: self, "CPU")
    library.impl("plain", fallthrough_kernel, "Autograd")
    x = rl.ones(1, requires_grad=True)
    assert rl.ops.test_library.plain(x) is x


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda lib: Library("x", "OTHER"), ValueError, "Unsupported kind: 'OTHER'"),
        (lambda lib: lib.define("broken("), ValueError, "malformed schema"),
        (lambda lib: [lib.define("twice(Tensor x) -> Tensor") for _ in "ab"], RuntimeError, "same name and overload"),
        (lambda lib: lib.impl("missing", abs, "CPU"), RuntimeError, "No such operator test_library::missing"),
        (lambda lib: lib.impl(rl.ops.aten.abs.default, abs, "GPU"), ValueError, "unknown dispatch key 'GPU'"),
    ],
)
def test_mistakes_are_named(library, use, error, message):
    with pytest.raises(error, match=message):
        use(library)


def test_tags():
    library = Library("tagged", "DEF")
    library.define("one(Tensor x) -> Tensor", tags=rl.Tag.pointwise)
    library.define("two(Tensor x) -> Tensor", tags=(rl.Tag.core, rl.Tag.nondeterministic_seeded))
    assert rl.ops.tagged.one.default.tags == {rl.Tag.pointwise}
    assert rl.Tag.nondeterministic_seeded in rl.ops.tagged.two.default.tags
    with pytest.raises(TypeError, match="must be of torch.Tag"):
        library.define("three(Tensor x) -> Tensor", tags=["core"])
    with pytest.raises(RuntimeError, match="Invalid alias_analysis"):
        library.define("four(Tensor x) -> Tensor", "CONSERVATIVE")
