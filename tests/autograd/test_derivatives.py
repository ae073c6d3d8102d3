"""Every formula of the derivative table against differences along a direction, and against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE
from rushlight.core.tensor import Tensor
from rushlight.ops.registry import PRIMITIVES
from tests.ops.samples import Sample, map_tensors, samples
from tests.ops.torch_oracle import array_of, to_torch, torch_operator

RANDOM = (
    "uniform_", "normal_", "random_", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "native_dropout",
)  # fmt: skip
# Their arguments depend on one another in real use; they are checked as second derivatives of what they belong to.
TIED = (
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "native_layer_norm_backward",
    "native_batch_norm_backward",
    # Its gradient is that of log_softmax's input, see tests/ops/test_ctc_loss.py.
    "_ctc_loss",
    "_ctc_loss_backward",
    "mkldnn_rnn_layer_backward",
)
ONCE_ONLY = ("_scaled_dot_product_flash_attention_for_cpu", "_cdist_forward", "_pdist_forward")
# Their results are complex, or steps; `test_complex_derivatives` and the tests of the operators check them.
ELSEWHERE = (
    "view_as_complex", "_fft_r2c", "nextafter",
    # Functions of symmetric matrices, and modes without a gradient; see tests/linalg/test_gradients.py.
    "linalg_cholesky_ex", "cholesky_solve", "_linalg_eigh", "linalg_eig", "_linalg_eigvals", "_linalg_svd", "linalg_qr", "geqrf",
    "lu_unpack",
    # Random numbers whose gradients are implicit; see tests/distributions.
    "_standard_gamma", "_sample_dirichlet",
    # Steps, whose gradient is that of the numbers before they were rounded; see tests/ao/test_fake_quantize.py.
    "fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "fake_quantize_per_channel_affine_cachemask", "_fake_quantize_learnable_per_tensor_affine",
    "_fake_quantize_learnable_per_channel_affine", "_fused_moving_avg_obs_fq_helper",
)  # fmt: skip


def _positions(sample: Sample) -> list[int]:
    """Which positional arguments have a derivative. A formula that takes nothing says that there is none."""
    schema = sample.op._schema
    formulas = [formula for formula in DERIVATIVES[sample.op].formulas if formula.names]
    places = [schema.positions[name] for formula in formulas for name in formula.inputs]
    return [place for place in places if place < len(sample.args)]


def _takes_part(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0


def _inputs(sample: Sample) -> list[Tensor]:
    """The floating tensors that have a derivative, in order, as fresh leaves."""
    found: list[Tensor] = []

    def take(tensor: Tensor) -> Tensor:
        if _takes_part(tensor):
            found.append(tensor.detach().clone().requires_grad_())
        return tensor

    for position in _positions(sample):
        map_tensors(sample.args[position], take)
    return found


def _function(sample: Sample) -> Callable:
    """The sample's call as a function of its `_inputs`."""

    def call(*inputs: Tensor):
        rest = iter(inputs)
        args = list(sample.args)
        for position in _positions(sample):
            args[position] = map_tensors(args[position], lambda t: next(rest) if _takes_part(t) else t)
        if sample.op._schema.arguments[0].is_write:
            args[0] = args[0].clone()
        return sample.op(*args, **sample.kwargs)

    return call


def _has_derivative(sample: Sample) -> bool:
    if sample.op not in DERIVATIVES or sample.op._schema.name in (*RANDOM, *ELSEWHERE):
        return False
    # Padding and frequencies change the gradient and not the function, and ties of a maximum have no derivative.
    altered = sample.op._schema.name == "embedding" and len(sample.args) > 2
    altered |= sample.op._schema.name == "embedding_dense_backward" and sample.args[4]
    ties = sample.op._schema.name in ("amax", "amin") and 0 in sample.args[0].stride()
    return not altered and not ties and bool(_inputs(sample))


CHECKED = [s for s in samples() if _has_derivative(s) and s.op._schema.name not in TIED]


def _seeds(tensors: Sequence[Tensor], number: int) -> list[Tensor]:
    random = np.random.default_rng(number)
    return [rl.from_numpy(np.asarray(random.standard_normal(tensor.shape))) for tensor in tensors]


