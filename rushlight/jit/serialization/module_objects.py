"""Modules of archives: from a type and attributes to a ScriptModule, whose parameters and buffers are the nn.Module's.

In: a module's type, and the values of its attributes. Out: the object that stands for it in scripted code. Stage: jit, loading.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import ClassType
from rushlight.nn import Module
from rushlight.nn.parameter import Parameter
from rushlight.serialization.errors import UnpicklingError

_OWN = frozenset(("training", "_is_full_backward_hook"))
_DEEPEST = 200


def module_object(kind: ClassType) -> ScriptObject:
    """A new module of a type, without its attributes' values."""
    internal = frozenset(vars(Module())) - _OWN | {"_c", "original_name"}
    for name in kind.attributes:
        if name in internal or name.startswith("__"):
            raise UnpicklingError(f"{kind.name} has an attribute '{name[:100]}', a name that modules themselves use")
    return ScriptModule._of(kind)._c


def fill_module(target: ScriptObject, values: dict[str, object]) -> None:
    """Give a module its attributes; those without a value are to be assigned later."""
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
    """The module that an object stands for, finished with all its submodules: tensors that are parameters are Parameters."""
    module = root.slots._module
    made: dict[int, Parameter] = {}
    modules = _all_modules(module)
    for each in modules:
        for name, value in each._parameters.items():
            if isinstance(value, Tensor):
                if id(value) not in made:
                    made[id(value)] = Parameter(value.detach(), value.requires_grad)
                each._parameters[name] = made[id(value)]
    for each in modules:
        plain = [name for name in each._c.type.attributes if name in each.__dict__]
        for name in plain:
            each.__dict__[name] = _with_parameters(each.__dict__[name], made, 0)
    return module


def _all_modules(module: ScriptModule) -> list[ScriptModule]:
    """The modules in a module, each once. Those that were assigned as attributes, by `__setstate__`, become submodules."""
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
        pending += [child for child in each._modules.values() if child is not None]
    return list(found.values())


def _with_parameters(value: object, made: dict[int, Parameter], depth: int) -> object:
    """A value with the tensors in it that are parameters replaced, in place where that is possible."""
    if isinstance(value, Tensor):
        return made.get(id(value), value)
    if depth < _DEEPEST and isinstance(value, list):
        for index, item in enumerate(value):
            value[index] = _with_parameters(item, made, depth + 1)
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in value.items():
            value[key] = _with_parameters(item, made, depth + 1)
    elif depth < _DEEPEST and type(value) is tuple:
        return tuple(_with_parameters(item, made, depth + 1) for item in value)
    return value
