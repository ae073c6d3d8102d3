"""A graph of aten operators as C++ functions over a model's handle.

In: a GraphModule whose constants are attributes, and the names of its inputs. Out: the functions' text:

    namespace program_0 {...}                       inductor's code of the graph
    static void** make_kept_0(weights&)             finds the constants, and computes what is derived from them once
    static int graph_0(handle&, const value* const* given, value* const* places, value* made)

`graph_0` checks the inputs and returns `unfit` for inputs that the graph does not support. It allocates memory, runs the
program and describes the results in `made`. `places` are the caller's memory for results, or null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rushlight.core.algebra import Expr, Var
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.dtype import dtype
from rushlight.core.storage import aligned
from rushlight.core.symbolic import Relation
from rushlight.core.symbolic.relations import DIFFERENT, EQUAL, NOT_NEGATIVE
from rushlight.core.tensor import Tensor
from rushlight.deploy.spelling import c_constant, c_string, constant_text, format_text, in_user_names
from rushlight.deploy.weights import Weights
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor import pieces
from rushlight.inductor.codegen.cpp.types import size_operand, size_text
from rushlight.inductor.open_launch import LARGEST, counts_of
from rushlight.inductor.options import Options
from rushlight.inductor.plan import OutputView, Plan
from rushlight.inductor.planning import plan_of
from rushlight.inductor.size_symbols import SizeSymbols, TensorInput
from rushlight.inductor.sizes import Size

TESTS = {EQUAL: "is_zero", DIFFERENT: "is_other", NOT_NEGATIVE: "is_positive"}


def excluded_values(relations: Iterable[Relation]) -> dict[Var, set[int]]:
    """Return the single values that relations such as `s0 != 3` exclude, by symbol."""
    found: dict[Var, set[int]] = {}
    for relation in relations:
        terms, constant = linear_form(relation.expression)
        if relation.kind == DIFFERENT and len(terms) == 1 and isinstance(terms[0][0], Var) and abs(terms[0][1]) == 1:
            found.setdefault(terms[0][0], set()).add(-constant * terms[0][1])
    return found


def includes_of(source: str) -> list[str]:
    """Return the headers that a program includes."""
    return [line for line in source.splitlines() if line.startswith("#include")]


def in_namespace(source: str, name: str) -> str:
    """Return a program without its includes, as functions private to this file."""
    lines = [line for line in source.splitlines() if not line.startswith("#include")]
    text = "\n".join(lines).strip("\n").replace('extern "C" ', "static ")
    text = re.sub(r"\brushlight_(entry|fold|pack|prepare|kept_bytes|arena_bytes|arena_bytes_for|place_blocks)\(", r"\1(", text)
    return f"namespace {name} {{\n\n{text}\n\n}}  // namespace {name}"


@dataclass
class GraphForm:
    """The functions of one graph. `inputs` and `outputs` describe its inputs and outputs; tensors by their sizes."""

    number: int
    text: str
    includes: list[str]
    inputs: list[TensorInput | Size]
    outputs: list[OutputView]
    plan: Plan

    @property
    def call(self) -> str:
        """The function's name."""
        return f"graph_{self.number}"

    def tensor_at(self, position: int) -> tuple[dtype, tuple[Size, ...]] | None:
        """Return the dtype and sizes of an output; None if it is no tensor."""
        view = self.outputs[position]
        if not view.buffer:
            return None
        given = {each.name: each for each in (*self.plan.inputs, *self.plan.constants)}.get(view.buffer)
        return self.plan.dtypes[view.buffer], given.size if view.is_whole and given is not None else view.size


def graph_form(
    number: int, module: GraphModule, names: Sequence[str], weights: Weights, size_names: dict[str, str]
) -> GraphForm:
    """Return the functions of a graph that inductor can lower completely. `names` are the inputs' names in messages,
    `size_names` those of size symbols."""
    lowered, program = pieces.lower(module, Options(None), lambda stage, text, *more: None)
    plan = plan_of(lowered, program)
    values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    symbols = lowered.symbols or SizeSymbols(values)
    counts = [*plan.outputs.values(), *(counts_of(program) if lowered.symbols else ())]
    writer = _Writer(number, plan, symbols, names, size_names, counts)
    constants = [getattr(module, given.target) for given in plan.constants]
    parts = [
        in_namespace(program.source, f"program_{number}"),
        writer.make_kept(program.source, constants, weights),
        writer.run(),
    ]
    return GraphForm(number, "\n\n".join(parts), includes_of(program.source), symbols.inputs, list(plan.views), plan)


