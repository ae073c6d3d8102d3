"""Exported models beside libtorch and ONNX Runtime: `python -m benchmarks.deployed` measures latency, start and memory.

In: PyTorch and ONNX Runtime where they are installed; `SILERO` names silero-vad's archive where its package is not. Out: a
table. Each contender runs in a process of its own, in turns: ours is a C program, libtorch a C++ one over the library inside of
PyTorch's package, ONNX Runtime is called from Python. Each figure is the median of three turns. `--handles 1 2 4` measures how
many runs a second so many threads do together, each with a handle of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import processor

HERE = Path(__file__).parent
TURNS = 3
Timing = dict[str, float]


@dataclass
class Case:
    """A model: how it is exported, and a TorchScript archive of the same with the sizes of its inputs, as words."""

    name: str
    make: Callable[[Path], tuple[Path, Path, list[str], list[tuple[str, list[int]]]]]


def _silero(work: Path) -> tuple[Path, Path, list[str], list]:
    from examples.deploy.export_models import export_silero, silero_archive

    archive = Path(os.environ.get("SILERO", "")) if os.environ.get("SILERO") else silero_archive()
    if archive is None:
        raise FileNotFoundError("silero-vad is not installed; SILERO names its archive")
    return export_silero(archive, work), archive, ["float32:1,512", "int:16000"], []


def _minilm(work: Path) -> tuple[Path, Path, list[str], list]:
    import rushlight
    from examples.minilm import load_encoder, model_folder
    from rushlight.deploy import export

    encoder = load_encoder(model_folder()).eval()
    ids = rushlight.ones(1, 128, dtype=rushlight.int64)
    folder = export(encoder, (ids, ids), work / "minilm", name="minilm")
    archive = work / "minilm.pt"
    rushlight.jit.trace(encoder, (ids, ids), check_trace=False).save(archive)
    onnx = work / "minilm.onnx"
    rushlight.onnx.export(encoder, (ids, ids), onnx)
    return folder, archive, ["int64:1,128", "int64:1,128"], [(str(onnx), [1, 128])]


def _resnet(work: Path) -> tuple[Path, Path, list[str], list]:
    import rushlight
    from examples.resnet import ResNet
    from rushlight.deploy import export

    rushlight.manual_seed(0)
    model = ResNet().eval()
    x = rushlight.rand(1, 3, 224, 224)
    folder = export(model, (x,), work / "resnet18", name="resnet18")
    archive = work / "resnet18.pt"
    rushlight.jit.trace(model, (x,), check_trace=False).save(archive)
    onnx = work / "resnet18.onnx"
    rushlight.onnx.export(model, (x,), onnx)
    return folder, archive, ["float32:1,3,224,224"], [(str(onnx), [1, 3, 224, 224])]


def _decoder(work: Path) -> tuple[Path, Path, list[str], list]:
    import rushlight
    from examples.deploy.decoder import Seq2Seq
    from examples.deploy.export_models import export_decoder

    rushlight.manual_seed(0)
    archive = work / "decoder.pt"
    rushlight.jit.script(Seq2Seq().eval()).save(archive)
    return export_decoder(work), archive, ["int64:1,5", "int:20"], []


CASES = [
    Case("silero-vad", _silero),
    Case("MiniLM-L6, 128 tokens", _minilm),
    Case("ResNet-18", _resnet),
    Case("decoder, 20 steps", _decoder),
]


def _ours(work: Path, folder: Path, called: str = "ours") -> Path:
    """A C program of this folder over a model."""
    from rushlight.deploy.targets import build_library

    name = folder.name
    library = build_library(folder, name, kind="shared")
    program = work / f"{called}_{name}"
    defined = [f"-DMODEL={name}", f"-DUPPER={name.upper()}", f'-DHEADER="{name}.h"', f"-I{folder}"]
    source = str(HERE / "deployed_programs" / f"{called}.c")
    links = [str(library), f"-Wl,-rpath,{folder}", "-pthread"]
    subprocess.run(["gcc", "-O2", *defined, source, *links, "-o", str(program)], check=True)
    return program


def throughput(case: Case, handles: list[int], work: Path) -> dict[int, float]:
    """Runs a second, by how many threads there are with a handle each."""
    folder, _, words, _ = case.make(work)
    program = _ours(work, folder, "handles")
    commands = {count: [program, folder / f"{folder.name}.weights", count, *words] for count in handles}
    turns = [{count: _run(command)["runs"] for count, command in commands.items()} for _ in range(TURNS)]
    return {count: statistics.median(turn[count] for turn in turns) for count in handles}


def _libtorch(work: Path) -> Path | None:
    """The C++ program over the library in PyTorch's package."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations)))
    program = work / "libtorch"
    includes = [f"-I{root / 'include'}", f"-I{root / 'include/torch/csrc/api/include'}"]
    libraries = [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10"]
    source = str(HERE / "deployed_programs" / "libtorch.cpp")
    subprocess.run(["g++", "-O2", "-std=c++20", "-w", *includes, source, *libraries, "-o", str(program)], check=True)
    return program


_ONNX = """
import json, re, sys, time
began = time.perf_counter()
import numpy as np, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[1])
session = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
sizes = json.loads(sys.argv[3])
kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
feed = {each.name: np.ones(sizes, kinds[each.type]) for each in session.get_inputs()}
session.run(None, feed)
first = time.perf_counter() - began
times = []
end = time.perf_counter() + 3
while time.perf_counter() < end or len(times) < 20:
    start = time.perf_counter()
    session.run(None, feed)
    times.append(time.perf_counter() - start)
times.sort()
memory = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps({"latency": times[len(times) // 2], "first": first, "memory": memory}))
"""


def _run(words: list[object]) -> Timing:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _median(timings: list[Timing]) -> Timing:
    return {key: statistics.median(each[key] for each in timings) for key in timings[0]}


def measure(case: Case, threads: int, work: Path, libtorch: Path | None) -> dict[str, Timing]:
    """The contenders' figures, in turns."""
    folder, archive, words, onnx = case.make(work)
    ours = _ours(work, folder)
    contenders: dict[str, list[object]] = {"Rushlight": [ours, folder / f"{folder.name}.weights", threads, *words]}
    if libtorch is not None:
        contenders["libtorch"] = [libtorch, archive, threads, *words]
    if onnx and importlib.util.find_spec("onnxruntime") is not None:
        contenders["ONNX Runtime"] = [sys.executable, "-c", _ONNX, threads, onnx[0][0], json.dumps(onnx[0][1])]
    turns: dict[str, list[Timing]] = {name: [] for name in contenders}
    for _ in range(TURNS):
        for name, command in contenders.items():
            turns[name].append(_run(command))
    return {name: _median(timings) for name, timings in turns.items()}


def _chosen(only: list[str] | None) -> list[Case]:
    return [case for case in CASES if not only or any(case.name.startswith(word) for word in only)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="*", help="cases whose names begin so")
    parser.add_argument("--handles", type=int, nargs="+", help="measure throughput of so many threads, each with a handle")
    options = parser.parse_args()
    print(processor())
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        if options.handles:
            for case in _chosen(options.only):
                found = throughput(case, options.handles, work)
                for count, runs in found.items():
                    print(f"{case.name:24} {count} handles  {runs:10.1f} runs a second", flush=True)
            return
        libtorch = _libtorch(work)
        for case in _chosen(options.only):
            for threads in options.threads:
                folder = work / f"{threads}"
                folder.mkdir(exist_ok=True)
                try:
                    found = measure(case, threads, folder, libtorch)
                except (OSError, RuntimeError) as error:
                    print(f"{case.name}: {error}")
                    continue
                base = found["Rushlight"]["latency"]
                for name, timing in found.items():
                    print(
                        f"{case.name:24} {threads} threads  {name:13} {timing['latency'] * 1e3:8.3f} ms a run  "
                        f"(ours {base / timing['latency']:.2f})  first result {timing['first'] * 1e3:7.1f} ms  "
                        f"{timing['memory']:6.1f} MB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
