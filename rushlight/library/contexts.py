"""The context of custom operators' shape rules, which creates sizes that depend on values."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import state

_LEAST = "expected limits of a size with 0 <= min <= max"


class FakeImplCtx:
    """Given to rules that `register_fake` registers, by `get_ctx()`."""

    def __init__(self, fakes: Any) -> None:
        self._fakes = fakes

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """Return a size of a result that depends on the values of the arguments, at least `min` and at most `max`.

        >>> @my_nonzero.register_fake
        ... def _(x):
        ...     return x.new_empty([torch.library.get_ctx().new_dynamic_size(), x.dim()], dtype=torch.int64)

        A compiled program keeps the operator in its graph under `torch._dynamo.config.capture_dynamic_output_shape_ops`.
        ValueError for limits that are none.
        """
        if not isinstance(min, int) or not (max is None or isinstance(max, int)):
            raise ValueError(f"{_LEAST}, got min={min!r} and max={max!r}")
        if min < 0 or (max is not None and max < min):
            raise ValueError(f"{_LEAST}, got min={min} and max={max}")
        if self._fakes.new_size is None:
            raise DataDependentError(
                "a custom operator's result is as large as values say, which are not known while a program is captured; set "
                "torch._dynamo.config.capture_dynamic_output_shape_ops = True to keep it in the graph"
            )
        return self._fakes.new_size(min, max)


def get_ctx() -> FakeImplCtx:
    """Return the context of the rule for shapes that runs; RuntimeError outside of such a rule."""
    if state.fakes is None:
        raise RuntimeError("get_ctx() gives what rules registered by register_fake need, and is to be called in one")
    return FakeImplCtx(state.fakes)