def _outputs(function: Callable, inputs: Sequence[Tensor]) -> list[Tensor]:
    result = function(*inputs)
    return [value for value in (result if isinstance(result, tuple | list) else [result]) if value is not None]


def _check_along_a_direction(function: Callable, inputs: Sequence[Tensor]) -> None:
    """<gradient, direction> equals the central difference of the outputs, weighted at random, along the direction."""
    weights, direction = None, _seeds(inputs, 1)

    def weighted(*values: Tensor) -> Tensor:
        nonlocal weights
        outputs = [value for value in _outputs(function, values) if value.requires_grad]
        weights = weights or _seeds(outputs, 2)
        return sum(((out * weight).sum() for out, weight in zip(outputs, weights, strict=True)), rl.zeros(()))

    found = rl.autograd.grad(weighted(*inputs), inputs, allow_unused=True)
    analytical = sum(float((g * d).sum()) for g, d in zip(found, direction, strict=True) if g is not None)
    step = 1e-5
    moved = [
        [(value.detach() + sign * step * d).requires_grad_() for value, d in zip(inputs, direction, strict=True)]
        for sign in (1, -1)
    ]
    numerical = float(weighted(*moved[0]).detach() - weighted(*moved[1]).detach()) / (2 * step)
    assert analytical == pytest.approx(numerical, rel=1e-5, abs=1e-6)


def test_every_primitive_is_declared():
    assert [str(op) for op in PRIMITIVES if op not in DERIVATIVES and op not in NON_DIFFERENTIABLE] == []


def test_no_primitive_is_declared_twice():
    assert not set(DERIVATIVES) & NON_DIFFERENTIABLE


@pytest.mark.parametrize("sample", CHECKED, ids=str)
def test_formula_matches_differences(sample: Sample):
    _check_along_a_direction(_function(sample), _inputs(sample))


@pytest.mark.parametrize("sample", [s for s in CHECKED if s.op._schema.name not in ONCE_ONLY], ids=str)
def test_second_derivative_matches_differences(sample: Sample):
    inputs, function = _inputs(sample), _function(sample)
    weights = _seeds([out for out in _outputs(function, inputs) if out.requires_grad], 3)

    def gradients(*values: Tensor) -> tuple[Tensor, ...]:
        outputs = [out for out in _outputs(function, values) if out.requires_grad]
        found = rl.autograd.grad(outputs, values, weights, create_graph=True, allow_unused=True)
        return tuple(value for value in found if value is not None and value.requires_grad)

    if gradients(*inputs):
        _check_along_a_direction(gradients, inputs)


@pytest.mark.parametrize("sample", [s for s in samples() if s.op._schema.name in RANDOM[:-1]], ids=str)
def test_random_writes_cut_the_gradient(sample: Sample):
    x = rl.ones(3, 4, dtype=rl.float64, requires_grad=True)
    sample.op(x * 2, *sample.args[1:]).sum().backward()
    assert not x.grad.numpy().any()


def test_dropout_passes_the_gradient_where_it_keeps_values():
    x = rl.ones(100, requires_grad=True)
    out, mask = rl.ops.aten.native_dropout(x, 0.25, True)
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), mask.numpy() / 0.75, rtol=1e-6)


def test_attention_says_that_it_cannot_be_differentiated_twice():
    query, key, value = (rl.ones(1, 1, 2, 2, requires_grad=True) for _ in range(3))
    out = rl.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value)[0]
    (first,) = rl.autograd.grad(out.sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        first.sum().backward()


def test_prod_has_exact_gradients_at_zeros():
    for values in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [2.0, 3.0, 4.0]):
        x = rl.tensor(values, requires_grad=True)
        x.prod(0).backward()
        others = [np.prod(values[:i] + values[i + 1 :]) for i in range(3)]
        assert x.grad.tolist() == pytest.approx(others)


def test_power_has_finite_gradients_at_zero():
    base = rl.tensor([0.0, 0.0, 2.0], requires_grad=True)
    exponent = rl.tensor([0.0, 2.0, 0.0], requires_grad=True)
    (base**exponent).sum().backward()
    assert base.grad.tolist() == [0.0, 0.0, 0.0]
    assert exponent.grad.tolist() == pytest.approx([0.0, 0.0, np.log(2.0)])


