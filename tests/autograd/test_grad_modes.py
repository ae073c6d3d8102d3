"""no_grad, enable_grad, set_grad_enabled and inference_mode, as blocks, decorators and around generators."""

from __future__ import annotations

import threading

import pytest

import rushlight as rl


def records() -> bool:
    return (rl.ones(1, requires_grad=True) * 2).requires_grad


def test_blocks_nest():
    assert records()
    with rl.no_grad():
        assert not records() and not rl.is_grad_enabled()
        with rl.enable_grad():
            assert records()
            with rl.set_grad_enabled(False):
                assert not records()
            assert records()
        assert not records()
    assert records()


def test_blocks_end_with_errors_too():
    for mode in (rl.no_grad, rl.inference_mode, lambda: rl.set_grad_enabled(False)):
        with pytest.raises(ZeroDivisionError), mode():
            raise ZeroDivisionError
        assert records() and not rl.is_inference_mode_enabled()


@pytest.mark.parametrize(
    "decorator",
    [
        lambda f: rl.no_grad(f), lambda f: rl.no_grad()(f), lambda f: rl.set_grad_enabled(False)(f),
        lambda f: rl.inference_mode(f), lambda f: rl.inference_mode()(f),
    ],
)  # fmt: skip
def test_decorators(decorator):
    @decorator
    def inside(value):
        """Documented."""
        return records(), value

    assert inside(3) == (False, 3) and inside.__name__ == "inside" and inside.__doc__ == "Documented."
    assert records()


def test_decorated_functions_may_call_themselves():
    @rl.no_grad()
    def countdown(n):
        return [records()] + (countdown(n - 1) if n else [])

    assert countdown(3) == [False] * 4 and records()


def test_set_grad_enabled_works_at_once():
    try:
        rl.set_grad_enabled(False)
        assert not records()
    finally:
        rl.set_grad_enabled(True)
    assert records()


def test_generators_run_in_the_mode_and_their_callers_do_not():
    log = []

    @rl.no_grad()
    def generator():
        try:
            got = yield records()
            log.append((got, records()))
            yield records()
        except KeyError:
            log.append(("thrown", records()))
            yield "recovered"
        finally:
            log.append(("closed", records()))
        return "done"

    def run():
        return (yield from generator())

    steps = run()
    assert next(steps) is False and records()
    assert steps.send("sent") is False and records()
    assert steps.throw(KeyError()) == "recovered" and records()
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "done"
    assert log == [("sent", False), ("thrown", False), ("closed", False)]
    log.clear()
    steps = generator()
    next(steps)
    steps.close()
    assert log == [("closed", False)] and records()


def test_modes_are_per_thread():
    seen = []
    with rl.no_grad(), rl.inference_mode():
        thread = threading.Thread(target=lambda: seen.append((records(), rl.is_inference_mode_enabled())))
        thread.start()
        thread.join()
    assert seen == [(True, False)]


def test_tensors_of_inference_mode():
    with rl.inference_mode():
        assert rl.is_inference_mode_enabled() and not rl.is_grad_enabled()
        x = rl.ones(3)
        view = x[0]
        x.add_(1)
        x.requires_grad_(True)
    assert x.is_inference() and view.is_inference() and x.view(3).is_inference()
    x.requires_grad_(False)
    assert not (x + 1).is_inference() and not rl.is_inference_mode_enabled()
    for use, message in (
        (lambda: x._version, "Inference tensors do not track version counter"),
        (lambda: x.add_(1), "Inplace update to inference tensor outside InferenceMode is not allowed"),
        (lambda: x.requires_grad_(), "Setting requires_grad=True on inference tensor outside InferenceMode"),
        (lambda: x * rl.ones(3, requires_grad=True), "Inference tensors cannot be saved for backward"),
    ):
        with pytest.raises(RuntimeError, match=message):
            use()
    assert (x + rl.ones(3, requires_grad=True)).requires_grad, "addition saves nothing"
    assert (x.clone() * rl.ones(3, requires_grad=True)).requires_grad


def test_normal_tensors_stay_normal_in_inference_mode():
    x = rl.ones(3)
    w = rl.ones(3, requires_grad=True)
    y = w * 2
    z = (y * y).sum()
    with rl.inference_mode():
        x.add_(1)
        assert x._version == 1 and not x.is_inference() and not x.view(3).is_inference() and (x + 1).is_inference()
        assert not (w * 2).requires_grad
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_inference_mode_can_be_switched_off_inside():
    with rl.inference_mode(), rl.inference_mode(False):
        assert records() and not rl.ones(1).is_inference()
    with rl.inference_mode(mode=False):
        assert records()
