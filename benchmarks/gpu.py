"""Time a GPU: Rushlight beside PyTorch, eager and compiled: `python -m benchmarks.gpu --out gpu.json`.

Each row is a workload, each column a library and a way to run it. The same code runs under both libraries, each column in a
process of its own; a workload that fails ends its process, and the next ones run in another. Kernels are compared with a copy
of the same bytes and with the fastest product: the speed is in TB/s, of bytes that must be read or written, or in TFLOP/s.
Prints a table of milliseconds and one of the first runs' seconds; `--out` writes the numbers.

A time is the median of rounds, each of which runs the workload several times without waiting and takes the mean.
"""

from __future__ import annotations

import argparse
import importlib
import json
import selectors
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

COLUMNS = (
    "rushlight eager", "rushlight compile", "rushlight reduce-overhead",
    "torch eager", "torch compile", "torch reduce-overhead",
)  # fmt: skip
SPEEDS = (("terabytes_per_second", "TB/s"), ("teraflops", "TFLOP/s"))
_ROUNDS, _RUNS = 7, 10
_ROWS, _WIDTH = 32768, 4096


class Workload(NamedTuple):
    """A function and its inputs, with the bytes that it must move, or the operations of products that it must do."""

    function: Callable
    inputs: tuple
    bytes_moved: int = 0
    operations: float = 0


def _rows(torch: Any) -> Any:
    return torch.randn(_ROWS, _WIDTH, device="cuda")


def copy(torch: Any) -> Workload:
    """A copy: the bandwidth that the others are measured by."""
    x = _rows(torch)
    return Workload(lambda x: x.clone(), (x,), 2 * x.nbytes)


def pointwise(torch: Any) -> Workload:
    """A chain of pointwise functions."""
    x, y = _rows(torch), _rows(torch)
    return Workload(lambda x, y: torch.nn.functional.gelu(x * 1.5 + y).tanh() * y, (x, y), 3 * x.nbytes)


def total(torch: Any) -> Workload:
    """A sum over columns, which does not go along the rows of memory."""
    x = _rows(torch)
    return Workload(lambda x: x.sum(0), (x,), x.nbytes)


def softmax(torch: Any) -> Workload:
    """A softmax of rows."""
    x = _rows(torch)
    return Workload(lambda x: torch.softmax(x, -1), (x,), 2 * x.nbytes)


def layer_norm(torch: Any) -> Workload:
    """A layer normalisation of rows."""
    x, w, b = _rows(torch), *(torch.randn(_WIDTH, device="cuda") for _ in range(2))
    return Workload(lambda x, w, b: torch.nn.functional.layer_norm(x, (_WIDTH,), w, b), (x, w, b), 2 * x.nbytes)


def small(torch: Any) -> Workload:
    """Twenty operators of 1,024 elements: what the host needs for them."""

    def chain(x: Any) -> Any:
        for _ in range(10):
            x = (x + 1).sigmoid()
        return x

    return Workload(chain, (torch.randn(1024, device="cuda"),))


def _product(torch: Any, rows: int, inner: int, columns: int) -> Workload:
    a, b = (torch.randn(*sizes, device="cuda").to(torch.bfloat16) for sizes in ((rows, inner), (inner, columns)))
    return Workload(lambda a, b: a @ b, (a, b), 0, 2 * rows * inner * columns)


def product(torch: Any) -> Workload:
    """A product of bfloat16 matrices."""
    return _product(torch, 8192, 8192, 8192)


def layer_product(torch: Any) -> Workload:
    """A product of the sizes that a small transformer has."""
    return _product(torch, 4096, 768, 3072)


def attention(torch: Any) -> Workload:
    """Causal attention of 2,048 places, 16 heads of 64, in bfloat16."""
    batch, heads, length, width = 8, 16, 2048, 64
    parts = [torch.randn(batch, heads, length, width, device="cuda").to(torch.bfloat16) for _ in range(3)]
    run = torch.nn.functional.scaled_dot_product_attention
    return Workload(lambda q, k, v: run(q, k, v, is_causal=True), (*parts,), 0, 2 * batch * heads * length**2 * width)


def _block(torch: Any) -> type:
    """Return a layer of a transformer, for encoders and decoders."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, is_causal: bool):
            super().__init__()
            self.heads, self.is_causal = heads, is_causal
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.grown, self.shrunk = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.mixed(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=self.is_causal)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.shrunk(nn.functional.gelu(self.grown(self.norm2(x))))

    return Block


def _encoder(torch: Any, head: Any, tail: Any, is_causal: bool = False) -> Any:
    layers = [_block(torch)(768, 12, is_causal) for _ in range(12)]
    return torch.nn.Sequential(head, *layers, torch.nn.LayerNorm(768), tail).cuda()


def bert(torch: Any) -> Workload:
    """An encoder of BERT-base's size: 16 texts of 256 tokens, in bfloat16."""
    model = _encoder(torch, torch.nn.Embedding(30522, 768), torch.nn.Identity()).to(torch.bfloat16).eval()
    return Workload(model, (torch.randint(0, 30522, (16, 256), device="cuda"),))


def vit(torch: Any) -> Workload:
    """An encoder of ViT-base's size: 32 images of 224 by 224, in bfloat16."""
    nn = torch.nn
    patches = nn.Sequential(nn.Conv2d(3, 768, 16, 16), nn.Flatten(2))

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = patches

        def forward(self, x: Any) -> Any:
            return self.patches(x).transpose(1, 2)

    model = _encoder(torch, Head(), nn.Linear(768, 1000)).to(torch.bfloat16).eval()
    return Workload(model, (torch.randn(32, 3, 224, 224, device="cuda").to(torch.bfloat16),))


