"""The C++ file of an exported model.

In: a `Model`. Out: text: inductor's code for each graph, the functions that run methods, tables of their parameters and
results, and the C interface from `deployed_interface.h`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.deploy.levels import renamed
from rushlight.deploy.model import Method, Model, Parameter, initial_text
from rushlight.deploy.spelling import DTYPES, c_string, identifier

KINDS = {
    "none": "NONE", "bool": "BOOL", "int": "INT", "float": "FLOAT", "string": "STRING", "tensor": "TENSOR", "list": "LIST",
    "tuple": "TUPLE", "dict": "DICT", "value": "NONE",
}  # fmt: skip


# Inside these namespaces, the headers' names hide the model's own name, which may be the same.
_OPEN, _CLOSE = ("namespace rl {", "namespace deployed {", "namespace {"), ("}", "}", "}  // namespace rl::deployed")
_LANGUAGE = ("#include <rushlight/deployed_language.h>", "#include <rushlight/deployed_tensors.h>")


def write_source(model: Model, header: str, embedded: bool) -> tuple[str, bytes]:
    """Return the source text of a model with that C header; it includes the identity that the weights must have."""
    body = "\n\n".join([*model.functions, *model.forms, _set_first_state(model), *_method_tables(model)])
    identity = model.identity(body)
    shown = "".join(f"\\x{byte:02x}" for byte in identity)
    numbers = [
        *_OPEN,
        f"constexpr int state_count = {len(model.states)}, program_count = {model.programs};",
        f'constexpr char identity[] = "{shown}";',
        f"constexpr uint64_t weights_bytes = {model.weights.size};",
        *_CLOSE,
    ]
    weights = [f'extern "C" const char {model.name}_weights[];'] if embedded else []
    handle, interface = ("#include <rushlight/deployed_handle.h>", "#include <rushlight/deployed_interface.h>")
    parts = [
        *_source_head(model, header, embedded),
        "",
        *numbers,
        *weights,
        handle,
        "",
        *_OPEN,
        "",
        body,
        "",
        *_CLOSE,
    ]
    return "\n".join([*parts, "", interface, "", *_typed_functions(model)]) + "\n", identity


def _source_head(model: Model, header: str, embedded: bool) -> list[str]:
    name = model.name
    return [
        f"// The model {name}, written by Rushlight. Compile as C++17 with GCC or Clang, with rushlight/ beside this file.",
        f"// One of several builds in a library, among which {name}_levels.cpp chooses, has RL_LEVEL as its name.",
        *renamed(header, name),
        f'#include "{name}.h"',
        "",
        "#define RL_DEPLOYED",
        *(["#define RL_EMBEDDED"] if embedded else []),
        "#if !defined(_OPENMP) && (!defined(__wasm__) || defined(__wasm_atomics__))",
        "#define RL_THREADS",
        "#endif",
        "// Several models may be in one program, built with other flags or headers.",
        f"#define rl {name}_rl",
        f"#define rl_team {name}_rl_team",
        f"#define RL_HANDLE {name}",
        f"#define RL_MODEL(word) {name}_##word",
        f"#define RL_CONSTANT(word) {name.upper()}_##word",
        "",
        *model.includes,
        "#include <rushlight/program.h>",
        "#include <rushlight/deployed.h>",
        *(["#include <rushlight/deployed_values.h>"] if model.looks_at_values else []),
        *(_LANGUAGE if model.uses_language else ()),
    ]


def _set_first_state(model: Model) -> str:
    """Return the function that gives a handle the model's initial state."""
    lines = []
    for number, (name, value) in enumerate(model.states):
        before: list[str] = []
        text = initial_text(value, model.weights, before, f"items_{number}")
        lines += [f"  {line}" for line in [*before, f"if (!self.states[{number}].keep({text})) return false;  // {name}"]]
    return "\n".join(["bool set_first_state(model_handle& self) {", "  (void)self;", *lines, "  return true;", "}"])


def _method_tables(model: Model) -> Iterator[str]:
    for method in model.methods:
        for what, parameters in (("inputs", method.inputs), ("outputs", method.outputs)):
            rows = ",\n".join(f"    {_parameter_initializer(each)}" for each in parameters) or "    {}"
            yield f"constexpr ::RL_MODEL(parameter) {what}_of_{method.name}[] = {{\n{rows},\n}};"
        tries = [f"  int status = {method.forms[0]}(self, inputs, outputs);"]
        if len(method.forms) > 1:  # if no form fits, report the first form's error
            tries += ["  if (status != unfit) return status;", "  const complaint first = self;"]
            tries += [f"  if (status == unfit) status = {form}(self, inputs, outputs);" for form in method.forms[1:]]
            tries += ["  if (status == unfit) static_cast<complaint&>(self) = first;"]
        head = f"int run_{method.name}(model_handle& self, const value* inputs, value* outputs)"
        yield "\n".join([f"{head} {{", *tries, "  return status;", "}"])
    rows = []
    for method in model.methods:
        name, inputs, outputs = method.name, len(method.inputs), len(method.outputs)
        rows.append(f'    {{{{"{name}", inputs_of_{name}, {inputs}, outputs_of_{name}, {outputs}}}, run_{name}}},')
    yield "\n".join([
        "struct method {", "  ::RL_MODEL(method) info;", "  int (*run)(model_handle&, const value*, value*);", "};",
        "const method methods[] = {", *rows, "};",
    ])  # fmt: skip


