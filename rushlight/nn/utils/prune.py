"""`torch.nn.utils.prune`: set parts of a parameter to zero and keep them zero.

A pruned parameter `name` is stored as the parameter `name_orig` and the buffer `name_mask` of ones and zeros; a hook before
each call sets the attribute `name` to their product.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class BasePruningMethod(ABC):
    """The base of pruning methods: subclasses define `PRUNING_TYPE` and `compute_mask`.

    The type is "unstructured" (single elements), "structured" (slices of a dimension) or "global" (elements of several
    parameters as one). An instance is the hook of one parameter.
    """

    _tensor_name: str
    PRUNING_TYPE: str | None = None

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for the values (or importance scores) `t`, with zeros at least where `default_mask` has them."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor."""
        name = self._tensor_name
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune `module.<name>`, after earlier prunings of it, by a method made from the other arguments."""
        earlier = _hook_of(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier is not None:
            number, hook = earlier
            del module._forward_pre_hooks[number]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise ValueError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if earlier is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            mask = aten.ones_like.default(original.detach())
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        mask = method.compute_mask(scores, default_mask=mask)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return `t` with the chosen elements set to zero."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError("importance_scores should have the same shape as tensor t")
        mask = aten.ones_like.default(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor an ordinary parameter, with its zeros."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if name in module.__dict__:
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            if not self._pruning_methods and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a pruning of the same parameter; TypeError or ValueError for anything else."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask` combined with the last method's choice among the elements that are left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "structured":
            kept = _kept_slices(mask, method.dim)
            part = method.compute_mask(t.index_select(method.dim, kept), mask.index_select(method.dim, kept))
            return mask.index_copy(method.dim, kept, part.to(mask.dtype))
        if method.PRUNING_TYPE not in ("unstructured", "global"):
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        left = mask == 1
        chosen = method.compute_mask(t[left], mask[left])
        return aten.index_put.default(mask, [left], chosen.to(mask.dtype))


class Identity(BasePruningMethod):
    """Prunes nothing, but stores the parameter in the form of a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _ByAmount(BasePruningMethod):
    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount


class RandomUnstructured(_ByAmount):
    """Prunes elements at random: a share of them (float) or a number (int)."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _number_to_prune(self.amount, t.numel())
        mask = default_mask.clone().contiguous()
        if count:
            positions = aten.rand_like.default(t.detach()).reshape([-1]).topk(count)[1]
            mask.view([-1])[positions] = 0
        return mask


class L1Unstructured(_ByAmount):
    """Prunes the elements of the smallest magnitude."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _number_to_prune(self.amount, t.numel())
        mask = default_mask.clone().contiguous()
        if count:
            positions = t.detach().abs().reshape([-1]).topk(count, largest=False)[1]
            mask.view([-1])[positions] = 0
        return mask


class _Structured(_ByAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        """Return one score per slice; the slices with the smallest scores are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors.")
        size = t.shape[self.dim]
        count = _number_to_prune(self.amount, size)
        if count == 0:
            return default_mask
        kept = self._scores(t.detach()).topk(size - count)[1]
        slices = default_mask.new_zeros([size]).index_fill(0, kept, 1)
        shape = [1] * t.dim()
        shape[self.dim] = size
        return slices.view(shape) * default_mask


class RandomStructured(_Structured):
    """Prunes slices of dimension `dim` at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return aten.rand.default([t.shape[self.dim]])


class LnStructured(_Structured):
    """Prunes the slices of dimension `dim` that have the smallest n-norm."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        others = [index for index in range(t.dim()) if index != self.dim % t.dim()]
        return t.norm(float(self.n), others)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise ValueError(f"the mask has shape {list(self.mask.shape)}, the tensor {list(default_mask.shape)}")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Store `module.<name>` in the form of a pruned parameter, without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune a share (float) or number (int) of elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of the smallest magnitude, or of the smallest scores."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of dimension `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of dimension `dim` that have the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune where `mask` is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters, given as pairs of module and name, as if they were one.

    Raises TypeError for anything but such pairs, and for methods that are not unstructured.
    """
    pairs, scores = list(parameters), importance_scores or {}
    values = [getattr(module, name) for module, name in pairs]
    if not values:
        raise TypeError("global_unstructured(): expected at least one pair of module and name")
    relevance = [scores.get(pair, value).reshape([-1]) for pair, value in zip(pairs, values, strict=True)]
    masks = [
        getattr(module, name + "_mask", aten.ones_like.default(value.detach())).reshape([-1])
        for (module, name), value in zip(pairs, values, strict=True)
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    final = container.compute_mask(aten.cat.default(relevance).detach(), aten.cat.default(masks))
    parts = final.split_with_sizes([value.numel() for value in values])
    for (module, name), value, part in zip(pairs, values, parts, strict=True):
        custom_from_mask(module, name, part.view(value.shape))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its zeros; ValueError if it was not pruned."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    number, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Module) -> bool:
    """Return whether the module, or one below it, has a pruned parameter."""
    return any(isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values())


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return number, hook
    return None


def _kept_slices(mask: Tensor, dim: int) -> Tensor:
    """Return the indices of slices with unpruned elements."""
    others = [index for index in range(mask.dim()) if index != dim % mask.dim()]
    return (mask.sum(others) != 0).nonzero().squeeze(1)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    share = not isinstance(amount, numbers.Integral)
    if amount < 0 or (share and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_to_prune(amount: float, size: int) -> int:
    """Return the number of elements to prune, out of `size`; ValueError if there are fewer."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)
