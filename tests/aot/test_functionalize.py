"""Functionalization: which graphs come out, and which are left alone."""

from __future__ import annotations

from operator import getitem

import pytest

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.aot.memory import anchor_views
from rushlight.aot.negatives import compute_negatives
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.proxy_tensor import capture


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def passed(function, *inputs):
    """The captured graph after functionalization, and its operators' names."""
    module = capture(function, inputs).module
    functionalize(module)
    anchor_views(module)
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    targets = [node.target for node in module.graph.nodes if node.op == "call_function" and node.target is not getitem]
    return module, [target._schema.name for target in targets]


def check(function, *inputs) -> list[str]:
    """The graph gives the results, aliases and effects of the function. Returns its operators."""
    module, names = passed(function, *inputs)
    ours, theirs = [x.clone() for x in inputs], [x.clone() for x in inputs]
    wanted = function(*theirs)
    got = Interpreter(module).run(*ours)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for want, have in zip([*wanted, *theirs], [*got, *ours], strict=True):
        assert have.tolist() == want.tolist() and have.stride() == want.stride()
        for mine, other in zip(ours, theirs, strict=True):
            assert (have.data_ptr() == mine.data_ptr()) == (want.data_ptr() == other.data_ptr())
    return names


def x(*shape: int) -> torch.Tensor:
    return torch.arange(24.0)[: torch.zeros(shape).numel()].reshape(shape)


def test_a_write_to_a_value_of_the_graph_becomes_its_functional_form():
    assert check(lambda a: (a + 1).mul_(2).neg_(), x(4)) == ["add", "mul", "neg"]


def test_a_write_to_an_input_is_copied_back_at_the_end():
    assert check(lambda a: a.add_(1) * 2, x(4)) == ["add", "mul", "copy_"]
    assert check(lambda a: a.add_(1), x(4)) == ["add", "copy_"]


def test_views_made_before_a_write_see_it():
    def function(a):
        b = a * 2
        row, column = b[0], b[:, 1]
        row.add_(10)
        return column * 1, b.t()

    assert not any(name.endswith("_") for name in check(function, x(3, 4)))


@pytest.mark.parametrize("view", [
    lambda b: b[1], lambda b: b[:, 1:3], lambda b: b[::2], lambda b: b.t(), lambda b: b.view(2, 6)[1],
    lambda b: b.unsqueeze(0)[0, 1], lambda b: b.unsqueeze(1).squeeze(1)[1], lambda b: b.t()[1:].t()[0], lambda b: b.detach()[2], lambda b: b[-1, -2:],
], ids="select slice step permute view unsqueeze squeeze chain detach negative".split())  # fmt: skip
@pytest.mark.parametrize("write", [
    lambda v: v.add_(1), lambda v: v.fill_(7), lambda v: v.copy_(v * 2),
], ids=["add", "fill", "copy"])  # fmt: skip
def test_a_write_through_a_view_reaches_what_it_views(view, write):
    def function(a):
        b = a * 3
        write(view(b))
        return b, view(b)

    def on_input(a):
        write(view(a))
        return a.sum()

    assert not any(name.endswith("_") for name in check(function, x(3, 4)))
    assert check(on_input, x(3, 4))[-1] == "copy_"


def test_the_dtype_of_the_written_tensor_stays():
    check(lambda a: torch.zeros(4, dtype=torch.int64).add_(3).mul_(2) + a, x(4))
    check(lambda a: (a * 2).copy_(torch.arange(4)), x(4))


def test_random_fills_write_to_a_clone_of_their_own():
    module, names = passed(lambda a: torch.zeros(3).uniform_(2, 3) + a, x(3))
    assert names == ["full", "clone", "uniform_", "add"]
    (result,) = Interpreter(module).run(torch.zeros(3))
    assert ((result >= 2) & (result <= 3)).all()


def test_an_operator_with_other_results_writes_to_clones_through_views():
    """Instance normalisation has batch normalisation write to statistics that are repeated for the batch."""
    names = check(lambda a, mean, variance: torch.nn.functional.instance_norm(a, mean, variance), x(2, 3, 4), x(3), x(3) + 1)
    assert names.count("copy_") == 2
    assert check(lambda a, both: torch.batch_norm(a, None, None, both[0], both[1], True, 0.5, 1e-5, False), x(4, 3), x(2, 3))


def test_what_cannot_be_guaranteed_is_left_alone():
    def overlapping(a, b):
        a.add_(1)
        return b * 2

    whole = x(6)
    module, names = passed(overlapping, whole[:4], whole[2:])
    assert names == ["add_", "mul"] and "share memory" in module.meta["keep_eager"]


def test_a_write_to_overlapping_windows_is_left_alone():
    def window(a):
        b = a * 2
        b.unfold(0, 2, 1)[0].add_(1)
        return b

    module, names = passed(window, x(6))
    assert "add_" in names and "as_strided" in module.meta["keep_eager"]
    (result,) = Interpreter(module).run(x(6))
    assert result.tolist() == window(x(6)).tolist()


