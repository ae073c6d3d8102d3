"""Context managers of the library as TorchScript classes."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import is_grad_enabled, set_grad_enabled


class strict_fusion:
    """Everything in the block is in groups, or the profiling executor says what is not."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass


class no_grad:
    """Nothing in the block is recorded for autograd."""

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = is_grad_enabled()
        set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        set_grad_enabled(self.prev)


class enable_grad:
    """Everything in the block is recorded for autograd."""

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = is_grad_enabled()
        set_grad_enabled(True)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        set_grad_enabled(self.prev)
