"""The plan of `load_state_dict`: steps that are all checked before any is carried out.

In: pairs of a module's tensor and a value of a state dict. Out: the tensors written, or one RuntimeError with all faults and
nothing written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.nn.parameter import Buffer, Parameter, is_lazy

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

# The key of a module's local metadata that holds the plan of the whole load.
PLAN = "_load_plan"


class IncompatibleKeys(NamedTuple):
    """Keys missing in the state dict, and keys unknown to the module."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class LoadPlan:
    """The steps of one `load_state_dict` call and the faults found so far."""

    def __init__(self, module_name: str, strict: bool, assign: bool) -> None:
        self.module_name = module_name
        self.strict = strict
        self.assign = assign
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.steps: list[_CopyStep | _AssignStep | _ExtraStateStep] = []

    def add(self, module: Module, name: str, key: str, current: Tensor, value: Any, errors: list[str]) -> None:
        """Plan to load `value` into `current`, the tensor called `name` of `module`, or record why it does not fit."""
        if not isinstance(value, Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        if is_lazy(current) and is_lazy(value):
            return
        if is_lazy(value):
            errors.append(f'"{key}" is uninitialized in the state dict, but the module has a tensor of known shape there')
            return
        if current.dim() == 0 and value.dim() == 1 and value.numel() == 1:
            value = value[0]  # Checkpoints from before 0-dim tensors existed.
        if value.shape != current.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {current.shape}."
            )
        elif not self.assign:
            self.steps.append(_CopyStep(current, value))
        elif current.requires_grad and not (value.is_floating_point() or value.is_complex()):
            errors.append(f'cannot assign "{key}": the parameter requires grad, which dtype {value.dtype} cannot')
        else:
            self.steps.append(_AssignStep(module, name, current, value))

    def add_extra_state(self, module: Module, state: Any) -> None:
        """Plan to call `module.set_extra_state(state)`."""
        self.steps.append(_ExtraStateStep(module, state))

    def apply(self) -> None:
        """Carry out the steps."""
        for step in self.steps:
            step.apply()

    def execute(self, hooks: list[tuple[Module, Callable]]) -> None:
        """Check, carry out the steps and call the hooks; RuntimeError if anything does not fit.

        Hooks see the loaded values and may remove missing and unexpected keys from the lists. If keys are left after the hooks,
        the old values are restored.
        """
        if self.errors or not hooks:
            self.raise_faults()
        undo = [step.undo() for step in self.steps] if self.strict and any(self.keys) and hooks else []
        self.apply()
        for module, hook in hooks:
            if hook(module, self.keys) is not None:
                raise RuntimeError("load_state_dict post hooks must return None: change the lists of keys in place")
        try:
            self.raise_faults()
        except RuntimeError:
            for restore in undo:
                restore()
            raise

    def raise_faults(self) -> None:
        """Raise RuntimeError with all faults, if there are any."""
        faults = []
        if self.strict and self.keys.missing_keys:
            faults.append(f"Missing key(s) in state_dict: {_quote_keys(self.keys.missing_keys)}. ")
        if self.strict and self.keys.unexpected_keys:
            faults.append(f"Unexpected key(s) in state_dict: {_quote_keys(self.keys.unexpected_keys)}. ")
        faults += self.errors
        if faults:
            raise RuntimeError(f"Error(s) in loading state_dict for {self.module_name}:\n\t" + "\n\t".join(faults))


class _CopyStep:
    """Copy values into the module's own tensor."""

    def __init__(self, current: Tensor, value: Tensor) -> None:
        self.current, self.value = current, value

    def apply(self) -> None:
        self.current.copy_(self.value)

    def undo(self) -> Callable[[], Any]:
        before = self.current.detach().clone()
        return lambda: self.current.copy_(before)


class _AssignStep:
    """Replace the module's tensor by the given one."""

    def __init__(self, module: Module, name: str, current: Tensor, value: Tensor) -> None:
        self.module, self.name, self.current, self.value = module, name, current, value

    def apply(self) -> None:
        value = self.value
        if isinstance(self.current, Parameter):
            if not isinstance(value, Parameter) or value.requires_grad != self.current.requires_grad:
                value = Parameter(value, self.current.requires_grad)
        elif isinstance(value, (Parameter, Buffer)):
            value = value.data
        setattr(self.module, self.name, value)

    def undo(self) -> Callable[[], Any]:
        return lambda: setattr(self.module, self.name, self.current)


class _ExtraStateStep:
    """Pass extra state to a module."""

    def __init__(self, module: Module, state: Any) -> None:
        self.module, self.state = module, state

    def apply(self) -> None:
        self.module.set_extra_state(self.state)

    def undo(self) -> Callable[[], Any]:
        before = self.module.get_extra_state()
        return lambda: self.module.set_extra_state(before)


def _quote_keys(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
