"""Autocast: which operators run in which dtype, nesting, the cache of weights, Functions, compiled code, and the scaler."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight.amp import GradScaler, autocast, custom_bwd, custom_fwd
from rushlight.autograd import Function

LOW, HIGH = torch.bfloat16, torch.float32


def test_products_are_cast_and_losses_are_not():
    layer, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    with autocast("cpu"):
        y = layer(x)
        loss = torch.nn.functional.mse_loss(y, torch.zeros(2, 3))
        assert (y.dtype, loss.dtype, (x + x).dtype) == (LOW, HIGH, HIGH)
        assert torch.cat([y, torch.zeros(1, 3)]).dtype is HIGH
        assert (x.double() @ x.double().T).dtype is torch.float64
    loss.backward()
    assert layer.weight.grad.dtype is HIGH
    assert layer(x).dtype is HIGH


def test_dtype_and_nesting():
    a = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.float16):
        assert (a @ a).dtype is torch.float16
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu")
            assert (a @ a).dtype is HIGH
        with torch.autocast("cpu", dtype=LOW):
            assert torch.get_autocast_dtype("cpu") is LOW
            assert (a @ a).dtype is LOW
        assert (a @ a).dtype is torch.float16
    assert torch.get_autocast_dtype("cpu") is LOW
    assert not torch.is_autocast_enabled("cpu")


def test_as_decorator_and_per_thread():
    a, seen = torch.ones(2, 2), []

    @autocast("cpu")
    def product(x):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
        return x @ x

    assert product(a).dtype is LOW
    assert product(a).dtype is LOW
    assert seen == [HIGH, HIGH]


def test_a_weight_is_cast_once_and_the_next_region_sees_new_values():
    weight, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with autocast("cpu"):
        first, second = x @ weight, x @ weight
        casts = [y.grad_fn.next_functions[1][0] for y in (first, second)]
        assert casts[0] is casts[1]
        with torch.no_grad():
            assert (x @ weight).grad_fn is None
        assert (x @ weight).requires_grad
    (first + second).sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    with torch.no_grad():
        weight.mul_(2)
    with autocast("cpu"):
        assert (x @ weight).tolist() == [[4.0, 4.0], [4.0, 4.0]]
    with autocast("cpu", cache_enabled=False):
        casts = [(x @ weight).grad_fn.next_functions[1][0] for _ in range(2)]
        assert casts[0] is not casts[1]


def test_functions_run_as_their_decorators_say():
    seen = []

    class Product(Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=HIGH)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a.dtype, torch.is_autocast_enabled("cpu")))
            return a @ b

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append((grad.dtype, torch.is_autocast_enabled("cpu")))
            return grad @ b.T, a.T @ grad

    a = torch.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        y = Product.apply((a @ a), a)
    y.sum().backward()
    assert seen == [(HIGH, False), (HIGH, False)]


def test_compiled_code_knows_the_region():
    made = torch.compile(lambda a, b: (a @ b).relu() + 1)
    a, b = torch.randn(3, 4), torch.randn(4, 2)
    assert made(a, b).dtype is HIGH
    with autocast("cpu"):
        assert made(a, b).dtype is LOW
    assert made(a, b).dtype is HIGH
    inside = torch.compile(lambda a, b: _in_region(a, b))
    assert inside(a, b).dtype is LOW


def _in_region(a, b):
    with autocast("cpu"):
        return a @ b


def test_wrong_regions():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(3)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, .* device type at start of device string: toaster"):
        autocast("toaster")
    with pytest.warns(UserWarning, match="target dtype is not supported"), autocast("cpu", dtype=torch.int8):
        assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available"), autocast("cuda"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is HIGH


def test_old_names():
    with torch.cpu.amp.autocast():
        assert torch.is_autocast_cpu_enabled()
    assert torch.cpu.amp.GradScaler().is_enabled()


def problem():
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    return weight, torch.optim.SGD([weight], lr=0.1)


def test_the_scaler_changes_nothing_but_the_range():
    weight, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((weight * weight).sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([weight], 1e9)
        scaler.step(optimizer)
        scaler.update()
    assert weight.tolist() == pytest.approx([0.64, 1.28])
    assert scaler.get_scale() == 8.0


def test_steps_with_infinite_gradients_are_left_out():
    weight, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1.0, 2.0]
    assert scaler.get_scale() == 2.0
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 2.0


def test_a_disabled_scaler_does_nothing():
    weight, optimizer = problem()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = GradScaler()
    loss = (weight * weight).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == pytest.approx([0.8, 1.6])
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)


def test_the_order_of_calls():
    weight, optimizer = problem()
    scaler = GradScaler("cpu")
    with pytest.raises(RuntimeError, match="No inf checks"):
        scaler.update()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(ValueError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)


def test_the_scale_of_gradients_stays_finite():
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1e38, growth_factor=16.0, growth_interval=1)
    scaler.scale(weight.sum() * 1e-30).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == pytest.approx(1e38)
