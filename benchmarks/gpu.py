"""Time a GPU: Rushlight beside PyTorch, eager and compiled: `python -m benchmarks.gpu --out gpu.json`.

Each row is a workload, each column a library and a way to run it. The same code runs under both libraries, each in a process of
its own. Kernels are compared with a copy of the same bytes, products with the fastest product. Prints a table; `--out` writes
the numbers. A column that fails has the error's first line. """

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

COLUMNS = ("rushlight eager", "rushlight compile", "rushlight reduce-overhead", "torch eager", "torch compile")
_GIB = 1 << 30
_REPEATS = 20
_ROWS, _WIDTH = 8192, 4096


def pointwise(torch: Any) -> tuple[Callable, tuple, int]:
    """A chain of pointwise functions: its function, inputs, and the bytes that it must move."""
    x, y = (torch.randn(_ROWS, _WIDTH, device="cuda") for _ in range(2))
    return lambda x, y: torch.nn.functional.gelu(x * 1.5 + y).tanh() * y, (x, y), 3 * x.nbytes


def softmax(torch: Any) -> tuple[Callable, tuple, int]:
    """A softmax of rows."""
    x = torch.randn(_ROWS, _WIDTH, device="cuda")
    return lambda x: torch.softmax(x, -1), (x,), 2 * x.nbytes


def layer_norm(torch: Any) -> tuple[Callable, tuple, int]:
    """A layer normalisation of rows."""
    x, w, b = torch.randn(_ROWS, _WIDTH, device="cuda"), *(torch.randn(_WIDTH, device="cuda") for _ in range(2))
    return lambda x, w, b: torch.nn.functional.layer_norm(x, (_WIDTH,), w, b), (x, w, b), 2 * x.nbytes


def copy(torch: Any) -> tuple[Callable, tuple, int]:
    """A copy: the bandwidth that the others are measured by."""
    x = torch.randn(_ROWS, _WIDTH, device="cuda")
    return lambda x: x.clone(), (x,), 2 * x.nbytes


def product(torch: Any) -> tuple[Callable, tuple, int]:
    """A product of bfloat16 matrices."""
    a, b = (torch.randn(4096, 4096, device="cuda").to(torch.bfloat16) for _ in range(2))
    return lambda a, b: a @ b, (a, b), 0


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


def bert(torch: Any) -> tuple[Callable, tuple, int]:
    """An encoder of BERT-base's size: 16 texts of 256 tokens, in bfloat16."""
    model = _encoder(torch, torch.nn.Embedding(30522, 768), torch.nn.Identity()).to(torch.bfloat16).eval()
    return model, (torch.randint(0, 30522, (16, 256), device="cuda"),), 0


def vit(torch: Any) -> tuple[Callable, tuple, int]:
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
    return model, (torch.randn(32, 3, 224, 224, device="cuda").to(torch.bfloat16),), 0


def gpt(torch: Any) -> tuple[Callable, tuple, int]:
    """A training step of a decoder of GPT-2's size: 8 texts of 512 tokens, AdamW, autocast to bfloat16."""
    model = _encoder(torch, torch.nn.Embedding(50304, 768), torch.nn.Linear(768, 50304, bias=False), is_causal=True)
    model.step = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return model, (torch.randint(0, 50304, (8, 512), device="cuda"),), 0


WORKLOADS = {"copy": copy, "pointwise chain": pointwise, "softmax": softmax, "layer norm": layer_norm, "product": product,
             "BERT-base": bert, "ViT-base": vit, "GPT training step": gpt}  # fmt: skip


def _runner(torch: Any, name: str, mode: str) -> tuple[Callable[[], Any], int]:
    """Return a function that runs a workload once, and the bytes that it must move."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    function, inputs, nbytes = WORKLOADS[name](torch)
    step = getattr(function, "step", None)
    options = {} if mode == "compile" else {"mode": mode}
    run = function if mode == "eager" else torch.compile(function, **options)
    if step is None:
        return (lambda: _without_gradients(torch, run, inputs)), nbytes

    def train() -> None:
        step.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = run(inputs[0])
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), inputs[0].flatten())
        loss.backward()
        step.step()

    return train, nbytes


def _without_gradients(torch: Any, run: Callable, inputs: tuple) -> Any:
    with torch.no_grad():
        return run(*inputs)


def measure(library: str, name: str, mode: str) -> dict[str, float]:
    """Return a workload's milliseconds, the seconds of the first run, and the gibibytes per second."""
    torch = importlib.import_module(library)
    run, nbytes = _runner(torch, name, mode)
    began = time.perf_counter()
    run()
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    for _ in range(4):
        run()
    times = []
    for _ in range(_REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    best = sorted(times)[len(times) // 2]
    return {"milliseconds": best, "first_seconds": first, "gibibytes_per_second": nbytes / _GIB / best * 1000}


def _measure_apart(column: str, name: str, seconds: float) -> dict[str, Any]:
    library, mode = column.split()
    command = [sys.executable, "-m", "benchmarks.gpu", "--one", library, name, mode]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {seconds:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure all workloads that the time allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3)
    parser.add_argument("--seconds", type=float, default=240, help="time for everything")
    parser.add_argument("--only", default="", help="names of workloads, comma-separated")
    parser.add_argument("--out", default="")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], given.one[1], given.one[2])))
        return
    ends, found = time.monotonic() + given.seconds, {}
    wanted = [name for name in WORKLOADS if not given.only or name in given.only.split(",")]
    print(f"{'':20}" + "".join(f"{column:>28}" for column in COLUMNS))
    for name in wanted:
        found[name] = {}
        for column in COLUMNS:
            left = ends - time.monotonic()
            found[name][column] = _measure_apart(column, name, left) if left > 1 else {"error": "no time left"}
        print(f"{name:20}" + "".join(f"{_cell(found[name][column]):>28}" for column in COLUMNS), flush=True)
        if given.out:
            with open(given.out, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)


def _cell(found: dict[str, Any]) -> str:
    if "error" in found:
        return found["error"][:26]
    speed = found["gibibytes_per_second"]
    return f"{found['milliseconds']:.3f} ms" + (f", {speed:.0f} GiB/s" if speed else "")


if __name__ == "__main__":
    main()
