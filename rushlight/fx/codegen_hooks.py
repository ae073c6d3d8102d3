"""CodeGen: how the function that a graph becomes takes its inputs and returns its results.

In: the parameters and results that the graph has. Out: the function's first lines and its return statement. A subclass, given
to `Graph.set_codegen`, changes the calling convention of a GraphModule without a change of its nodes.
"""

from __future__ import annotations

from typing import Any


class CodeGen:
    """The plain convention: a parameter per placeholder, and the output's value as it is."""

    def __init__(self) -> None:
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The function's head: from `def` to what has to run before the first node, without a newline at the end.

        `free_vars` are the parameters with their annotations and defaults.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The return statement; `output_args` is the value of the output node, whose nodes print as their names."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs from the arguments of a call: what `Interpreter.run` does first."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns, from the graph's results: what `Interpreter.run` does last."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the text of `gen_fn_def` and `generate_output` needs, with their values."""
        return []
