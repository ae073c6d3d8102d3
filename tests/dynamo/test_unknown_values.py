"""Sizes and numbers that depend on values: kept in one graph under the settings that PyTorch has for it."""

import pytest

import rushlight as torch
from rushlight._dynamo import config
from rushlight._dynamo.testing import CompileCounter


@pytest.fixture(autouse=True)
def _kept():
    torch._dynamo.reset()
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


X = torch.tensor([[0.0, 1.5, 2.0], [-3.0, 0.0, 4.0]])
INPUTS = [X, X.clamp(min=0), torch.zeros(2, 3), torch.tensor([[0.0, 0.0, 7.0], [0.0, 0.0, 0.0]]), torch.arange(8.0).view(2, 4)]


def _same(found, expected):
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    elif isinstance(expected, tuple | list):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
    else:
        assert type(found) is type(expected) and found == expected


def _nonzero(x):
    return x.nonzero() + 1


def _masked(x):
    return x[x > 0] * 2


def _masked_sum(x):
    return (x[x > 0].exp() + 1).sum(), x.sum()


def _rows(x):
    return x[x[:, 0] >= 0] @ torch.ones(x.shape[1], 2)


def _mask_beside_list(x):
    return x.t()[:, x.sum(1) > 0] * 3


def _two_masks(x):
    positive, large = x[x > 0], x[x > 1]
    return positive.sum() * large.mean(), torch.cat([positive, large])


def _distinct(x):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return values * 2, inverse + 1, counts.sum()


def _distinct_rows(x):
    return torch.unique(x, dim=0) + 1


def _consecutive(x):
    return torch.unique_consecutive(x.flatten()) * 2


def _selected(x):
    return torch.masked_select(x, x > 1).cumsum(0)


def _repeated(x):
    return torch.repeat_interleave(x, torch.tensor([1, 2]), dim=0) * x.sum()


def _where(x):
    rows, columns = torch.where(x > 0)
    return rows * 10 + columns


def _counted(x):
    return torch.bincount(x.abs().long().flatten()) + 1


def _of_size(x):
    many = x.nonzero().shape[0]
    return torch.ones(many + 1) * 2, torch.arange(many), many


def _item(x):
    return x * x.sum().item() + 1, x.sum().item()


def _arithmetic_of_item(x):
    scale = 1 / (x.abs().max().item() + 1) ** 0.5
    return x * scale, -scale, abs(scale) * 2


def _integers(x):
    count = int((x > 0).sum())
    torch._check(count <= x.numel())
    return torch.full((count + 2,), 1.5).cumsum(0) / (count + 1), count * 2


def _list(x):
    first, second = (x > 0).sum(1).tolist()
    torch._check_is_size(first)
    torch._check_is_size(second)
    return torch.zeros(first, second), first + second


def _narrowed(x):
    count = (x > 0).sum().item()
    torch._check_is_size(count)
    torch._check(count <= x.numel())
    return x.flatten()[:count] * 2


def _written(x):
    y = x * 2
    y[y > 1] = 5
    y.add_(1)
    return y[y > 1].sqrt(), y


def _float_conversion(x):
    return x * float((x > 0).sum()), int(x.abs().sum()) + 1


