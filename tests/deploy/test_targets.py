"""Exported models on other machines: WebAssembly in Node.js, aarch64 in an emulator, and what is said where nothing builds."""

from __future__ import annotations

import json
import platform
import shutil
import struct
import subprocess

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import export, targets
from rushlight.deploy.binding import Model
from rushlight.deploy.targets import build_library, target_named, zig_command
from rushlight.utils.native.toolchain import CompilerMissing

needs_zig = pytest.mark.skipif(zig_command() is None, reason="needs Zig's compiler (the package ziglang)")


class Small(nn.Module):
    """Every kind of kernel that counts in long: products, convolutions, gathers, reductions, and a state."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 6, 3, padding=1)
        self.table = nn.Embedding(5, 4)
        self.last = nn.Linear(6, 4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x, i):
        seen = self.last(torch.relu(self.conv(x)).mean((2, 3)))
        self.total.add_(seen.sum(0))
        return torch.softmax(seen + self.table(i), -1), self.total.clone()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    torch.manual_seed(0)
    module, x, i = Small().eval(), torch.rand(3, 2, 9, 7), torch.tensor([0, 4, 2])
    folder = export(module, (x, i), tmp_path_factory.mktemp("small"), name="small")
    expected = [module(x, i), module(x, i)]
    return folder, x, i, expected


_PROGRAM = """
import {{ readFile }} from "node:fs/promises";
import {{ load, tensor, ModelError }} from "{folder}/small.js";
const wasm = await readFile("{folder}/small.wasm"), weights = await readFile("{folder}/small.weights");
const model = await load({{ wasm, weights }});
const x = tensor(new Float32Array({x}), [3, 2, 9, 7]);
const i = (...places) => tensor(new BigInt64Array(places.map(BigInt)), [3]);
const runs = [0, 1].map(() => model.forward(x, i(0, 4, 2)).map((each) => [...each.data]));
model.reset();
runs.push(model.forward(x, i(0, 4, 2)).map((each) => [...each.data]));
const errors = [];
for (const call of [() => model.forward(x, i(0, 5, 2)), () => model.forward(x, i(0, 2 ** 32, 2)), () => model.forward(x),
                    () => model.forward(tensor(new Float32Array(3), [3]), i(0, 1, 2))])
  try {{ call(); }} catch (error) {{ if (error instanceof ModelError) errors.push(error.message); }}
const other = new Uint8Array(weights);
other[20] ^= 1;
await load({{ wasm, weights: other }}).catch((error) => errors.push(error.message));
model.free();
console.log(JSON.stringify({{ runs, errors, signatures: model.signatures }}));
"""


@needs_zig
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_webassembly(small):
    folder, x, i, expected = small
    assert build_library(folder, "small", "wasm32").name == "small.wasm"
    program = folder / "run.mjs"
    program.write_text(_PROGRAM.format(folder=folder, x=x.flatten().tolist()))
    done = subprocess.run(["node", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for run, (scores, total) in zip(found["runs"], [*expected, expected[0]], strict=True):
        torch.testing.assert_close(torch.tensor(run[0]).reshape(3, 4), scores.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(torch.tensor(run[1]), total, rtol=1e-5, atol=1e-5)
    assert found["signatures"]["forward"].startswith("forward(x: float32[3, 2, 9, 7], i: int64[3]) -> ")
    said = ["a value is out of range", "a value is out of range", "takes 2 values, got 1", "must have 4 dimensions, got 1",
            "belong to another model"]  # fmt: skip
    assert len(found["errors"]) == len(said) and all(word in error for word, error in zip(said, found["errors"], strict=True))
    assert (
        "forward(x_: Tensor<Float32Array>, i_: Tensor<BigInt64Array>): [Tensor<Float32Array>, "
        in (folder / "small.d.ts").read_text()
    )


_THREADS = """
import {{ readFile }} from "node:fs/promises";
import {{ load, tensor, ModelError }} from "./small.js";
const wasm = await readFile("small-threads.wasm"), weights = await readFile("small.weights");
const x = tensor(new Float32Array({x}), [3, 2, 9, 7]), i = tensor(new BigInt64Array([0n, 4n, 2n]), [3]);
const found = [];
for (const threads of [1, 2, 3]) {{
  const model = await load({{ wasm, weights, threads }});
  const runs = [0, 1].map(() => model.forward(x, i).map((each) => [...each.data]));
  for (let run = 0; run < 300; ++run) {{
    model.reset();
    const again = [0, 1].map(() => model.forward(x, i).map((each) => [...each.data]));
    if (JSON.stringify(again) !== JSON.stringify(runs)) throw new Error("run " + run + " is different");
  }}
  found.push({{ threads: model.threads, runs }});
  model.free();
}}
const wrong = await load({{ wasm, weights, threads: 0 }}).catch((error) => error instanceof ModelError && error.message);
console.log(JSON.stringify({{ found, wrong }}));
"""


@needs_zig
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_webassembly_with_threads(small):
    folder, x, _, expected = small
    assert build_library(folder, "small", "wasm32-threads").name == "small-threads.wasm"
    (folder / "threads.mjs").write_text(_THREADS.format(x=x.numpy().ravel().tolist()))
    done = subprocess.run(["node", "threads.mjs"], cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [each["threads"] for each in said["found"]] == [1, 2, 3]
    for each in said["found"]:
        check_runs(np.concatenate([np.array(part) for run in each["runs"] for part in run]), expected)
    assert said["wrong"] == "a model runs on 1 to 64 threads, not on 0"


@needs_zig
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_webassembly_with_its_weights(tmp_path):
    module, x = nn.Linear(3, 2), torch.ones(1, 3)
    folder = export(module, (x,), tmp_path, name="inside", embed=True)
    build_library(folder, "inside", "wasm32")
    (folder / "inside.weights").unlink()
    (folder / "run.mjs").write_text(
        'import { readFile } from "node:fs/promises";\nimport { load, tensor } from "./inside.js";\n'
        'const model = await load({ wasm: await readFile("inside.wasm") });\n'
        "console.log(JSON.stringify([...model.forward(tensor(new Float32Array([1, 1, 1]), [1, 3])).data]));\nmodel.free();\n"
    )
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), module(x).detach().numpy().ravel(), rtol=1e-5, atol=1e-6)


class Rows(nn.Module):
    """Kernels that take sizes and strides as fields of type long, which has 32 bits in WebAssembly."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x):
        rows = self.conv(x).flatten(2)
        seen = nn.functional.scaled_dot_product_attention(rows[:, None], rows[:, None], rows[:, None])
        return seen.squeeze(1) @ rows.mT + rows.sum()


