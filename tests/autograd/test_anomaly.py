"""Anomaly mode: the forward line of a failing node, NaN, nesting and cost."""

from __future__ import annotations

import threading
import warnings

import pytest

import rushlight as torch
from rushlight.autograd import Function, detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly


class Failing(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("no gradient today")


def test_the_forward_line_is_shown():
    x = torch.ones(2, requires_grad=True)
    with detect_anomaly():
        y = Failing.apply(x * 2)  # the line to look for
        with pytest.warns(UserWarning, match="the line to look for") as seen, pytest.raises(RuntimeError, match="no gradient today"):
            y.sum().backward()
    text = str(seen[0].message)
    assert text.startswith("Error detected in FailingBackward. Traceback of forward call that caused the error:")
    assert text.rstrip().endswith("the line to look for")


def test_nan_is_an_error_unless_unwanted():
    def program():
        x = torch.tensor([-1.0, 1.0], requires_grad=True)
        return x, torch.sqrt(x).nan_to_num(0.0) if hasattr(torch, "nan_to_num") else torch.sqrt(x)

    with detect_anomaly():
        _, y = program()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), pytest.raises(
            RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."
        ):
            y.sum().backward()
    with detect_anomaly(check_nan=False):
        x, y = program()
        y.sum().backward()
        assert x.grad.isnan().any()


def test_a_graph_made_before_the_mode_has_no_lines():
    x = torch.ones(2, requires_grad=True)
    y = Failing.apply(x)
    with detect_anomaly(), pytest.warns(UserWarning, match="No forward pass information available"), pytest.raises(RuntimeError):
        y.sum().backward()


def test_errors_in_double_backward_show_both_passes():
    class TwiceFailing(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return Failing.apply(grad)  # in the first backward

    x = torch.ones(2, requires_grad=True)
    with detect_anomaly():
        y = TwiceFailing.apply(x)  # in the forward pass
        weight = torch.ones(2, requires_grad=True)
        (grad,) = torch.autograd.grad(y, x, weight, create_graph=True)
        with pytest.warns(UserWarning) as seen, pytest.raises(RuntimeError):
            grad.sum().backward()
    text = str(seen[0].message)
    assert "in the first backward" in text
    assert "Previous calculation was induced by TwiceFailingBackward" in text
    assert "in the forward pass" in text


def test_modes_nest_and_end():
    assert not is_anomaly_enabled()
    with detect_anomaly():
        assert is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        with set_detect_anomaly(True, check_nan=False):
            assert not is_anomaly_check_nan_enabled()
        assert is_anomaly_check_nan_enabled()
    set_detect_anomaly(True)
    assert is_anomaly_enabled()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
    thread.start()
    thread.join()
    set_detect_anomaly(False)
    assert not is_anomaly_enabled()
    assert seen == [False]


def test_inplace_errors_point_to_the_mode():
    def failing():
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    with pytest.raises(RuntimeError, match="Hint: enable anomaly detection"):
        failing()
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="Hint: the backtrace further above shows the operation"):
            failing()
