"""A JavaScript module around an exported model's WebAssembly.

In: an exported folder, and the model's methods. Out: `NAME.js`, and its types in `NAME.d.ts`.
"""

from __future__ import annotations

from pathlib import Path

from rushlight.deploy.model import Model, Parameter

PAGE_BYTES = 1 << 16  # the unit of WebAssembly memory
MAX_PAGES = 1 << 15  # limit on memory shared by workers: 2 GiB
_FIRST_PAGES = 1 << 10
_MODULE = Path(__file__).with_name("javascript") / "model.js"

_ARRAYS = {
    "float32": "Float32Array", "float64": "Float64Array", "float16": "Uint16Array", "bfloat16": "Uint16Array",
    "int64": "BigInt64Array", "int32": "Int32Array", "int16": "Int16Array", "int8": "Int8Array", "uint8": "Uint8Array",
    "bool": "Uint8Array", "complex64": "Float32Array", "complex128": "Float64Array",
}  # fmt: skip
_KINDS = {"int": "number | bigint", "float": "number | Float", "bool": "boolean", "string": "string"}
_RESULTS = {"int": "number | bigint", "float": "number", "bool": "boolean", "string": "string"}

_TYPES = """\
// The types of {name}.js.

/** What the model says of a call that failed. */
export class ModelError extends Error {{}}

/** A tensor: a typed array in row-major order, and how many elements each dimension has. */
export interface Tensor<Data = ArrayLike<number> | BigInt64Array> {{
  data: Data;
  sizes: number[];
  /** "float16", "bfloat16" (bits in a Uint16Array) or "bool" (bytes); else the array says it. */
  dtype?: string;
}}

export type Value = null | boolean | number | bigint | string | Float | Tensor | Value[] | Map<Value, Value>;

/** A float, where a whole number would be taken for an int. */
export interface Float {{ number: number }}
export function float(number: number): Float;
export function tensor<Data extends ArrayBufferView>(data: Data, sizes: number[], dtype?: string): Tensor<Data>;

/** A handle of the model. */
export interface Model {{
{methods}
  /** How many threads share the work of a run. */
  threads: number;
  /** Each method's inputs and outputs in words. */
  signatures: Record<string, string>;
  /** Gives the model the state back that it had when it was exported. */
  reset(): void;
  /** Where random numbers begin. */
  seed(number: number): void;
  /** Gives all memory back. */
  free(): void;
}}

/**
 * A handle; `wasm` and `weights` are bytes or addresses, by default the files beside the module; null: compiled in.
 * `threads` are workers and this thread, where the page may share memory (it is cross-origin isolated), else there is one;
 * {name}-threads.wasm is then taken for {name}.wasm.
 */
export function load(sources?: {{
  threads?: number;
  wasm?: string | URL | ArrayBuffer | ArrayBufferView;
  weights?: string | URL | ArrayBuffer | ArrayBufferView | null;
}}): Promise<Model>;
"""


def first_pages(embedded: int) -> int:
    """Return the initial number of pages of shared memory, with this many bytes of embedded weights."""
    return _FIRST_PAGES - -embedded // PAGE_BYTES


def write_javascript(model: Model, folder: Path, embedded: int) -> None:
    """Write the module and its types into an exported folder; `embedded` is the number of bytes of embedded weights."""
    text = _MODULE.read_text().replace("@NAME", model.name).replace("@METHOD", model.methods[0].name)
    weights = "null" if embedded else f'new URL("./{model.name}.weights", import.meta.url)'
    files = f"{model.name}.wasm" if embedded else f"{model.name}.wasm and {model.name}.weights"
    text = text.replace("@WEIGHTS", weights).replace("@FILES", files)
    text = text.replace("@FIRST_PAGES", str(first_pages(embedded))).replace("@MAX_PAGES", str(MAX_PAGES))
    (folder / f"{model.name}.js").write_text(text)
    methods = []
    for method in model.methods:
        inputs = ", ".join(f"{each.name}_: {_type_text(each, _KINDS)}" for each in method.inputs)
        outputs = [_type_text(each, _RESULTS) for each in method.outputs]
        result = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
        shown = f"{', '.join(map(str, method.inputs))} -> {', '.join(map(str, method.outputs))}"
        methods += [f"  /** {shown} */", f"  {method.name}({inputs}): {result};"]
    (folder / f"{model.name}.d.ts").write_text(_TYPES.format(name=model.name, methods="\n".join(methods)))


def _type_text(parameter: Parameter, kinds: dict[str, str]) -> str:
    if parameter.kind == "tensor":
        return f"Tensor<{_ARRAYS[parameter.dtype.name]}>" if parameter.dtype is not None else "Tensor"
    return kinds.get(parameter.kind, "Value")