@needs_zig
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_webassembly_with_open_sizes(tmp_path):
    module, x = Rows().eval(), torch.rand(3, 2, 6, 5)
    rows = torch.export.Dim("rows")
    folder = export(module, (x[:2],), tmp_path, name="rows", embed=True, dynamic_shapes=({0: rows},))
    build_library(folder, "rows", "wasm32")
    program = (
        'import { readFile } from "node:fs/promises";\nimport { load, tensor } from "./rows.js";\n'
        'const model = await load({ wasm: await readFile("rows.wasm") });\n'
        f"const x = tensor(new Float32Array({x.flatten().tolist()}), [3, 2, 6, 5]);\n"
        "console.log(JSON.stringify([...model.forward(x).data]));"
    )
    (folder / "run.mjs").write_text(program)
    said = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=True, timeout=120).stdout
    np.testing.assert_allclose(json.loads(said), module(x).flatten().tolist(), rtol=1e-4)


@needs_zig
def test_other_processors(small):
    folder = small[0]
    library = build_library(folder, "small", "x86-64-v2")
    assert library.name == "libsmall-x86-64-v2.so"
    assert build_library(folder, "small", "aarch64").read_bytes()[18:20] == b"\xb7\x00"  # the machine in an ELF file's head


_DRIVER = """
#include <cstdio>
#include "small.h"
int main(int, char** names) {{
  small* model = nullptr;
  char message[512];
  if (small_create(names[1], &model, message, sizeof message)) return puts(message), 1;
  float x[] = {{{x}}};
  int64_t i[] = {{{i}}}, x_sizes[] = {{3, 2, 9, 7}}, i_sizes[] = {{3}};
  const small_tensor given[] = {{small_tensor_of(SMALL_FLOAT32, x, 4, x_sizes), small_tensor_of(SMALL_INT64, i, 1, i_sizes)}};
  for (int run = 0; run < 2; ++run) {{
    small_tensor scores{{}}, total{{}};
    if (small_forward(model, &given[0], &given[1], &scores, &total)) return puts(small_error(model)), 1;
    for (int at = 0; at < 12; ++at) printf("%.9g ", ((float*)scores.data)[at]);
    for (int at = 0; at < 4; ++at) printf("%.9g ", ((float*)total.data)[at]);
  }}
  small_destroy(model);
}}
"""


def numbers(values) -> str:
    return ", ".join(map(str, values.flatten().tolist()))


