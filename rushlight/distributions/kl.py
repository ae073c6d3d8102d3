"""kl_divergence(p, q): closed forms by the types of the distributions, registered with register_kl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributions.distribution import Distribution

Formula = Callable[[Any, Any], Tensor]
_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Return a decorator that registers a formula for KL(p || q) of these classes and their subclasses.

    They need not be subclasses of Distribution: packages have base classes of their own. TypeError for anything but classes.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def enter(formula: Formula) -> Formula:
        _formulas[type_p, type_q] = formula
        return formula

    return enter


def _find(type_p: type, type_q: type) -> Formula | None:
    """Return the formula of the nearest classes: first by p's order of base classes, then by q's."""
    for kind_p in type_p.__mro__:
        for kind_q in type_q.__mro__:
            if (kind_p, kind_q) in _formulas:
                return _formulas[kind_p, kind_q]
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return KL(p || q), the mean of log p(x) - log q(x) under p, of shape `batch_shape`.

    NotImplementedError for pairs of types without a formula.
    """
    formula = _find(type(p), type(q))
    if formula is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return formula(p, q)
