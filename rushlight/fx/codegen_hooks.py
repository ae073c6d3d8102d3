"""CodeGen: how a graph's generated function takes its inputs and returns its results.

In: the graph's parameters and results. Out: the function's first lines and its return statement. A subclass, passed
to `Graph.set_codegen`, changes the calling convention of a GraphModule without a change of its nodes.
"""

from __future__ import annotations

from typing import Any


class CodeGen:
    """The default convention: a parameter per placeholder, and the output's value unchanged."""

    def __init__(self) -> None:
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the head of the function: from `def` to the code that has to run before the first node, without a final
        newline.

        `free_vars` are the parameters with their annotations and defaults.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """Return the return statement; `output_args` is the value of the output node, whose nodes print as their names."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments of a call to the graph's inputs; `Interpreter.run` does this first."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Convert the graph's results to the value that a call returns; `Interpreter.run` does this last."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names that the text of `gen_fn_def` and `generate_output` needs, with their values."""
        return []