class _Writer:
    def __init__(
        self, number: int, plan: Plan, symbols: SizeSymbols, names: Sequence[str], size_names: dict[str, str],
        counts: list[Size],
    ):  # fmt: skip
        self.number, self.plan, self.symbols = number, plan, symbols
        self.names = names
        self.size_names = size_names
        self.counts = counts
        self.tensors = [position for position, given in enumerate(symbols.inputs) if isinstance(given, TensorInput)]
        self.positions = {given.name: position for given, position in zip(plan.inputs, self.tensors, strict=True)}

    # Values derived from constants

    def make_kept(self, source: str, constants: Sequence[Tensor], weights: Weights) -> str:
        """Return the function that computes values kept between runs; the function returns null when out of memory."""
        plan, k = self.plan, self.number
        lines = [f"void** const kept = (void**)held.made.take({max(plan.kept, 1)} * (long)sizeof(void*));"]
        lines += ["if (!kept) return nullptr;"]
        for position, tensor in enumerate(constants):
            lines.append(f"kept[{position}] = (void*)(held.data + {weights.add(tensor)}L);")
        first = len(constants)
        *positions, end = accumulate(map(aligned, (*plan.folded, *plan.packed)), initial=0)
        if positions:
            lines += [f"char* const block = (char*)held.made.take({end}L);", "if (!block) return nullptr;"]
            lines += [f"kept[{first + index}] = block + {position}L;" for index, position in enumerate(positions)]
        if "rushlight_fold(" in source:
            lines.append(f"program_{k}::fold(kept, 1);")
        if plan.packed:
            last = plan.kept - 1
            lines += [
                "memory passing;",
                f"kept[{last}] = passing.take({plan.passing_bytes}L);",
                f"if (!kept[{last}]) return nullptr;",
                f"program_{k}::pack(kept, 1);",
                f"kept[{last}] = nullptr;",
            ]
        return _function_text(f"static void** make_kept_{k}(weights& held)", [*lines, "return kept;"])

    # A run

    def run(self) -> str:
        """Return the function that runs the program, and the one that checks its sizes."""
        checks = list(self._conditions())
        head = "handle& self, const value* const* given, value* const* places, value* made"
        body = [*self._read_inputs(), *self._declare_symbols(), *self._check(checks), *self._lay_out_inputs()]
        body += [*self._allocate(), *self._call(), *self._copy_back(), *self._describe(), "return ok;"]
        function = _function_text(f"static int graph_{self.number}({head})", body)
        return f"{self._check_function(checks)}\n\n{function}" if checks else function

    def _read_inputs(self) -> Iterator[str]:
        yield "(void)given, (void)places, (void)made;"
        for position, given in enumerate(self.symbols.inputs):
            name = c_string(self.names[position])
            if isinstance(given, TensorInput):
                kind = f"{c_constant(given.dtype)}, {len(given.size)}"
                yield f"const tensor* const p{position} = self.tensor_in(*given[{position}], {name}, {kind});"
                yield f"if (!p{position}) return unfit;"
                yield f"const tensor& i{position} = *p{position};"
                yield f"(void)i{position};"
                known = [(dim, size) for dim, size in enumerate(given.size) if isinstance(size, int)]
                if known:
                    test = " || ".join(f"i{position}.sizes[{dim}] != {size}" for dim, size in known)
                    yield f"if ({test}) return self.wrong_sizes(i{position}, {name}, {c_string(self.sizes_text(given.size))});"
            else:
                yield f"const int64_t a{position} = given[{position}]->as.integer;"
                yield f"(void)a{position};"

    def _declare_symbols(self) -> Iterator[str]:
        for symbol, value in self.symbols.definitions.items():
            yield f"const int64_t {symbol} = {size_text(value)};"
            yield f"(void){symbol};"

    def _conditions(self) -> Iterator[tuple[str, str]]:
        """Yield tests of the symbols as C++, with their messages."""
        for relation in self._relations():
            text = size_text(relation.expression)
            free = relation.expression.free_variables()
            if free and all(self._is_symbol(each) for each in free):
                yield f"({_check_overflow(relation.expression, text)}).{TESTS[relation.kind]}()", self.named(str(relation))
        for position in self.tensors:
            for dim, size in enumerate(self.symbols.inputs[position].size):
                if isinstance(size, Expr) and size is not self._defined_by(position, dim):
                    difference = f"(counted({size_text(size)}) - i{position}.sizes[{dim}]).is_zero()"
                    wanted = self.sizes_text(self.symbols.inputs[position].size)
                    yield difference, f"the sizes {wanted} of {self.names[position]}"

    def _relations(self) -> Iterator[Relation]:
        yield from self.symbols.relations
        for symbol in self.symbols.definitions:
            if symbol.least is not None:
                yield Relation(NOT_NEGATIVE, symbol - symbol.least)
            if symbol.extent is not None:
                yield Relation(NOT_NEGATIVE, symbol.extent - symbol - 1)
        for count in dict.fromkeys(self.counts):
            if isinstance(count, Expr):
                yield Relation(NOT_NEGATIVE, LARGEST - count)

    def _is_symbol(self, variable: Var) -> bool:
        return variable in self.symbols.definitions

    def _defined_by(self, position: int, dim: int) -> Var | None:
        """Return the symbol that equals a dimension."""
        name = f"i{position}.sizes[{dim}]"
        return next((symbol for symbol, value in self.symbols.definitions.items() if str(value) == name), None)

    def _check(self, checks: list) -> Iterator[str]:
        if checks:
            arguments = [*self.symbols.names, *(f"i{position}" for position in self.tensors)]
            yield f"if (const int wrong = sizes_fit_{self.number}({', '.join(['self', *arguments])})) return wrong;"

    def _check_function(self, checks: list[tuple[str, str]]) -> str:
        """Return the function that checks open sizes. Sums and products that overflow 64 bits are out of range."""
        parameters = [
            *(f"counted {name}" for name in self.symbols.names),
            *(f"const tensor& i{position}" for position in self.tensors),
        ]
        values = ", ".join(f"{self.named(name)} = %lld" for name in self.symbols.names)
        numbers = ", ".join(f"(long long){name}.number" for name in self.symbols.names)
        lines = [f"(void){name};" for name in self.symbols.names] + [f"(void)i{position};" for position in self.tensors]
        for test, text in checks:
            said = format_text(f"the model is for sizes with {text}, got ")[:-1]
            lines.append(f'if (!{test}) return self.say(unfit, {said}{values}"{", " + numbers if numbers else ""});')
        head = f"static int sizes_fit_{self.number}({', '.join(['handle& self', *parameters])})"
        return _function_text(head, [*lines, "return ok;"])

    def _lay_out_inputs(self) -> Iterator[str]:
        for position in self.tensors:
            given = self.symbols.inputs[position]
            yield f"const int64_t strides_{position}[] = {{{_join_sizes(given.stride)}}};"
            yield f"void* const d{position} = self.laid(i{position}, strides_{position});"
            yield f"if (!d{position}) return self.no_more();"

    def _allocate(self) -> Iterator[str]:
        """Allocate the results and the memory of the run."""
        count, k = len(self.symbols.inputs), self.number
        yield f"void** const kept = kept_of(*self.held, {k}, make_kept_{k});"
        yield "if (!kept) return self.no_more();"
        if self.symbols:
            yield f"const int64_t symbols[] = {{{', '.join(self.symbols.names)}}};"
            yield f"void* const arena = self.take(program_{k}::arena_bytes_for(symbols, self.threads));"
        else:
            yield f"void* const arena = self.take(program_{k}::arena_bytes(self.threads));"
        yield "if (!arena) return self.no_more();"
        for index, (name, nbytes) in enumerate(self.plan.outputs.items()):
            wholes = [position for position, view in enumerate(self.plan.views) if view.buffer == name]
            whole = self._find_whole_result(wholes, name)
            if whole is None:
                yield f"void* const o{index} = self.take({size_text(nbytes)});"
            else:
                yield f"const tensor t{whole} = {self._tensor_text(whole, 'nullptr')};"
                yield f"void* const o{index} = self.room(places ? places[{whole}] : nullptr, t{whole}, given, {count});"
            yield f"if (!o{index}) return self.no_more();"

    def _find_whole_result(self, wholes: list[int], name: str) -> int | None:
        """Return the position of the result that is a whole buffer, if it is the only result in that buffer."""
        if len(wholes) != 1:
            return None
        view = self.plan.views[wholes[0]]
        nbytes = self.plan.outputs[name]
        count = 1
        for size in view.size:
            count = count * size
        known = isinstance(view.offset, int) and view.offset == 0
        return wholes[0] if known and count * self.plan.dtypes[name].itemsize == nbytes else None

    def _call(self) -> Iterator[str]:
        k = self.number
        pointers = [f"d{position}" for position in self.tensors]
        pointers += [f"kept[{index}]" for index in range(self.plan.kept)]
        pointers += [f"o{index}" for index in range(len(self.plan.outputs))]
        pointers += ["arena", *(f"(void*)(intptr_t){name}" for name in self.symbols.names)]
        yield f"void* buffers[] = {{{', '.join(pointers)}}};"
        yield f"const int wrong = program_{k}::entry(buffers, self.threads);"
        yield 'if (wrong) return self.say(failed, "%s", reason_of(wrong));'

    def _copy_back(self) -> Iterator[str]:
        """Copy back the values that were written to copies of inputs."""
        for number in self.plan.written:
            position = self.tensors[number]
            copied = f"tensor_of(d{position}, i{position}.dtype, i{position}.rank, i{position}.sizes, strides_{position})"
            yield f"if (d{position} != i{position}.data) copy_tensor(i{position}, {copied});"

    def _describe(self) -> Iterator[str]:
        for position, view in enumerate(self.plan.views):
            if not view.buffer:
                yield f"made[{position}] = {self._number_text(view.value)};"
                continue
            if view.buffer in self.plan.outputs:
                pointer = f"o{list(self.plan.outputs).index(view.buffer)}"
                yield f"made[{position}] = of_tensor({self._tensor_text(position, pointer)});"
                continue
            # Copy a view of an input or a constant, because the handle must own results.
            source = f"of_tensor({self._tensor_text(position, self._pointer_to(view.buffer))})"
            yield f"if (!copy_value(made[{position}], {source}, self.run_memory())) return self.no_more();"

    def _pointer_to(self, buffer: str) -> str:
        if buffer in self.positions:
            return f"d{self.positions[buffer]}"
        names = [given.name for given in self.plan.constants]
        return f"kept[{names.index(buffer)}]"

    def _number_text(self, value: object) -> str:
        return f"of_integer({size_text(value)})" if isinstance(value, Expr) else constant_text(value)

    def _tensor_text(self, position: int, pointer: str) -> str:
        """Return a result as a tensor at a pointer."""
        view = self.plan.views[position]
        kind = self.plan.dtypes[view.buffer]
        size, stride = view.size, view.stride
        if view.is_whole and view.buffer in self.positions:
            given = self.symbols.inputs[self.positions[view.buffer]]
            size, stride = given.size, given.stride
        address = f"(char*){pointer} + {size_operand(view.offset)} * {kind.itemsize}"
        at = pointer if pointer == "nullptr" or view.offset == 0 else address
        return f"tensor_of({at}, {c_constant(kind)}, {len(size)}, {_array_text(size)}, {_array_text(stride)})"

    # Words

    def sizes_text(self, sizes: Sequence[Size]) -> str:
        """Return sizes under the user's names."""
        return f"[{', '.join(self.named(str(size)) for size in sizes)}]"

    def named(self, text: str) -> str:
        """Return text with symbols under the user's names."""
        return in_user_names(text, self.size_names)


def _check_overflow(expression: Expr, text: str) -> str:
    return f"counted({text})" if isinstance(expression, Var) else text


def _join_sizes(sizes: Sequence[Size]) -> str:
    return ", ".join(map(size_text, sizes)) or "0"


def _array_text(sizes: Sequence[Size]) -> str:
    return f"sizes_of({', '.join(map(size_text, sizes))}).numbers"


def _function_text(head: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{head} {{\n{body}\n}}"
