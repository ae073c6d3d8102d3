"""Interpreter: run a graph node by node, with a method per opcode that subclasses override.

In: a `GraphModule` (or a module and a graph) and the inputs. Out: the graph's output. Analyses and backends
subclass it; `fx` has no other evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.core.lazy_module import lazy_names
from rushlight.fx.codegen import last_uses
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, map_arg

__getattr__, __dir__ = lazy_names(globals(), {"rushlight.fx.transformer": ("Transformer",)})


class Interpreter:
    """Executes a graph, keeping in `env` the value of every node that is still needed.

    Args:
        module: what `get_attr` and `call_module` targets refer to; its `graph` is run unless one is given.
        garbage_collect_values: drop each value after its last use.
        graph: the graph to run instead of `module.graph`.

    Set `extra_traceback` to False to leave errors without a note about the node that failed.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self._released = last_uses(self.graph) if garbage_collect_values else {}

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """Run the graph on `args` and return its output.

        Nodes in `initial_env` take their value from there and are not run. Errors carry a note that names the node. The
        graph's `CodeGen`, if it has one, takes arguments and results apart, unless `enable_io_processing` is False.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        result = self._run_nodes()
        return self.graph.process_outputs(result) if enable_io_processing else result

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Like `run`, but empties `args_list`, so that each input can be freed after its last use."""
        self.env = {}
        self.args_iter = _drain(args_list[::-1])
        args_list.clear()
        return self._run_nodes()

    def _run_nodes(self) -> Any:
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self._run_and_explain(node)
            for dead in self._released.get(node, ()):
                self.env.pop(dead, None)
            if node.op == "output":
                return self.env.pop(node)
        return None

    def _run_and_explain(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                error.add_note(describe_failure(node))
            raise

    def run_node(self, n: Node) -> Any:
        """Run one node: fetch its arguments from `env` and call the method named like its opcode."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # One method per opcode: override these.

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the next input; the remaining ones for `*target`; the default if there are no more.

        Raises RuntimeError if an input without a default is missing.
        """
        if target.startswith("**"):
            return {}
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the attribute of the module at the dotted path `target`."""
        return self.fetch_attr(target)

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function or operator."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the method `target` of `args[0]` with the other arguments."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the submodule at the dotted path `target`."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the graph's result."""
        return args[0]

    # Helpers

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute of the module at a dotted path; RuntimeError names the part that is missing."""
        found = self.module
        atoms = target.split(".")
        for position, atom in enumerate(atoms):
            if not hasattr(found, atom):
                path = ".".join(atoms[: position + 1])
                raise RuntimeError(f"Node referenced nonexistent target {path} in {type(self.module).__name__}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """Return the arguments of a node with every node in them replaced by its value."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Replace the nodes in nested arguments of `n` by their values, in plain lists and dicts.

        Raises RuntimeError if a node has no value yet.
        """
        if isinstance(args, Node):
            try:
                return self.env[args]
            except KeyError:
                raise RuntimeError(
                    f"Node {n} uses node {args}, which has no value: it stands later in the graph, or its value was "
                    "dropped. Run graph.lint() to diagnose such issues"
                ) from None
        if type(args) is tuple:
            return tuple([self.map_nodes_to_values(item, n) for item in args])
        if isinstance(args, list):
            return [self.map_nodes_to_values(item, n) for item in args]
        if isinstance(args, dict):
            return {key: self.map_nodes_to_values(item, n) for key, item in args.items()}
        if isinstance(args, (slice, tuple)):
            return map_arg(args, lambda used: self.map_nodes_to_values(used, n))
        return args


def _drain(reversed_values: list[Any]) -> Iterator[Any]:
    """Yield the values from the last to the first, each forgotten when it is handed out."""
    while reversed_values:
        yield reversed_values.pop()


def describe_failure(node: Node) -> str:
    """Return the note added to an error raised while `node` ran."""
    trace = node.stack_trace
    return f"While executing {node.format_node()}" + (f"\nOriginal traceback:\n{trace}" if trace else "")
