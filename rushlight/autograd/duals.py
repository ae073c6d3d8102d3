"""Dual numbers: levels of forward mode that are running, and the tangents that tensors have at each.

A tangent belongs to a tensor's impl at one level. Views have no tangents of their own: theirs are read from that of their
base, so that writes to a view and to its base are seen by both. What is calculated for a level runs with the levels outside
of it alone, so that a tangent has tangents at those, and none is taken for another's (Siskind and Pearlmutter, "Perturbation
Confusion and Referential Transparency", 2005).
"""

from __future__ import annotations

import weakref

from rushlight.autograd.node import Node
from rushlight.autograd.view_history import Window
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.strides import may_overlap
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
DUAL = bit(DispatchKey.Dual)


class Level:
    """A level of forward mode: tangents by the impls that have them, and those of what nodes saved of their outputs."""

    __slots__ = ("tangents", "outputs")

    def __init__(self) -> None:
        self.tangents: weakref.WeakKeyDictionary[TensorImpl, Tensor] = weakref.WeakKeyDictionary()
        self.outputs: weakref.WeakKeyDictionary[Node, dict[int, Tensor]] = weakref.WeakKeyDictionary()

    def settle(self, view: Tensor) -> None:
        """Give a view, which will have no base any more, its part of the base's tangent."""
        with Running(outside(self)):
            tangent = tangent_of(view, self)
            if tangent is not None:
                attach(view, self, tangent)


class Running:
    """Context manager in which operators serve these levels, the outermost first."""

    __slots__ = ("levels", "before")

    def __init__(self, levels: tuple[Level, ...]) -> None:
        self.levels = levels

    def __enter__(self) -> None:
        self.before = state.dual_levels, state.include
        serve(self.levels)

    def __exit__(self, *error: object) -> None:
        state.dual_levels, state.include = self.before


def serve(levels: tuple[Level, ...]) -> None:
    """Let operators serve these levels from now on."""
    state.dual_levels = levels
    state.include = state.include | DUAL if levels else state.include & ~DUAL


def outside(level: Level) -> tuple[Level, ...]:
    """The levels outside of one that is running."""
    return state.dual_levels[: state.dual_levels.index(level)]


def tangent_of(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level, if it has one. Call it where the levels outside of it are served."""
    impl = tensor._impl
    found = level.tangents.get(impl)
    if found is not None or impl.view is None:
        return found
    base = impl.view.base._impl
    whole = level.tangents.get(base)
    if whole is None or not _has_tangents(tensor):
        return None
    return Window(base, impl).part(_laid_out(whole, base, level))


def _has_tangents(tensor: Tensor) -> bool:
    kind = tensor._impl.dtype
    return kind.is_floating_point or kind.is_complex


def _laid_out(whole: Tensor, base: TensorImpl, level: Level) -> Tensor:
    """The tangent of a base, laid out as the base is, from the start of its storage."""
    if tuple(whole.stride()) != tuple(base.strides) or whole.storage_offset():
        level.tangents[base] = whole = whole.new_empty_strided(base.sizes, base.strides).copy_(whole)
    return whole


def attach(tensor: Tensor, level: Level, tangent: Tensor) -> None:
    """Give a tensor that is no view a tangent, also where its node saved it."""
    impl = tensor._impl
    level.tangents[impl] = tangent
    meta = impl.autograd
    if meta is not None and meta.grad_fn is not None:
        level.outputs.setdefault(meta.grad_fn, {})[meta.output_nr] = tangent


def replace(tensor: Tensor, level: Level, tangent: Tensor | None) -> None:
    """Say that a tensor was written to: it has this tangent now, or zeros if it had one. A view's is part of its base's."""
    impl = tensor._impl
    if impl.view is None:
        if tangent is not None:
            attach(tensor, level, tangent)
        elif impl in level.tangents:
            attach(tensor, level, aten.zeros_like.default(tensor).detach())
        return
    base = impl.view.base
    whole = level.tangents.get(base._impl)
    if tangent is None and whole is None:
        return
    window = Window(base._impl, impl)
    copy = window.copy(aten.zeros_like.default(base).detach() if whole is None else whole)
    part = window.part(copy)
    part.copy_(aten.zeros_like.default(part) if tangent is None else tangent)
    attach(base, level, copy)


def kept(tensor: Tensor) -> Tensor:
    """The tensor without history, with its tangents: in its own memory, unless elements share that."""
    impl = tensor._impl
    made = (aten.clone.default(tensor) if may_overlap(impl.sizes, impl.strides) else tensor).detach()
    for count, level in enumerate(state.dual_levels):
        with Running(state.dual_levels[:count]):
            tangent = tangent_of(tensor, level)
        if tangent is not None:
            level.tangents[made._impl] = tangent
    return made


def restore(output: Tensor, node: Node, output_nr: int) -> None:
    """Give an output that a node saved, which is another object when it is unpacked, its tangents again."""
    for level in state.dual_levels:
        tangent = level.outputs.get(node, {}).get(output_nr)
        if tangent is not None:
            level.tangents[output._impl] = tangent


def fresh(primal: Tensor, level: Level, tangent: Tensor) -> Tensor:
    """A dual tensor of the level, with the value and history of `primal` and its tangents at the levels outside."""
    recorded = state.grad_enabled and primal.requires_grad
    dual = aten.clone.default(primal) if recorded else kept(primal)
    level.tangents[dual._impl] = tangent
    return dual