def check_runs(found: np.ndarray, expected) -> None:
    wanted = np.concatenate([each.detach().numpy().ravel() for run in expected for each in run])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-g++")),
    reason="needs qemu-aarch64 and a cross compiler",
)
def test_aarch64_in_an_emulator(small):
    folder, x, i, expected = small
    library = build_library(folder, "small", "aarch64", "static", flags=("-O1",))
    (folder / "driver.cpp").write_text(_DRIVER.format(x=numbers(x), i=numbers(i)))
    compile_driver = ["aarch64-linux-gnu-g++", "-static", "-fopenmp", "driver.cpp", library.name, "-o", "driver"]
    subprocess.run(compile_driver, cwd=folder, check=True, timeout=300)
    done = subprocess.run(
        ["qemu-aarch64", "./driver", "small.weights"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check_runs(np.array(done.stdout.split(), np.float64), expected)


def x86_64_program(folder, library: str, x, i) -> str:
    (folder / "driver.cpp").write_text(_DRIVER.format(x=numbers(x), i=numbers(i)))
    words = ["g++", "driver.cpp", f"./{library}", "-fopenmp", f"-Wl,-rpath,{folder}", "-o", "driver_of_levels"]
    subprocess.run(words, cwd=folder, check=True, timeout=300)
    return "./driver_of_levels"


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("g++") is None, reason="builds x86-64 code")
@pytest.mark.parametrize("processor", ["here", "Nehalem", "Haswell"])
def test_levels_in_one_library(small, processor):
    folder, x, i, expected = small
    library = folder / "libsmall-x86-64.so"
    if not library.exists():
        build_library(folder, "small", "x86-64", flags=("-O1",))
    words = [x86_64_program(folder, library.name, x, i), "small.weights"]
    if processor != "here":
        if shutil.which("qemu-x86_64") is None:
            pytest.skip("needs qemu-x86_64")
        words = ["qemu-x86_64", "-cpu", processor, *words]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    check_runs(np.array(done.stdout.split(), np.float64), expected)


@needs_zig
@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")
def test_zig_builds_for_levels_of_x86_64(small, monkeypatch):
    folder, x, i, expected = small
    monkeypatch.setattr(targets.toolchain, "compiler", lambda: (*zig_command(), "c++"))
    model = Model(build_library(folder, "small", "x86-64-v2"), "small", folder / "small.weights")
    check_runs(np.concatenate([each.ravel() for _ in range(2) for each in model.forward(x.numpy(), i.numpy())]), expected)


@needs_zig
def test_webassembly_in_wasmtime(small):
    wasmtime = pytest.importorskip("wasmtime")
    folder, x, i, expected = small
    module_path = folder / "small.wasm"
    if not module_path.exists():
        build_library(folder, "small", "wasm32")
    store = wasmtime.Store()
    store.set_wasi(wasmtime.WasiConfig())
    linker = wasmtime.Linker(store.engine)
    linker.define_wasi()
    exports = linker.instantiate(store, wasmtime.Module.from_file(store.engine, str(module_path))).exports(store)
    exports["_initialize"](store)

    def put(content: bytes) -> int:
        place = exports["malloc"](store, len(content))
        exports["memory"].write(store, content, place)
        return place

    def read(form: str, place: int) -> tuple:
        return struct.unpack(form, exports["memory"].read(store, place, place + struct.calcsize(form)))

    def tensor(dtype: int, values: np.ndarray) -> bytes:
        def row(numbers):
            return [*numbers, *[0] * (8 - values.ndim)]

        strides = [each // values.itemsize for each in values.strides]
        return struct.pack("<Iii4x8q8q", put(values.tobytes()), dtype, values.ndim, *row(values.shape), *row(strides))

    weights, place = (folder / "small.weights").read_bytes(), put(bytes(4))
    assert exports["small_create_from_memory"](store, put(weights), len(weights), place, 0, 0) == 0
    (handle,) = read("<I", place)
    given = [put(tensor(1, x.numpy())), put(tensor(5, i.numpy()))]
    found = []
    for _ in range(2):
        results = [put(bytes(144)), put(bytes(144))]
        assert exports["small_forward"](store, handle, *given, *results) == 0
        for result, count in zip(results, (12, 4), strict=True):
            found += read(f"<{count}f", read("<I", result)[0])
    check_runs(np.array(found), expected)


def test_targets_that_nothing_builds_for(monkeypatch):
    with pytest.raises(ValueError, match="there is no target 'mips'; there are native"):
        target_named("mips")
    monkeypatch.setattr(targets, "zig_command", lambda: None)
    with pytest.raises(CompilerMissing, match=r"pip install 'rushlight\[compiler\]'"):
        target_named("wasm32")
