"""Linear layers with weights of 8 and 4 bits beside OpenVINO: `python -m benchmarks.weight_only [--threads 2] [--rounds 3]`.

BERT-base over 128 tokens and ViT-base of one image, random weights. Rushlight's `quantize_` and OpenVINO's weight compression
(NNCF: symmetric, 8 bits per channel, 4 bits in groups of 64) narrow the same float32 weights; activations are float32, unless
"dynamic" says that they become bytes too. Each contender runs in a process of its own, in turns; medians of calls, then of
rounds. The distance of results from those of float32 weights, relative to their norm, is printed beside them. OpenVINO and NNCF
may be in another environment, whose Python `--openvino` names.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.machine import processor
from benchmarks.workloads import WORKLOADS

MODELS = ("bert_base", "vit_base")
FORMS = ("float32", "int8", "int4", "dynamic")
GROUP = 64


def _rushlight(workload, form: str, threads: int) -> Callable[[], np.ndarray]:
    import rushlight as torch
    from rushlight.ao import quantization

    torch.set_num_threads(threads)
    model = workload.torch_function(torch, workload.weights())
    configs = {"int8": quantization.Int8WeightOnlyConfig, "dynamic": quantization.Int8DynamicActivationInt8WeightConfig}
    if form == "int4":
        quantization.quantize_(model, quantization.Int4WeightOnlyConfig(group_size=GROUP))
    elif form in configs:
        quantization.quantize_(model, configs[form]())
    compiled, given = torch.compile(model), [torch.from_numpy(each) for each in workload.inputs().values()]

    def run() -> np.ndarray:
        with torch.no_grad():
            made = compiled(*given)
        return (made if isinstance(made, torch.Tensor) else made[0]).numpy()

    return run


def _openvino(path: str, form: str, threads: int, inputs: dict) -> Callable[[], np.ndarray]:
    import nncf
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    model = core.read_model(path)
    if form in ("int8", "dynamic"):
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
    elif form == "int4":
        model = nncf.compress_weights(
            model, mode=nncf.CompressWeightsMode.INT4_SYM, group_size=GROUP, ratio=1.0, all_layers=True
        )  # fmt: skip
    settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 64 if form == "dynamic" else 0
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return lambda: np.array(next(iter(request.infer(inputs, share_inputs=True, share_outputs=True).values())))


def _timed(run: Callable[[], np.ndarray], seconds: float) -> tuple[float, np.ndarray]:
    times = []
    for _ in range(4):
        result = run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and len(times) < 300:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def one(library: str, name: str, form: str, threads: int, path: str, out: str) -> None:
    """Measure one contender, and leave its result in a file."""
    if library == "rushlight":
        run = _rushlight(next(each for each in WORKLOADS if each.name == name), form, threads)
    else:
        run = _openvino(path, form, threads, pickle.loads(Path(f"{path}.inputs").read_bytes()))
    seconds, result = _timed(run, 5.0)
    np.save(out, result)
    print(json.dumps(seconds))


def _measure(options: argparse.Namespace, folder: Path, name: str, form: str) -> dict[str, tuple[float, np.ndarray]]:
    found: dict[str, list[float]] = {"rushlight": [], "openvino": []}
    results = {}
    for _ in range(options.rounds):
        for library, times in found.items():
            python = options.openvino if library == "openvino" else sys.executable
            given = [library, name, form, str(options.threads), str(folder / f"{name}.onnx"), str(folder / "result.npy")]
            done = subprocess.run([python, "-m", "benchmarks.weight_only", "--one", *given], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{library} {name} {form}: {done.stderr[-1500:]}")
            times.append(json.loads(done.stdout.splitlines()[-1]))
            results[library] = np.load(folder / "result.npy")
    return {library: (statistics.median(times), results[library]) for library, times in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--openvino", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        library, name, form, threads, path, out = options.one
        one(library, name, form, int(threads), path, out)
        return
    print(f"{processor()}, {options.threads} threads")
    print(f"{'':19} {'milliseconds':>26} {'':9} {'distance':>20}")
    print(f"{'model':10} {'weights':8} {'OpenVINO':>13} {'Rushlight':>12} {'quotient':>9} {'OpenVINO':>10} {'Rushlight':>10}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in MODELS:
            workload = next(each for each in WORKLOADS if each.name == name)
            (folder / f"{name}.onnx").write_bytes(workload.onnx_model(workload.weights()))
            (folder / f"{name}.onnx.inputs").write_bytes(pickle.dumps(workload.inputs()))
            reference = None
            for form in FORMS:
                found = _measure(options, folder, name, form)
                (theirs, other), (ours, own) = found["openvino"], found["rushlight"]
                reference = own if reference is None else reference
                apart = [np.linalg.norm(each - reference) / np.linalg.norm(reference) for each in (other, own)]
                times = f"{1e3 * theirs:13.1f} {1e3 * ours:12.1f} {ours / theirs:9.2f}"
                print(f"{name:10} {form:8} {times} {apart[0]:10.1e} {apart[1]:10.1e}", flush=True)


if __name__ == "__main__":
    main()
