"""Attention and its gradients as C++: calls of attention.h and attention_backward.h."""

from __future__ import annotations

import math

from rushlight.core.algebra import to_cpp
from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.cpp.expressions import StatementWriter
from rushlight.inductor.codegen.cpp.packing import texts
from rushlight.inductor.codegen.cpp.types import c_type, size_text
from rushlight.inductor.ir import Call, Constant, Load, Pointwise, TemplateBuffer, Value, walk
from rushlight.inductor.sizes import Size, as_size, stride_along


class AttentionWriter:
    """The part of `TemplateKernel` for attention. The method `_KIND` writes the call for templates of that kind."""

    template: TemplateBuffer

    def _attention(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        depth, heads, rows = parameters["depth"], parameters["heads"], parameters["rows_each"]
        operands = [f"{self.pointer_to(template.operands[name])}, {self._strides(name)}" for name in ("q", "k", "v")]
        out, sums = self.pointer(template.name, write=True), parameters.get("sums")
        sums = "nullptr" if sums is None else f"{out} + {size_text(sums)}"
        sizes = texts(parameters["batch"], heads, rows, parameters["keys"])
        self._count_work(4)
        return [
            f"rl::attention<{depth}>({', '.join(operands)},",
            f"    {out}, {_row_strides(rows, heads, depth)}, {sums}, {sizes}, "
            f"{self._option_arguments()}{self._mask_arguments()});",
        ]

    def _attention_backward(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        depth, heads, rows, keys = (parameters[name] for name in ("depth", "heads", "rows_each", "keys"))
        lines = [f"{{{self.pointer_to(template.operands[name])}, {self._strides(name)}}}," for name in
                 ("q", "k", "v", "out", "grad")]  # fmt: skip
        out, start = self.pointer(template.name, write=True), as_size(0)
        for length in (rows, keys, keys):
            lines.append(f"{{{out} + {size_text(start)}, {_row_strides(length, heads, depth)}}},")
            start = as_size(start + parameters["batch"] * heads * length * depth)
        lines.append(f"{self.pointer_to(template.operands['sums'])}, {self._strides('sums')}")
        self.scratch = (
            f"scratch_{template.name}", f"rl::attention_backward_scratch_bytes({size_text(keys)}, {size_text(depth)})"
        )  # fmt: skip
        scratch = self.extra("char*", "scratch", self.scratch[0])
        sizes = texts(parameters["batch"], heads, rows, keys)
        self._count_work(10)
        return [
            "const rl::head_gradients at = {",
            *[f"  {line}" for line in lines],
            "};",
            f"rl::attention_backward<{depth}>(at, {sizes}, {self._option_arguments()}, {scratch}{self._mask_arguments()});",
        ]

    def _strides(self, name: str) -> str:
        """Return an operand's strides as a rl::head_strides; trailing ones may be missing."""
        return f"{{{texts(*self.template.operands[name].strides)}}}"

    def _option_arguments(self) -> str:
        parameters = self.template.parameters
        return f"{parameters['scale']!r}f, {'true' if parameters['causal'] else 'false'}"

    def _count_work(self, products: int) -> None:
        """Estimate the operations: `products` per score and column."""
        sizes = [self.template.parameters[name] for name in ("batch", "heads", "rows_each", "keys", "depth")]
        work = as_size(products)
        for size in sizes:
            work = as_size(work * size)
        self.kernel.work = work

    def _mask_arguments(self) -> str:
        if self.template.score is not None:
            return self._score_function(self.template.score)
        operand = self.template.operands.get("mask")
        if operand is None:
            return ""
        kind = c_type(self.element_type(operand.buffer))
        return f", rl::attention_mask<{kind}>{{{self.pointer_to(operand)}, {texts(*operand.strides)}}}"


    def _score_function(self, score: Pointwise) -> str:
        """Return the C++ functions for a score: the score's function, an early test whether the score is not -inf, and a
        function that packs values."""
        self.note_status(score.body)
        parameters = "auto lane, " + ", ".join(f"[[maybe_unused]] long {variable}" for variable in score.variables)
        seen = _visibility_condition(score.body, self.template.parameters["scores"])
        packed = _read_along_keys(score, self.template.parameters["scores"])
        seen = None if seen is None or any(node in packed for node in walk(seen)) else seen
        functions = [
            self._score_lambda(f"{parameters}, auto value, [[maybe_unused]] const float* packed", score, score.body, packed),
            "0" if seen is None else self._score_lambda(parameters, score, seen, {}),
            self._packing_lambda(score, list(packed)) if packed else "0",
        ]
        flags = ["false" if seen is None else "true", "true" if self.template.parameters["empty_is_nan"] else "false"]
        return f",\n    rl::scored<{', '.join(flags)}, {len(packed)}>({', '.join(functions)})"

    def _score_lambda(self, parameters: str, score: Pointwise, body: Value, packed: dict[Load, int]) -> str:
        writer = StatementWriter(score.variables[2], self.pointer, self.element_type, self.stream)
        writer.local[self.template.parameters["scores"]] = "value"
        writer.gathers = True
        for load, number in packed.items():
            copied = writer.bind(f"lane.load(packed + {number} * rl::key_block * rl::tile_columns)")
            writer.keep(load, writer.bind(f"rl::ne({copied}, lane.broadcast(0.0f))") if load.dtype is bool_ else copied)
        result = writer.write(body)
        lines = "".join(f"      {line}\n" for line in writer.lines)
        return f"[=]({parameters}) {{\n{lines}      return {result};\n    }}"

    def _packing_lambda(self, score: Pointwise, loads: list[Load]) -> str:
        batch, head, query, key = score.variables
        lines = "".join(
            f"      rl::pack_panel({self.pointer(load.buffer)} + {to_cpp(load.index)}, "
            f"{texts(stride_along(load.index, key), stride_along(load.index, query))}, keys, queries, "
            f"blocks + {number} * rl::key_block * rl::tile_columns);\n"
            for number, load in enumerate(loads)
        )
        positions = f"[[maybe_unused]] long {batch}, [[maybe_unused]] long {head}, long {query}"
        parameters = f"{positions}, long queries, long {key}, long keys, float* blocks"
        return f"[=]({parameters}) {{\n{lines}    }}"


def _read_along_keys(score: Pointwise, scores: str) -> dict[Load, int]:
    """Return the loads of a score's function that are not contiguous along queries, numbered."""
    *_, query, key = score.variables
    loads = [node for node in walk(score.body) if isinstance(node, Load) and node.buffer != scores]
    found = [
        load for load in loads
        if load.dtype in (float32, bool_) and load.index.free_variables() & {query, key}
        and stride_along(load.index, query) not in (0, 1, None) and stride_along(load.index, key) is not None
    ]  # fmt: skip
    return {load: number for number, load in enumerate(found)}


def _visibility_condition(body: Value, scores: str) -> Value | None:
    """Return the condition under which a score is not -inf; None if the condition depends on the score itself."""
    if not isinstance(body, Call) or body.name != "where":
        return None
    condition, chosen, other = body.arguments
    if any(isinstance(node, Load) and node.buffer == scores for node in walk(condition)):
        return None
    if isinstance(other, Constant) and other.number == -math.inf:
        return condition
    hidden = isinstance(chosen, Constant) and chosen.number == -math.inf
    return Call(bool_, "logical_not", (condition,)) if hidden else None


def _row_strides(rows: Size, heads: Size, depth: int) -> str:
    """Return the strides of a [B, H, L, D] tensor with memory order [B, L, H, D]."""
    return f"{{{texts(as_size(rows * heads * depth), depth, as_size(heads * depth), 1)}}}"
