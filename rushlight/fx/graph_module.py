"""GraphModule: an `nn.Module` whose `forward` is generated from a graph.

In: a `Graph` and a root (module or dict) with the parameters, buffers and submodules that it refers to. Out: a
callable module. The code is generated when it is first needed, so passes may rebuild graphs cheaply.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

if TYPE_CHECKING:
    from rushlight.fx.codegen import PythonCode

node_annotations, packages, packaging = map(
    LazyModule, ("rushlight.fx.annotations", "rushlight.fx.packages", "rushlight.fx.packaging")
)
_file_numbers = itertools.count()


class _UncompiledForward:
    """Stands for `forward` on a GraphModule's class until the code is needed; looking it up compiles the graph."""

    def __get__(self, module: GraphModule | None, owner: type) -> Any:
        if module is None:
            return self
        module.recompile()
        return module.forward


class GraphModule(Module):
    """A module that runs `graph`.

    Args:
        root: a module from which the attributes named by the graph are taken (shared, not copied), or a dict from
            dotted names to parameters, buffers and modules.
        graph: becomes this module's graph. After editing it, call `recompile()`.
        class_name: the name shown when printing.

    Raises RuntimeError if the graph names an attribute that the root lacks, TypeError for another kind of root.
    """

    # Each instance has a class of its own, because `forward` is looked up on the class.
    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        base = _base_class(cls)
        own = type(base.__name__, (base,), {"_is_generated": True, "__module__": base.__module__})
        own.forward = _UncompiledForward()
        return super().__new__(own)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = type(self).__qualname__ = class_name
        self.meta: dict[str, Any] = {}
        if isinstance(root, Module):
            self.training = root.training
        elif not isinstance(root, dict):
            raise TypeError(f"GraphModule needs a Module or a dict as root, got {type(root).__name__}")
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attribute(root, self, node.target, str(node))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one makes this module its owner and discards the compiled code."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"GraphModule.graph must be a Graph, got {type(graph).__name__}")
        self._graph = graph
        graph.owning_module = self
        self.discard_code()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if self._code is None:
            self.recompile()
        return self._code.src

    def discard_code(self) -> None:
        """Have the code generated again, from the graph as it is then, when it is next needed."""
        self._code: PythonCode | None = None
        type(self).forward = _UncompiledForward()

    def recompile(self) -> PythonCode:
        """Generate and compile `forward` from the graph as it is now, and return the code."""
        code = self._graph.python_code("self")
        origin = f" from {self._graph.origin}" if self._graph.origin else ""
        filename = f"<rushlight.fx {type(self).__name__} {next(_file_numbers)}{origin}>"
        exec(compile(code.src, filename, "exec"), code.globals)
        forward = code.globals.pop("forward")
        linecache.cache[filename] = (len(code.src), None, code.src.splitlines(True), filename)
        weakref.finalize(forward, linecache.cache.pop, filename, None).atexit = False
        self._code = code
        type(self).forward = forward
        return code

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        """Add a note with the failing line of the generated code and the user's line that it comes from."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is getattr(type(self).forward, "__code__", None):
                node = self._code.node_of_line.get(trace.tb_lineno)
                frame = node_annotations.innermost_frame(node.stack_trace) if node is not None else None
                if frame is not None:
                    error.add_note(f"While executing node {node.name}, from {frame[0]}:{frame[1]}: {frame[3]}")
                return
            trace = trace.tb_next

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
    ) -> str:
        """Return the class with types and the user's source lines, as text; also printed unless `print_output` is False.

        GraphModules among the submodules follow inside it.
        """
        code = self._graph.python_code(
            "self", verbose=True, include_stride=include_stride, include_device=include_device
        )
        parts = [f"class {type(self).__name__}(torch.nn.Module):", _indent(code.src)]
        for child in self.children():
            if isinstance(child, GraphModule):
                parts.append(_indent(child.print_readable(False, include_stride, include_device)))
        text = "\n".join(parts)
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put `m` at the dotted path `target`, making empty modules on the way.

        Returns False, changing nothing, if something on the way is not a module.
        """
        *path, name = target.split(".")
        owner: Any = self
        for atom in path:
            if not hasattr(owner, atom):
                owner.add_module(atom, Module())
            owner = getattr(owner, atom)
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its source, `state_dict.pt`, and a file for each submodule that it calls.

        The package's class `module_name` takes no arguments, and loads its parameters from the folder.
        """
        packages.write_package(self, Path(folder), module_name)

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a dotted path; False if there is none."""
        *path, name = target.split(".")
        owner: Any = self
        for atom in path:
            owner = getattr(owner, atom, None)
        if not isinstance(owner, Module) or name not in owner._modules:
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove every submodule that no node calls or reads from, directly or through its parents."""
        used: set[str] = set()
        modules = dict(self.named_modules(remove_duplicate=False))
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                atoms = node.target.split(".")
                used.update(".".join(atoms[:end]) for end in range(1, len(atoms) + 1))
            if node.op == "call_module" and node.target in modules:
                called = modules[node.target]
                used.update(f"{node.target}.{name}" for name, _ in called.named_modules(remove_duplicate=False) if name)
        for name in modules:
            if name and name not in used:
                self.delete_submodule(name)

    def __deepcopy__(self, memo: dict) -> GraphModule:
        made = memo[id(self)] = _rebuild(type(self), type(self).__name__, {}, copy.deepcopy(self._graph, memo))
        made.__dict__.update(copy.deepcopy(self._packed_state(), memo), meta=copy.deepcopy(self.meta, memo))
        return made

    def __copy__(self) -> GraphModule:
        state = {**self._packed_state(), "meta": dict(self.meta)}
        return _rebuild(type(self), type(self).__name__, state, copy.deepcopy(self._graph))

    def __reduce__(self) -> tuple:
        return _rebuild, (_base_class(type(self)), type(self).__name__, {**self._packed_state(), "meta": {}}, self._graph)

    def __reduce_package__(self, exporter: Any) -> tuple:
        """Write this module for `torch.package`: its code goes into the package, as one of its modules."""
        return packaging.to_package(self, exporter)

    def _packed_state(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_graph", "_code", "meta")}

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n\n{self.code}"


def _base_class(kind: type) -> type:
    """Return the class that the user named, below the ones that `__new__` makes."""
    return next(base for base in kind.__mro__ if "_is_generated" not in base.__dict__)


def _rebuild(base: type, name: str, state: dict[str, Any], graph: Graph) -> GraphModule:
    """Return a GraphModule from the parts of another one, without running `__init__`."""
    made = base.__new__(base)
    made.__dict__.update(state)
    type(made).__name__ = name
    made.graph = graph
    return made


def _indent(text: str) -> str:
    return "\n".join("    " + line if line else "" for line in text.splitlines())


def _copy_attribute(root: Module | dict[str, Any], module: Module, path: str, node_name: str) -> None:
    """Share the attribute at `path` of `root` with `module`, making empty modules on the way."""
    *parents, name = path.split(".")
    value, persistent = _find_attribute(root, path, node_name)
    owner = module
    for atom in parents:
        if atom not in owner._modules:
            owner.add_module(atom, Module())
        owner = owner._modules[atom]
    if any(group.get(name, module) is value for group in (owner._parameters, owner._buffers, owner._modules, owner.__dict__)):
        return
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.register_buffer(name, value, persistent)
    else:
        setattr(owner, name, value)


def _find_attribute(root: Module | dict[str, Any], path: str, node_name: str) -> tuple[Any, bool]:
    """Return the attribute at `path`, and whether it belongs in the state dict if it is a buffer."""
    if isinstance(root, dict):
        if path not in root:
            raise RuntimeError(f"Node {node_name} referenced target {path}, which the root dict lacks: {list(root)}")
        return root[path], True
    owner, found = None, root
    for atom in path.split("."):
        if not hasattr(found, atom):
            raise RuntimeError(
                f"Node {node_name} referenced target {path}, but {type(found).__name__} has no attribute {atom}"
            )
        owner, found = found, getattr(found, atom)
    return found, atom not in getattr(owner, "_non_persistent_buffers_set", ())


def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> GraphModule:
    """Return the GraphModule that `torch.package` wrote: `body` is its state, and its code a module of the package."""
    return packaging.from_package(importer, body, generated_module_name)


# Names of PyTorch's module that packages import to write a GraphModule of their own.

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module that takes over the attributes of another."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Share the attribute at a dotted path of one module with another."""
    _copy_attribute(from_module, to_module, target, target)
