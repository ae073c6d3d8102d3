"""Add an exported program as a method of a model without Python.

In: an `ExportedProgram`. Out: the method, in the model: one graph, whose parameters are weights, and the buffers that it writes
to state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from rushlight.compiler.passes import for_fusion
from rushlight.core.algebra import Var
from rushlight.core.pytree import LEAF, TreeSpec
from rushlight.core.symbolic import ShapeEnv, SymFloat, SymInt
from rushlight.core.tensor import Tensor, wrap
from rushlight.deploy.graph_form import GraphForm, excluded_values, graph_form
from rushlight.deploy.model import Method, Model, Parameter, check_tensor
from rushlight.deploy.parts import DECOMPOSITIONS, PartsForm, PartsWriter
from rushlight.deploy.refusals import MAY_FAIL, refusal_of, refuse_unsupported
from rushlight.deploy.spelling import identifier, in_user_names
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.graph_signature import InputKind, OutputKind
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import environment_of
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes, written_constants
from rushlight.inductor.size_symbols import TensorInput
from rushlight.inductor.sizes import Size, as_sizes
from rushlight.ops.registry import aten

_READ = aten("_local_scalar_dense")


def add_exported(model: Model, name: str, program: ExportedProgram) -> Method:
    """Add a program as a method. NotExportable lists the operators without a native form, with their source lines.

    Besides the general form, there are forms for an open size of 1, where it may be 1, and for other values that the general
    form excludes.
    """
    method = Method(model.method_name(name), [], [])
    _add_graph(model, method, program, {})
    for fixed in _excluded_sizes(program, _user_inputs(program)):
        with suppress(*MAY_FAIL), model.whole():  # this size may be impossible
            _add_graph(model, method, program, fixed)
    model.methods.append(method)
    return method


def _add_graph(model: Model, method: Method, program: ExportedProgram, fixed: dict[Var, int]) -> None:
    """Add the form in which the sizes `fixed` are known."""
    inputs, size_names = _user_inputs(program), dict(program._size_names)
    module, unknown = _capture_below_autograd(program, fixed)
    if unknown.calls:
        _refuse_floats(module, method.name)
        names = [each for each, _ in inputs]
        form = PartsWriter(model, method.name, size_names, lambda path, each: model.add_tensor_state(path, each)).write(
            module, names, unknown
        )
        _add_to_method(model, method, program, form, inputs, size_names, [], 0)
        return
    for graph_pass in for_fusion(fallback_random=False):
        graph_pass(module)
    written, seeds = written_constants(module), seed_nodes(module)
    slots = [model.add_tensor_state(node.target, getattr(module, node.target)) for node in written]
    names = [*(each for each, _ in inputs), *(f"the state {node.target}" for node in written), *("the seed" for _ in seeds)]
    module = as_last_inputs(module, [*written, *seeds])
    refuse_unsupported(module, method.name)
    form = graph_form(model.programs, module, names, model.weights, size_names)
    model.add_graph(form)
    _add_to_method(model, method, program, form, inputs, size_names, slots, len(seeds))


def _refuse_floats(module: GraphModule, name: str) -> None:
    """Raise NotExportable for a float that the program computes as a Python number."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is _READ and type(node.meta["val"]) is SymFloat:
            raise refusal_of(name, node)


def _add_to_method(
    model: Model, method: Method, program: ExportedProgram, form: GraphForm | PartsForm,
    inputs: Sequence[tuple[str, object]], size_names: dict[str, str], slots: Sequence[int], seeds: int,
) -> None:  # fmt: skip
    """Add a form to the method; the first form also sets the method's description."""
    if not method.forms:
        method.inputs = _describe_inputs(inputs, form, program, size_names)
        method.outputs = _describe_outputs(program, form, size_names)
    method.mark_written(form.written)
    _add_form(model, method, form, len(inputs), slots, seeds)


def _excluded_sizes(program: ExportedProgram, inputs: Sequence[tuple[str, object]]) -> list[dict[Var, int]]:
    """Return sizes for further forms: each open size that may be 1 is 1, all of them are 1, or one size has a value that the
    general form excludes."""
    found: dict[Var, None] = {}
    for _, value in inputs:
        for size in as_sizes(value.shape) if isinstance(value, Tensor) else ():
            if isinstance(size, Var):
                found[size] = None
    ranges = program.range_constraints
    small = [size for size in found if size not in ranges or ranges[size].lower <= 1]
    choices = [{size: 1} for size in small] + ([dict.fromkeys(small, 1)] if len(small) > 1 else [])
    environment = environment_of([value for _, value in inputs])
    excluded = {} if environment is None else excluded_values(each.relation for each in environment.relations())
    return choices + [{size: value} for size, values in excluded.items() if size in found for value in values if value > 1]


def _capture_below_autograd(program: ExportedProgram, fixed: dict[Var, int]) -> tuple[GraphModule, UnknownSizes]:
    """Record the program's graph again, below autograd, over the user's tensors, with parameters as attributes. The sizes
    `fixed` are constants. Also return the values that data-dependent operators define."""
    module = program.module(check_guards=False)
    attributes = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = [_with_sizes(node.meta.get("val"), fixed) for node in inputs]
    unknown = UnknownSizes(environment_of(values) or ShapeEnv())
    found = capture(
        module, tuple(values), names={getattr_at(module, target)._impl: target for target in attributes},
        open_leaves=[value if isinstance(value, SymInt) else None for value in values],
        input_names=[node.name for node in inputs], following=unknown.following, decompositions=DECOMPOSITIONS,
    )  # fmt: skip
    return found.module, unknown


