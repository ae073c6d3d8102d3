"""Dual numbers: the active levels of forward-mode AD, and the tangents that tensors have at each.

A tangent belongs to a tensor's impl at one level. Views have no tangents of their own but read those of their base, so that
writes to a view and to its base are seen by both. The calculations of a level run with only the outer levels active. So a
tangent can have tangents at the outer levels, and levels never mix (Siskind and Pearlmutter, "Perturbation Confusion and
Referential Transparency", 2005).
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
    """A level of forward mode: tangents by tensor impl, and the tangents of outputs that nodes saved."""

    __slots__ = ("tangents", "outputs")

    def __init__(self) -> None:
        self.tangents: weakref.WeakKeyDictionary[TensorImpl, Tensor] = weakref.WeakKeyDictionary()
        self.outputs: weakref.WeakKeyDictionary[Node, dict[int, Tensor]] = weakref.WeakKeyDictionary()

    def settle(self, view: Tensor) -> None:
        """Give a view that is about to lose its base its own copy of the base's tangent."""
        with Running(outside(self)):
            tangent = tangent_of(view, self)
            if tangent is not None:
                attach(view, self, tangent)


class Running:
    """Context manager in which only these levels are active, outermost first."""

    __slots__ = ("levels", "before")

    def __init__(self, levels: tuple[Level, ...]) -> None:
        self.levels = levels

    def __enter__(self) -> None:
        self.before = state.dual_levels, state.include
        set_active_levels(self.levels)

    def __exit__(self, *error: object) -> None:
        state.dual_levels, state.include = self.before


def set_active_levels(levels: tuple[Level, ...]) -> None:
    """Make these levels the active ones."""
    state.dual_levels = levels
    state.include = state.include | DUAL if levels else state.include & ~DUAL


def outside(level: Level) -> tuple[Level, ...]:
    """Return the levels outside of an active one."""
    return state.dual_levels[: state.dual_levels.index(level)]


def is_inexact(value: object) -> bool:
    """Return whether a value is a tensor of floats or complex numbers: others have no derivatives."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def tangent_of(tensor: Tensor, level: Level) -> Tensor | None:
    """Return the tangent of a tensor at a level, or None. Call it with only the outer levels active."""
    impl = tensor._impl
    found = level.tangents.get(impl)
    if found is not None or impl.view is None:
        return found
    base = impl.view.base._impl
    whole = level.tangents.get(base)
    if whole is None or not _has_tangents(tensor):
        return None
    return Window(base, impl).part(_with_layout_of(whole, base, level))


def _has_tangents(tensor: Tensor) -> bool:
    kind = tensor._impl.dtype
    return kind.is_floating_point or kind.is_complex


def _with_layout_of(whole: Tensor, base: TensorImpl, level: Level) -> Tensor:
    """Return the tangent of a base with the base's strides, starting at its storage's start."""
    if tuple(whole.stride()) != tuple(base.strides) or whole.storage_offset():
        level.tangents[base] = whole = whole.new_empty_strided(base.sizes, base.strides).copy_(whole)
    return whole


def attach(tensor: Tensor, level: Level, tangent: Tensor) -> None:
    """Set the tangent of a tensor that is no view. Also stores it for the node that saved the tensor as output."""
    impl = tensor._impl
    level.tangents[impl] = tangent
    meta = impl.autograd
    if meta is not None and meta.grad_fn is not None:
        level.outputs.setdefault(meta.grad_fn, {})[meta.output_nr] = tangent


def replace(tensor: Tensor, level: Level, tangent: Tensor | None) -> None:
    """Set the tangent of a tensor after a write: this one, or zeros if it had one before. A view's tangent is written into its
    base's."""
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


def detach_keeping_tangents(tensor: Tensor) -> Tensor:
    """Return the tensor without history but with its tangents. It shares memory with the tensor, unless its elements
    overlap."""
    impl = tensor._impl
    made = (aten.clone.default(tensor) if may_overlap(impl.sizes, impl.strides) else tensor).detach()
    for count, level in enumerate(state.dual_levels):
        with Running(state.dual_levels[:count]):
            tangent = tangent_of(tensor, level)
        if tangent is not None:
            level.tangents[made._impl] = tangent
    return made


def restore(output: Tensor, node: Node, output_nr: int) -> None:
    """Reattach the tangents of a node's saved output, which is a new object when it is unpacked."""
    for level in state.dual_levels:
        tangent = level.outputs.get(node, {}).get(output_nr)
        if tangent is not None:
            level.tangents[output._impl] = tangent


def fresh(primal: Tensor, level: Level, tangent: Tensor) -> Tensor:
    """Return a dual tensor of the level, with the value and history of `primal` and its tangents at the levels outside."""
    recorded = state.grad_enabled and primal.requires_grad
    dual = aten.clone.default(primal) if recorded else detach_keeping_tangents(primal)
    level.tangents[dual._impl] = tangent
    return dual