def _torch_takes(sample: Sample) -> bool:
    """Whether PyTorch has this call's gradient."""
    types = [argument.type for argument in sample.op._schema.arguments]
    if any(isinstance(value, float) and kind.is_tensor for value, kind in zip(sample.args, types, strict=False)):
        return False
    if sample.op._schema.name.startswith("scatter"):
        # PyTorch wants the source and the index of one shape for that.
        return sample.args[2].shape == sample.args[3].shape
    if sample.op._schema.name == "mkldnn_rnn_layer":  # has no float64 there
        return False
    mask = sample.kwargs.get("attn_mask")
    return not sample.is_own and (mask is None or mask.is_floating_point())


@pytest.mark.oracle
@pytest.mark.parametrize("sample", [sample for sample in CHECKED if _torch_takes(sample)], ids=str)
def test_gradient_agrees_with_torch(sample: Sample):
    torch = pytest.importorskip("torch")
    inputs = _inputs(sample)
    outputs = [out for out in _outputs(_function(sample), inputs) if out.requires_grad]
    weights = _seeds(outputs, 4)
    found = rl.autograd.grad(outputs, inputs, weights, allow_unused=True)
    theirs = [to_torch(torch, value.detach()).requires_grad_() for value in inputs]
    expected = _torch_gradients(torch, sample, theirs, [to_torch(torch, weight) for weight in weights])
    for got, want, value in zip(found, expected, inputs, strict=True):
        got, want = (np.zeros(value.shape) if g is None else array_of(g) for g in (got, want))
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


def _torch_gradients(torch, sample: Sample, inputs: list, weights: list) -> tuple:
    rest = iter(inputs)
    args = list(to_torch(torch, sample.args))
    for position in _positions(sample):
        given = sample.args[position]
        args[position] = map_tensors(given, lambda t: next(rest) if _takes_part(t) else to_torch(torch, t))
    if sample.op._schema.arguments[0].is_write:
        args[0] = args[0].clone()
    kwargs = {key: to_torch(torch, value) for key, value in sample.kwargs.items()}
    result = torch_operator(torch, sample.op)(*args, **kwargs)
    outputs = [out for out in (result if isinstance(result, tuple | list) else [result]) if out is not None]
    outputs = [out for out in outputs if out.requires_grad][: len(weights)]
    return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def test_elements_that_equal_a_bound_have_the_whole_gradient_of_clamp():
    def gradients(call):
        x, low, high = (rl.tensor(values, requires_grad=True) for values in ([-1.0, 0, 0.5, 1, 2], [0.0] * 5, [1.0] * 5))
        weighted = call(x, low, high) * rl.arange(1.0, 6.0)
        found = rl.autograd.grad(weighted.sum(), (x, low, high), allow_unused=True)
        return [None if grad is None else grad.tolist() for grad in found]

    inside = [0, 2, 3, 4, 0]
    assert gradients(lambda x, low, high: x.clamp(0, 1)) == [inside, None, None]
    assert gradients(lambda x, low, high: x.clamp(low, high)) == [inside, [1, 0, 0, 0, 0], [0, 0, 0, 0, 5]]
    assert gradients(lambda x, low, high: (x * 1).clamp_(min=low)) == [[0, 2, 3, 4, 5], [1, 0, 0, 0, 0], None]
    assert gradients(lambda x, low, high: x.clamp_max(1)) == [[1, 2, 3, 4, 0], None, None]
    assert gradients(rl.compile(lambda x, low, high: x.clamp(0, 1), fullgraph=True)) == [inside, None, None]


def test_clamp_by_what_is_no_number():
    x, bound = rl.tensor([-1.0, 2], requires_grad=True), rl.tensor([rl.nan, 0])
    assert x.clamp(min=bound).isnan().tolist() == [True, False] and x.clamp(rl.nan).isnan().all()


def test_none_stands_for_all_dimensions_of_an_extremum():
    x = rl.tensor([[1.0, 3.0], [3.0, 2.0]], requires_grad=True)
    rl.amax(x, dim=None).backward()
    assert x.grad.tolist() == [[0.0, 0.5], [0.5, 0.0]] and rl.amin(x, None, keepdim=True).tolist() == [[1.0]]
