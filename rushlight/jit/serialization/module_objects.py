"""Build an archive's modules: from a type and attributes to a ScriptModule, whose parameters and buffers are the nn.Module's.

In: a module's type, and the values of its attributes. Out: the object that stands for it in scripted code. Stage: jit, loading.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.concrete import concrete_of_type
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import ClassType
from rushlight.nn import Module
from rushlight.nn.parameter import Parameter
from rushlight.serialization.errors import UnpicklingError

_OWN = frozenset(("training", "_is_full_backward_hook"))
_MAX_DEPTH = 200


def module_object(kind: ClassType) -> ScriptObject:
    """Return a new module of a type, without its attributes' values."""
    internal = frozenset(vars(Module())) - _OWN | {"_c", "_concrete", "original_name"}
    for name in kind.attributes:
        if name in internal or name.startswith("__"):
            raise UnpicklingError(f"{kind.name} has an attribute '{name[:100]}', a name that modules themselves use")
    return ScriptModule._make_module(concrete_of_type(kind, {}))._c


def fill_module(target: ScriptObject, values: dict[str, object]) -> None:
    """Set a module's attributes; those without a value are assigned later."""
    module = target.slots._module
    for name, attribute in target.type.attributes.items():
        value = values.get(name)
        if attribute.is_parameter:
            module._parameters[name] = value
        elif attribute.is_buffer:
            module._buffers[name] = value
        elif isinstance(value, ScriptObject) and value.type.is_module:
            module._modules[name] = value.slots._module
        elif name in values:
            module.__dict__[name] = value


def module_of(root: ScriptObject) -> ScriptModule:
    """Return the module of an object, finished with all its submodules: tensors that are parameters become Parameters."""
    module = root.slots._module
    modules = _all_modules(module)
    replacer = _Replacer()
    for each in modules:
        each._concrete.pre_hooks += each._c.type.hooks.get("pre_hooks", ())
        each._concrete.hooks += each._c.type.hooks.get("hooks", ())
        each._concrete.submodules.update({name: child._concrete for name, child in each._modules.items()})
        for name, value in each._parameters.items():
            if isinstance(value, Tensor):
                each._parameters[name] = replacer.parameter(value)
    for each in modules:
        each._add_scripted_hooks()
        for name in each._c.type.attributes:
            if name in each.__dict__:
                each.__dict__[name] = replacer.replaced(each.__dict__[name], 0)
    return module


def _all_modules(module: ScriptModule) -> list[ScriptModule]:
    """Return the modules in a module, each once. Those assigned as attributes, by `__setstate__`, become submodules."""
    found: dict[int, ScriptModule] = {}
    pending = [module]
    while pending:
        each = pending.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        for name in list(each._c.type.attributes):
            value = each.__dict__.get(name)
            if isinstance(value, ScriptObject) and value.type.is_module:
                each._modules[name] = each.__dict__.pop(name).slots._module
        pending += each._modules.values()
    return list(found.values())


class _Replacer:
    """Replaces tensors by their Parameters, wherever they occur. It keeps replaced tensors alive, so that their ids stay
    unique."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Tensor, Parameter]] = {}
        self.done: dict[int, tuple[object, object]] = {}

    def parameter(self, value: Tensor) -> Parameter:
        """Return the Parameter over a tensor's memory."""
        if id(value) not in self.made:
            self.made[id(value)] = (value, Parameter(value.detach(), value.requires_grad))
        return self.made[id(value)][1]

    def replaced(self, value: object, depth: int) -> object:
        """Return a value with its tensors replaced, in place where that is possible."""
        if isinstance(value, Tensor):
            return self.made[id(value)][1] if id(value) in self.made else value
        if depth > _MAX_DEPTH or type(value) not in (list, dict, tuple):
            return value
        if id(value) not in self.done:
            self.done[id(value)] = (value, value)
            self.done[id(value)] = (value, self._container(value, depth + 1))
        return self.done[id(value)][1]

    def _container(self, value: list | dict | tuple, depth: int) -> object:
        if type(value) is tuple:
            return tuple(self.replaced(item, depth) for item in value)
        for key, item in enumerate(value) if type(value) is list else value.items():
            value[key] = self.replaced(item, depth)
        return value