def gpt(torch: Any) -> Workload:
    """A training step of a decoder of GPT-2's size: 8 texts of 512 tokens, AdamW, autocast to bfloat16."""
    model = _encoder(torch, torch.nn.Embedding(50304, 768), torch.nn.Linear(768, 50304, bias=False), is_causal=True)
    model.step = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return Workload(model, (torch.randint(0, 50304, (8, 512), device="cuda"),))


WORKLOADS = {
    "copy": copy, "pointwise chain": pointwise, "sum of columns": total, "softmax": softmax, "layer norm": layer_norm,
    "small operators": small, "product": product, "layer's product": layer_product, "attention": attention, "BERT-base": bert,
    "ViT-base": vit, "GPT training step": gpt,
}  # fmt: skip


def _runner(torch: Any, workload: Workload, mode: str) -> Callable[[], Any]:
    """Return a function that runs a workload once."""
    function, inputs = workload.function, workload.inputs
    step = getattr(function, "step", None)
    options = {} if mode == "compile" else {"mode": mode}
    run = function if mode == "eager" else torch.compile(function, **options)
    if step is None:
        return lambda: _without_gradients(torch, run, inputs)

    def train() -> None:
        step.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = run(inputs[0])
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), inputs[0].flatten())
        loss.backward()
        step.step()

    return train


def _without_gradients(torch: Any, run: Callable, inputs: tuple) -> Any:
    with torch.no_grad():
        return run(*inputs)


def measure(torch: Any, name: str, mode: str) -> dict[str, float]:
    """Return a workload's milliseconds, its speed, and the seconds of the first run."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    workload = WORKLOADS[name](torch)
    run = _runner(torch, workload, mode)
    torch.cuda.synchronize()
    began = time.perf_counter()
    run()
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    for _ in range(4):
        run()
    times = []
    for _ in range(_ROUNDS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(_RUNS):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / _RUNS)
    median = sorted(times)[len(times) // 2]
    found = {"milliseconds": median, "first_seconds": first}
    if workload.bytes_moved:
        found["terabytes_per_second"] = workload.bytes_moved / median / 1e9
    if workload.operations:
        found["teraflops"] = workload.operations / median / 1e9
    return found


def _measure_column(library: str, mode: str, names: list[str]) -> None:
    """Print a line of JSON for each workload. An error ends the process: what follows a fault of the device fails, too."""
    torch = importlib.import_module(library)
    for name in names:
        try:
            found = measure(torch, name, mode)
        except Exception as error:
            traceback.print_exc()
            print(json.dumps({"name": name, "error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}), flush=True)
            return
        print(json.dumps({"name": name, **found}), flush=True)
        torch.cuda.empty_cache()


def _lines(process: subprocess.Popen, ends: float) -> Iterator[bytes]:
    """Yield the lines that a process prints, until it ends or it is time."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0, ends - time.monotonic())):
            line = process.stdout.readline()
            if not line:
                return
            yield line


def _measure_apart(column: str, names: list[str], ends: float) -> dict[str, dict[str, Any]]:
    """Return a column's results, from as many processes as it takes."""
    found: dict[str, dict[str, Any]] = {}
    library, mode = column.split()
    while left := [name for name in names if name not in found]:
        if time.monotonic() >= ends:
            return found | {name: {"error": "no time left"} for name in left}
        command = [sys.executable, "-m", "benchmarks.gpu", "--one", library, mode, *left]
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
            for line in _lines(process, ends):
                one = json.loads(line)
                found[one.pop("name")] = one
            late = process.poll() is None and time.monotonic() >= ends
            if late:
                process.kill()
        if left[0] not in found and not late:
            found[left[0]] = {"error": f"the process ended with status {process.returncode}"}
        elif late:
            found.setdefault(next((name for name in left if name not in found), ""), {"error": "took too long"})
    return found


def main() -> None:
    """Measure all workloads that the time allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs="+", help="a library, a mode and workloads to measure in this process")
    parser.add_argument("--seconds", type=float, default=600, help="time for everything")
    parser.add_argument("--only", default="", help="names of workloads, comma-separated")
    parser.add_argument("--columns", default="", help="columns, comma-separated")
    parser.add_argument("--out", default="")
    given = parser.parse_args()
    if given.one:
        _measure_column(given.one[0], given.one[1], given.one[2:])
        return
    ends, found = time.monotonic() + given.seconds, {}
    names = [name for name in WORKLOADS if not given.only or name in given.only.split(",")]
    columns = [column for column in COLUMNS if not given.columns or column in given.columns.split(",")]
    for column in columns:
        found[column] = _measure_apart(column, names, ends)
        if given.out:
            with open(given.out, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
    _show("Milliseconds", names, found, _cell)
    _show("Seconds of the first run", names, found, lambda one: f"{one['first_seconds']:.2f}" if "first_seconds" in one else "")


def _show(title: str, names: list[str], found: dict[str, dict], cell: Callable[[dict[str, Any]], str]) -> None:
    print(f"{title:20}" + "".join(f"{column:>28}" for column in found))
    for name in names:
        print(f"{name:20}" + "".join(f"{cell(found[column].get(name, {})):>28}" for column in found), flush=True)


def _cell(found: dict[str, Any]) -> str:
    if "milliseconds" not in found:
        return found.get("error", "")[:26]
    speeds = [f"{found[key]:.2f} {unit}" for key, unit in SPEEDS if key in found]
    return ", ".join([f"{found['milliseconds']:.3f} ms", *speeds])


if __name__ == "__main__":
    main()