def getattr_at(module: object, path: str) -> Tensor:
    """Return the object at a dotted path."""
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _with_sizes(value: object, fixed: dict[Var, int]) -> object:
    """Return an input's fake value with some symbols fixed; other values stay."""

    def known(number: object) -> object:
        return number.environment.integer(number.expr.substitute(fixed)) if isinstance(number, SymInt) else number

    if not isinstance(value, Tensor):
        return known(value)
    sizes, strides = (tuple(map(known, row)) for row in (value.shape, value.stride()))
    return wrap(value._impl.alias(sizes, strides, value._impl.storage_offset))


# Inputs and outputs


def _user_inputs(program: ExportedProgram) -> list[tuple[str, object]]:
    """Return the names and fake values of the user's tensors, in order; other inputs are part of the program."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    taken: set[str] = set()
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            value = nodes[spec.arg.name].meta.get("val")
            if isinstance(value, Tensor | SymInt):
                found.append((identifier(spec.arg.name, taken), value))
    return found


def _describe_inputs(
    inputs: Sequence[tuple[str, object]], form: GraphForm | PartsForm, program: ExportedProgram, size_names: dict[str, str]
) -> list[Parameter]:
    made = []
    for (name, value), given in zip(inputs, form.inputs, strict=False):
        if not isinstance(given, TensorInput):
            made.append(Parameter(name, "int"))
            continue
        check_tensor(name, value.dtype, value.shape)
        bounds = []
        for size in dict.fromkeys(each for each in given.size if isinstance(each, Var)):
            within = program.range_constraints.get(size)
            least, most = (within.lower, within.upper) if within is not None else (size.least or 0, None)
            bounds.append((size_names.get(str(size), str(size)), int(least), _limit(most)))
        made.append(Parameter(name, "tensor", given.dtype, shown_sizes(given.size, size_names), tuple(bounds)))
    return made


def _limit(most: object) -> int | None:
    return most if isinstance(most, int) and most < 1 << 62 else None


def shown_sizes(sizes: Sequence[Size], names: dict[str, str]) -> tuple[int | str, ...]:
    """Return sizes under the user's names."""
    return tuple(size if isinstance(size, int) else in_user_names(str(size), names) for size in sizes)


def _describe_outputs(program: ExportedProgram, form: GraphForm, size_names: dict[str, str]) -> list[Parameter]:
    names = _output_names(program)
    made = []
    for position, (name, view) in enumerate(zip(names, form.outputs, strict=True)):
        found = form.tensor_at(position)
        if found is None:
            kind = {bool: "bool", int: "int", float: "float", str: "string", type(None): "none"}.get(type(view.value), "int")
            made.append(Parameter(name, kind))
            continue
        check_tensor(name, *found)
        made.append(Parameter(name, "tensor", found[0], shown_sizes(as_sizes(found[1]), size_names)))
    return made


def _output_names(program: ExportedProgram) -> list[str]:
    """Return the names of results: the keys and fields under which the program returns them."""
    taken: set[str] = set()
    paths = list(_leaf_paths(program.call_spec.out_spec, ()))
    results = [spec for spec in program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    if len(paths) != len(results):
        paths = [(str(number),) for number in range(len(results))]
    return [identifier("_".join(path) or "result", taken, "result") for path in paths]


def _leaf_paths(spec: TreeSpec, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if spec is LEAF:
        yield path
        return
    keys = spec.keys if spec.keys is not None else range(len(spec.children))
    for key, child in zip(keys, spec.children, strict=True):
        yield from _leaf_paths(child, (*path, str(key)))


def _add_form(model: Model, method: Method, form: GraphForm | PartsForm, count: int, slots: Sequence[int], seeds: int) -> None:
    """Add the function that runs a graph on the method's values and the model's state."""
    function = f"form_{method.name}_{len(method.forms)}"
    given = [f"&inputs[{position}]" for position in range(count)] + [f"&self.states[{slot}].now" for slot in slots]
    given += [f"&seed_{number}" for number in range(seeds)]
    lines = ["(void)inputs, (void)outputs;"]
    lines += [f"const value seed_{number} = self.next_seed();" for number in range(seeds)]
    lines += [f"const value* const given[] = {{{', '.join(given) or 'nullptr'}}};"]
    outputs = ", ".join(f"&outputs[{position}]" for position in range(len(method.outputs)))
    lines += [f"value* const places[] = {{{outputs or 'nullptr'}}};"]
    lines += [f"value made[{max(len(method.outputs), 1)}];", f"int status = {form.call}(self, given, places, made);"]
    for position, each in enumerate(method.outputs):
        lines.append(f'if (status == ok) status = self.deliver(outputs[{position}], made[{position}], "{each.name}");')
    body = "\n".join(f"  {line}" for line in [*lines, "return status;"])
    model.forms.append(f"int {function}(model_handle& self, const value* inputs, value* outputs) {{\n{body}\n}}")
    method.forms.append(function)