PROGRAMS = [
    _nonzero, _masked, _masked_sum, _rows, _mask_beside_list, _two_masks, _distinct, _distinct_rows, _consecutive, _selected,
    _repeated, _where, _counted, _of_size, _item, _arithmetic_of_item, _integers, _list, _narrowed, _written, _float_conversion,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_one_graph_gives_what_eager_does(program, backend):
    compiled = torch.compile(program, fullgraph=True, backend=backend)
    for x in INPUTS if program is not _two_masks else INPUTS[:2]:
        _same(compiled(x), program(x))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_the_first_example_decides_nothing(order):
    """A first call with no element, or one, is a call like others."""
    inputs = INPUTS[order:] + INPUTS[:order]
    for program in (_masked_sum, _rows, _where, _of_size, _distinct):
        compiled = torch.compile(program, fullgraph=True, backend="aot_eager")
        for x in inputs:
            _same(compiled(x), program(x))


def test_a_backend_sees_one_graph_and_values_make_no_new_ones():
    counter = CompileCounter()
    compiled = torch.compile(_masked_sum, fullgraph=True, backend=counter)
    for x in INPUTS[:4]:
        _same(compiled(x), _masked_sum(x))
    assert counter.frame_count == 1


def test_gradients_go_through_the_parts():
    weight = torch.randn(3, 3, requires_grad=True)

    def loss(x):
        hidden = (x @ weight).tanh()
        chosen = hidden[hidden > 0]
        return (chosen * chosen.sum().detach().item()).sum() / (chosen.shape[0] + 1)

    compiled = torch.compile(loss, fullgraph=True)
    for _ in range(3):
        x = torch.randn(5, 3)
        (expected,) = torch.autograd.grad(loss(x), weight)
        (found,) = torch.autograd.grad(compiled(x), weight)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_open_sizes_beside_unknown_ones():
    compiled = torch.compile(_rows, fullgraph=True, dynamic=True)
    for shape in ((4, 3), (6, 5), (7, 2)):
        x = torch.randn(*shape)
        _same(compiled(x), _rows(x))


def test_capture_changes_nothing():
    """The example run leaves inputs and random numbers alone."""

    def program(x):
        x.add_(1)
        noise = torch.rand(3)
        return x[x > 1] * 2, noise

    compiled = torch.compile(program, fullgraph=True, backend="eager")
    torch.manual_seed(1)
    one = torch.ones(3)
    expected = program(one)
    torch.manual_seed(1)
    other = torch.ones(3)
    _same(compiled(other), expected)
    _same(other, one)


def test_a_branch_on_such_a_number_ends_the_graph():
    def program(x):
        count = int((x > 0).sum())
        return x * 2 if count > 2 else x - count

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"(?s)branch on .*torch\._check"):
        torch.compile(program, fullgraph=True, backend="eager")(X)
    compiled = torch.compile(program, backend="eager")
    for x in INPUTS:
        _same(compiled(x), program(x))


def test_what_was_checked_is_known_and_holds_when_the_graph_runs():
    def program(x, y):
        count = x.item()
        torch._check(count >= 3, lambda: "too few")
        return y[:2] if count >= 2 else y

    compiled = torch.compile(program, fullgraph=True)
    _same(compiled(torch.tensor(4), X), X[:2])
    _same(compiled(torch.tensor(3), X), X[:2])
    with pytest.raises(RuntimeError, match="too few"):
        compiled(torch.tensor(2), X)


def test_what_an_operator_supposed_is_checked_when_the_graph_runs():
    def program(x, y):
        return x[x > 0] + y

    compiled = torch.compile(program, fullgraph=True)
    _same(compiled(torch.tensor([1.0, -1, 2]), torch.tensor([1.0, 2])), torch.tensor([2.0, 4]))
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        compiled(torch.tensor([1.0, -1, -2]), torch.tensor([1.0, 2]))  # one element, which eager expands


def test_without_the_settings_the_graph_ends():
    with config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False):
        for program in (_masked, _item):
            with pytest.raises(torch._dynamo.exc.Unsupported):
                torch.compile(program, fullgraph=True, backend="eager")(X)
            _same(torch.compile(program, backend="eager")(X), program(X))


def test_a_custom_operator_whose_result_is_as_large_as_values_say():
    @torch.library.custom_op("unknown_values::positive", mutates_args=())
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].clone()

    @positive.register_fake
    def _(x):
        size = torch.library.get_ctx().new_dynamic_size(min=0, max=100)
        return x.new_empty([size])

    def program(x):
        return positive(x) * 2, torch.ones(positive(x).shape[0])

    compiled = torch.compile(program, fullgraph=True)
    for x in INPUTS:
        _same(compiled(x), program(x))
    with pytest.raises(RuntimeError, match="register_fake"):
        torch.library.get_ctx()
    with config.patch(capture_dynamic_output_shape_ops=False), pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(program, fullgraph=True)(X)
