"""The native header library by itself: products and attention, beside NumPy's BLAS, in processes of their own.

`python -m benchmarks.kernels` compiles kernels.cpp as generated code is compiled and prints GFLOP/s of the median and
of the best call. NumPy runs with OPENBLAS_CORETYPE=SkylakeX where the processor has AVX-512, as its OpenBLAS may choose
slower kernels otherwise. The two alternate, so that another load on the machine meets both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parent / "rushlight" / "inductor" / "include"
SHAPES = [(128, 384, 384), (128, 1536, 384), (128, 384, 1536), (128, 3072, 768), (197, 768, 768), (1024, 1024, 1024),
          (1, 3072, 768), (4, 4096, 4096)]  # M, N, K
FLAGS = "-O2 -march=native -mprefer-vector-width=512 -fopenmp -std=c++17 -fno-math-errno -fno-trapping-math " \
        "-ffp-contract=fast -Wno-psabi"
ROUNDS = 3

NUMPY = """
import sys, time
import numpy as np
for text in sys.argv[1:]:
    m, n, k = map(int, text.split(","))
    a, b, out = np.random.rand(m, k).astype("f"), np.random.rand(n, k).astype("f").T, np.empty((m, n), "f")
    seconds, start = [], time.perf_counter()
    while len(seconds) < 5 or time.perf_counter() - start < 0.5:
        begin = time.perf_counter()
        np.matmul(a, b, out=out)
        seconds.append(time.perf_counter() - begin)
    print("gemm", m, n, k, np.median(seconds), min(seconds))
"""

Times = dict[tuple[str, ...], tuple[float, float]]  # kind and sizes: median and best seconds


def build(folder: Path) -> Path:
    binary = folder / "kernels"
    shapes = " ".join(f"SHAPE({m}, {n}, {k})" for m, n, k in SHAPES)
    begin = time.perf_counter()
    source = str(HERE / "kernels.cpp")
    subprocess.run(["g++", *FLAGS.split(), f"-I{INCLUDE}", f"-DSHAPES={shapes}", source, "-o", str(binary)], check=True)
    print(f"compiled {len(SHAPES)} products and 3 attentions in {time.perf_counter() - begin:.2f} s")
    return binary


def run(command: list[str], environment: dict[str, str]) -> Times:
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    rows = [line.split() for line in done.stdout.splitlines()]
    return {tuple(row[:4]): (float(row[4]), float(row[5])) for row in rows}


def quickest(rounds: list[Times]) -> Times:
    """Of each measurement, the round whose median was least: the one least disturbed by others."""
    return {key: min(times[key] for times in rounds) for key in rounds[0]}


def flops(key: tuple[str, ...]) -> float:
    first, second, third = map(int, key[1:])
    return 2.0 * first * second * third if key[0] == "gemm" else 4.0 * first * second * second * third


def numpy_environment() -> dict[str, str]:
    info = Path("/proc/cpuinfo")
    return {"OPENBLAS_CORETYPE": "SkylakeX"} if info.exists() and "avx512f" in info.read_text() else {}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        binary = build(Path(folder))
        shapes = [",".join(map(str, shape)) for shape in SHAPES]
        own, numpy = [], []
        for _ in range(ROUNDS):
            own.append(run([str(binary)], {}))
            numpy.append(run([sys.executable, "-c", NUMPY, *shapes], numpy_environment()))
    peers = quickest(numpy)
    print(f"{'work':28} {'rushlight':>20} {'NumPy':>20} {'ratio':>6}   (GFLOP/s: median / best)")
    for key, (median, best) in quickest(own).items():
        work = flops(key) * 1e-9
        line = f"{' '.join(key):28} {work / median:10.0f} /{work / best:8.0f}"
        if key in peers:
            line += f" {work / peers[key][0]:10.0f} /{work / peers[key][1]:8.0f} {peers[key][0] / median:6.2f}"
        else:
            line += f"   {median * 1e3:.3f} ms"
        print(line)


if __name__ == "__main__":
    main()