def _parameter_initializer(parameter: Parameter) -> str:
    sizes = parameter.sizes or ()
    bounds = {name: (least, most) for name, least, most in parameter.bounds}
    rows: list[list[int]] = [[], [], []]
    for size in sizes:
        least, most = (size, size) if isinstance(size, int) else bounds.get(size, (0, None))
        for row, number in zip(rows, (size if isinstance(size, int) else -1, least, -1 if most is None else most), strict=True):
            row.append(number)
    shown = ", ".join(f"{{{', '.join(map(str, row)) or '0'}}}" for row in rows)
    kind, element = KINDS[parameter.kind], "NO_DTYPE" if parameter.dtype is None else DTYPES[parameter.dtype.name]
    rank = -1 if parameter.sizes is None else len(sizes)
    name, text = c_string(parameter.name), c_string(str(parameter))
    written = str(parameter.written).lower()
    return f"{{{name}, RL_CONSTANT({kind}), RL_CONSTANT({element}), {rank}, {shown}, {text}, {written}}}"


# The method's own functions


def typed_head(model: Model, method: Method) -> str:
    """Return the header's declaration of the function that runs a method, with the model's parameter names."""
    taken = model.words_of_header()
    inputs = [identifier(each.name, taken) for each in method.inputs]
    outputs = [_unique_name(each.name, taken) for each in method.outputs]
    return _typed_head(model, method, model.name, inputs, outputs)


def _typed_head(model: Model, method: Method, handle: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    words = [f"{handle}* model"]
    for each, name in zip(method.inputs, inputs, strict=True):
        words.append(_typed_parameter(model.name, each, name, is_input=True))
    for each, name in zip(method.outputs, outputs, strict=True):
        words.append(_typed_parameter(model.name, each, name, is_input=False))
    return f"{model.name}_status {model.name}_{method.name}({', '.join(words)})"


def _unique_name(name: str, taken: set[str]) -> str:
    """Return a result's name that is not taken, because an input may have the same name."""
    return identifier(f"{name}_out" if name in taken else name, taken)


def _typed_parameter(model: str, parameter: Parameter, name: str, is_input: bool) -> str:
    simple = {"int": "int64_t", "float": "double", "bool": "bool"}
    if parameter.kind in simple:
        return f"{simple[parameter.kind]}{' ' if is_input else '* '}{name}"
    kind = "tensor" if parameter.kind == "tensor" else "value"
    return f"const {model}_{kind}* {name}" if is_input else f"{model}_{kind}* {name}"


def _typed_functions(model: Model) -> Iterator[str]:
    yield ""
    for index, method in enumerate(model.methods):
        yield from _typed_function(model, method, index)


def _typed_function(model: Model, method: Method, index: int) -> Iterator[str]:
    """Write the function that runs a method. Its parameters have numbers for names, because names may be any text in the
    model."""
    inputs = [(each, f"input_{position}") for position, each in enumerate(method.inputs)]
    outputs = [(each, f"output_{position}") for position, each in enumerate(method.outputs)]
    head = _typed_head(model, method, "RL_HANDLE", [name for _, name in inputs], [name for _, name in outputs])
    yield f'extern "C" {head} {{'
    simple = ("int", "float", "bool")
    pointers = [(each, name) for each, name in (*inputs, *outputs) if each.kind not in simple]
    pointers += [(each, name) for each, name in outputs if each.kind in simple]
    status, bad = f"{model.name}_status", f"{model.name.upper()}_BAD_ARGUMENT"
    yield f"  if (!model) return {bad};"
    yield "  rl::deployed::model_handle* const inside = rl::deployed::inside(model);"
    for each, name in pointers:
        yield f'  if (!{name}) return ({status})inside->say({bad}, "{each.name} is a null pointer");'
    makers = {"int": "of_integer", "float": "of_real", "bool": "of_boolean", "tensor": "of_tensor"}
    own = "rl::deployed::"
    given = [
        f"{own}{makers[each.kind]}({'*' * (each.kind == 'tensor')}{name})" if each.kind in makers else f"*{name}"
        for each, name in inputs
    ] or [f"{own}none()"]
    yield f"  const {own}value given_inputs[] = {{{', '.join(given)}}};"
    positions = [
        f"{own}place_of(*{name})" if each.kind == "tensor" else f"*{name}" if each.kind not in makers else f"{own}none()"
        for each, name in outputs
    ] or [f"{own}none()"]
    yield f"  {own}value given_outputs[] = {{{', '.join(positions)}}};"
    counts = f"given_inputs, {len(inputs)}, given_outputs, {len(outputs)}"
    yield f"  const int status = {own}run_method(inside, {index}, {counts});"
    yield f"  if (status) return ({status})status;"
    readers = {"int": "as.integer", "float": "as.real", "bool": "as.integer != 0", "tensor": "as.tensor"}
    for position, (each, name) in enumerate(outputs):
        read = f".{readers[each.kind]}" if each.kind in readers else ""
        yield f"  *{name} = given_outputs[{position}]{read};"
    yield f"  return {model.name.upper()}_OK;"
    yield "}"
    yield ""
