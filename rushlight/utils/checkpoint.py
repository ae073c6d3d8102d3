"""Activation checkpointing: a part of the forward pass saves nothing for the backward pass, which recomputes it.

Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), https://arxiv.org/abs/1604.06174. There are two
implementations. The preferred one uses saved-tensor hooks: a saved tensor is replaced by its number, and unpacking runs the
function again, up to the last saved tensor. The reentrant one is a Function whose backward runs the function again and calls
backward on it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rushlight.amp.autocast_mode import RestoredAutocast, settings
from rushlight.autograd import Function, backward, enable_grad, no_grad
from rushlight.autograd.saved_tensor import save, unpack
from rushlight.autograd.saved_tensors_hooks import saved_tensors_hooks
from rushlight.core.device import gpus
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.nn.modules.container import Sequential
from rushlight.random import fork_rng, get_rng_state, set_rng_state
from rushlight.utils.selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SelectiveCheckpointContext", "checkpoint",
    "checkpoint_sequential", "create_selective_checkpoint_contexts", "noop_context_fn", "set_checkpoint_early_stop",
]  # fmt: skip
Contexts = Callable[[], tuple[AbstractContextManager, AbstractContextManager]]


class CheckpointError(RuntimeError):
    """The recomputation of a checkpointed function differs from its first run."""


class _RecomputationDone(Exception):
    """Ends the recomputation, because all saved tensors are available."""


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """Return two no-op contexts, for the first run and the recomputation."""
    return nullcontext(), nullcontext()


class _Settings(threading.local):
    early_stop: bool | None = None


_settings = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Return a context that sets whether recomputations of checkpoints made in it stop early, once everything needed is
    available."""
    before, _settings.early_stop = _settings.early_stop, enable
    try:
        yield
    finally:
        _settings.early_stop = before


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)`, saving only the arguments for the backward pass.

    `preserve_rng_state` (True) makes both runs draw the same random numbers. `context_fn` returns contexts for the two runs.
    With `determinism_check` "default", CheckpointError when the second run saves tensors of other shapes or dtypes; "none"
    skips the check. ValueError for unknown options, and for those that `use_reentrant=True` does not support. Pass
    `use_reentrant` explicitly.
    """
    if use_reentrant is None:
        _warn_missing_option("checkpoint")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, second = context_fn()
    if not state.grad_enabled:
        return function(*args, **kwargs)
    stop = early_stop if _settings.early_stop is None else _settings.early_stop
    frame = _Frame(function, args, kwargs, second, preserve, determinism_check == "default", stop)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    frame.has_finished = True
    return result


def _warn_missing_option(name: str) -> None:
    warnings.warn(
        f"torch.utils.checkpoint.{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
        "recommended; the default is use_reentrant=True.",
        stacklevel=3,
    )


class _ForwardState:
    """The random state and autocast of the first run, restored for the recomputation."""

    def __init__(self, preserve_rng_state: bool):
        self.random = get_rng_state() if preserve_rng_state else None
        self.on_gpus = [(found, found.get_state()) for found in gpus.generators()] if preserve_rng_state else []
        self.autocast = settings()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context in which the random numbers and autocast are as they were."""
        with fork_rng(enabled=self.random is not None), RestoredAutocast(self.autocast):
            if self.random is not None:
                set_rng_state(self.random)
            for generator, state in self.on_gpus:
                generator.set_state(state)
            yield


class _Frame:
    """One checkpointed call: the arguments, the saved tensors, and the recomputed ones of a backward pass.

    It lives as long as the nodes that saved tensors in it, and so do the recomputed tensors.
    """

    def __init__(self, function: Callable, args: tuple, kwargs: dict, context: AbstractContextManager,
                 preserve_rng_state: bool, checked: bool, early_stop: bool):  # fmt: skip
        self.function = function
        # Save arguments like a node does: inside another checkpointed call, that call's hooks handle them.
        self.args = [save(value) for value in args]
        self.kwargs = {name: save(value) for name, value in kwargs.items()}
        self.context = context
        self.surroundings = _ForwardState(preserve_rng_state)
        self.checked = checked
        self.early_stop = early_stop
        self.has_finished = False
        self.saved: list[tuple] = []
        self.found: list[Tensor] = []
        self.backward_number = -1
        self.lock = threading.RLock()

    def pack(self, tensor: Tensor) -> int:
        """Return a tensor's number."""
        self.saved.append(_metadata(tensor))
        return len(self.saved) - 1

    def unpack(self, number: int) -> Tensor:
        """Return the tensor of that number, after recomputation if this backward pass has not done it yet."""
        task = state.backward_task
        current = -2 if task is None else task.number
        with self.lock:
            if self.backward_number != current or task is None:
                self._recompute()
                self.backward_number = current
            return self.found[number]

    def _recompute(self) -> None:
        self.found = found = []

        def keep(tensor: Tensor) -> int:
            if self.has_finished and len(found) == len(self.saved):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
                    "pass."
                )
            found.append(tensor)
            if self.early_stop and len(found) == len(self.saved):
                raise _RecomputationDone
            return len(found) - 1

        args = [unpack(value, None) for value in self.args]
        kwargs = {name: unpack(value, None) for name, value in self.kwargs.items()}
        try:
            with self.surroundings.restored(), enable_grad(), saved_tensors_hooks(keep, found.__getitem__), self.context:
                self.function(*args, **kwargs)
        except _RecomputationDone:
            pass
        self._check(found)

    def _check(self, found: list[Tensor]) -> None:
        if not self.has_finished:  # a backward inside of the function: what is saved after it comes later
            del found[len(self.saved) :]
        if len(found) != len(self.saved):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                "recomputation.\n"
                f"Number of tensors saved during forward: {len(self.saved)}\n"
                f"Number of tensors saved during recomputation: {len(found)}."
            )
        pairs = zip(self.saved, map(_metadata, found), strict=True)
        differing = [(number, before, now) for number, (before, now) in enumerate(pairs) if before != now]
        if self.checked and differing:
            lines = [
                f"tensor at position {number}:\nsaved metadata: {_describe_metadata(before)}\n"
                f"recomputed metadata: {_describe_metadata(now)}"
                for number, before, now in differing
            ]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                "forward pass.\n" + "\n".join(lines)
            )


def _metadata(tensor: Tensor) -> tuple:
    return (tensor.shape, tensor.dtype, tensor.device)


def _describe_metadata(facts: tuple) -> dict[str, Any]:
    return dict(zip(("shape", "dtype", "device"), facts, strict=True))


class CheckpointFunction(Function):
    """The reentrant implementation: `apply(function, preserve_rng_state, *args)`."""

    @staticmethod
    def forward(ctx, run_function: Callable, preserve_rng_state: bool, *args: Any):
        """Run without recording."""
        if not any(isinstance(value, Tensor) and value.requires_grad for value in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)
        ctx.run_function = run_function
        ctx.surroundings = _ForwardState(preserve_rng_state)
        ctx.positions = [index for index, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.others = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*[args[index] for index in ctx.positions])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        """Run again with recording, and run backward on that tape."""
        if state.backward_task.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.others)
        for index, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            inputs[index] = tensor.detach().requires_grad_(tensor.requires_grad)
        with ctx.surroundings.restored(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(value.grad if isinstance(value, Tensor) else None for value in inputs))


def checkpoint_sequential(
    functions: Sequential | Iterable[Callable], segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run modules one after another, in `segments` parts, of which all but the last are checkpointed and of equal length.

    ValueError for options other than `preserve_rng_state`.
    """
    if use_reentrant is None:
        _warn_missing_option("checkpoint_sequential")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    size = len(parts) // segments
    for begin in range(0, size * (segments - 1), size) if size else ():
        run = _compose(parts[begin : begin + size])
        input = checkpoint(run, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _compose(parts[size * (segments - 1) :])(input)


def _compose(functions: list[Callable]) -> Callable:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices of the accelerators that tensors are on, and the states of their random numbers: there are none."""
    return [], []


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Restore the states that `get_device_states` gave. RuntimeError for states of an accelerator, of which there is none."""
    if devices:
        raise RuntimeError(f"there is no accelerator whose random numbers could be set, got devices {devices}")