@pytest.mark.parametrize("part", [
    lambda whole: whole[:6], lambda whole: whole[2:], lambda whole: whole[1:5].t(), lambda whole: whole[1:5, 1:],
], ids="start offset permuted gaps".split())  # fmt: skip
def test_a_write_by_strides_reaches_an_input_wherever_it_lies(part):
    def function(a):
        a.diagonal().add_(1)
        a.unfold(0, 1, 2).mul_(2)
        return a.diagonal() * 1, a + 1

    module = capture(function, (part(torch.zeros(8, 3)),)).module
    functionalize(module)
    anchor_views(module)
    ours, theirs = part(x(8, 3)), part(x(8, 3))
    for have, want in zip(Interpreter(module).run(ours), function(theirs), strict=True):
        assert have.tolist() == want.tolist()
    assert ours.tolist() == theirs.tolist()
    assert ("keep_eager" in module.meta) == (part(torch.zeros(8, 3)).stride() == (3, 1) and ours.shape[1] == 2)


def test_overlapping_views_by_absolute_place_are_read_after_writes():
    def chunks(a):
        b = a * 2
        b.view(4, 6)[1:].div_(3)
        return b.view(4, 6)[1:].t().as_strided((3, 8), (4, 1), 2) * 1

    names = check(chunks, x(24))
    assert "as_strided" in names and "div_" not in names


@pytest.mark.parametrize("part", [lambda whole: whole[:6], lambda whole: whole[2:], lambda whole: whole[1:5]])
def test_places_outside_of_an_input_are_left_alone(part):
    def function(a):
        a.add_(1)
        return a.as_strided((2, 2), (1, 1), 0) * 1

    module = capture(function, (part(torch.zeros(8)),)).module
    functionalize(module)
    ours, theirs = part(x(8)), part(x(8))
    assert Interpreter(module).run(ours)[0].tolist() == function(theirs).tolist()
    assert ("keep_eager" in module.meta) == (theirs.storage_offset() > 0)


def test_views_by_absolute_place_view_the_owner_of_the_memory():
    module, names = passed(lambda a: (a * 2)[1:].diagonal(), x(4, 3))
    *_, strided = (node for node in module.graph.nodes if node.op == "call_function")
    assert names == ["mul", "as_strided"] and strided.args[0].target._schema.name == "mul"
    assert Interpreter(module).run(x(4, 3))[0].tolist() == (x(4, 3) * 2)[1:].diagonal().tolist()


def test_views_that_are_only_read_need_no_inverse():
    def function(a):
        b = a * 2
        wide = b.expand(3, 4)
        b.add_(1)
        return wide * 2, wide

    assert check(function, x(1, 4)) == ["mul", "add", "expand", "mul", "expand"]
    assert "copy_" in check(lambda a: (a.expand(3, 4), a.mul_(2)), x(1, 4))


def test_new_contents_have_the_strides_of_the_old_ones():
    """Also where a dimension has size 1: the layout of a result may depend on them."""

    def function(x, column):
        y = x + 0
        y.permute(2, 0, 1).fill_(2)
        return y, column * y

    inputs = torch.ones(1, 1, 4), torch.ones(8, 4)[:, :1]
    module, names = passed(function, *inputs)
    assert names == ["full", "permute", "view", "permute", "permute", "mul"]
    assert [x.stride() for x in Interpreter(module).run(*inputs)] == [x.stride() for x in function(*inputs)]


def test_what_reads_new_contents_by_a_view_sees_its_strides():
    def function(x):
        view = x.permute(2, 3, 0, 1).cumsum_(0)
        return view * 1, torch.logical_xor(x, view)

    for order in ((3, 2, 1, 0), (1, 0, 2, 3), (0, 3, 1, 2)):
        for shape in ((1, 1, 1, 4), (1, 4, 1, 1)):
            given = torch.ones(shape).permute(order)
            module, _ = passed(function, given.clone())
            for got, want in zip(Interpreter(module).run(given.clone())[:2], function(given.clone()), strict=True):
                assert [s for s, n in zip(got.stride(), got.shape, strict=True) if n > 1] == [
                    s for s, n in zip(want.stride(), want.shape, strict=True) if n > 1
                ]
                assert torch.equal(got, want)


def test_negative_views_are_computed():
    def imaginary(x):
        return x.conj().imag[0] * 2

    module = capture(imaginary, (torch.ones(2, 3, dtype=torch.complex64),)).module
    compute_negatives(module)
    module.graph.eliminate_dead_code()
    module.graph.lint()
    names = [node.target._opname for node in module.graph.nodes if node.op == "call_function"]
    assert names == ["_conj", "_conj", "view_as_real", "neg", "select", "select", "neg", "neg", "mul"]
    assert not any(node.meta["val"].is_neg() for node in module.graph.nodes if node.op == "call_function")
    x = torch.randn(2, 3, dtype=torch.complex64)
    module.recompile()
    assert torch.equal(Interpreter(module).run(x)[0], imaginary(x))


def test_as_strided_beside_a_negative_view_keeps_the_graph():
    module = capture(lambda x: x.conj().imag.as_strided((2,), (2,), 1) * 2, (torch.ones(3, dtype=torch.complex64),)).module
    compute_negatives(module)
    assert "names places in memory" in module.meta["keep_eager"]
