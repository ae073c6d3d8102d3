"""Unmodified models of transformers and timm: on Rushlight, on PyTorch, and beside our own examples of the same networks.

`python -m benchmarks.clients --torch-python PYTHON --clients-python PYTHON [--json ROWS.json]`: the first has PyTorch, the
second has not; both have transformers and timm. PyTorch's eager run makes the weights and the inputs that all others load.
Each contender runs in a process of its own, in turns; times are medians of turns of medians of calls without gradients.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("bert-base", "gpt2", "vit-base", "resnet18", "resnet50")
CONTENDERS = {
    "Rushlight compiled": ("clients", "compile"), "own example": ("own", "compile"), "torch eager": ("torch", "eager"),
    "torch.compile": ("torch", "compile"),
}  # fmt: skip
_PROGRAM = r'''
import json, sys, time, warnings
warnings.simplefilter("ignore")
name, how, folder = sys.argv[1:4]
threads, seconds, own = int(sys.argv[4]), float(sys.argv[5]), sys.argv[6] == "own"
if own:
    import rushlight as torch
    from rushlight import load_safetensors as load_file
    from rushlight import save_safetensors as save_file
else:
    import torch
    from safetensors.torch import load_file, save_file
torch.set_num_threads(threads)
torch.manual_seed(0)

def build():
    if own:
        if name == "bert-base":
            from examples.bert import BertConfig, BertModel
            return BertModel(BertConfig())
        if name == "resnet18":
            from examples.resnet import ResNet
            return ResNet()
        from examples.vit import ViTConfig, VisionTransformer
        return VisionTransformer(ViTConfig())
    if name == "bert-base":
        from transformers import BertConfig, BertModel
        return BertModel(BertConfig())
    if name == "gpt2":
        from transformers import GPT2Config, GPT2Model
        return GPT2Model(GPT2Config(use_cache=False))
    if name == "vit-base":
        import timm
        return timm.create_model("vit_base_patch16_224")
    import timm
    return timm.create_model(name)

model = build().eval()
images = name not in ("bert-base", "gpt2")
x = torch.randn(1, 3, 224, 224) if images else torch.randint(0, 30000, (1, 128))
weights = f"{folder}/{name}.safetensors"
first_of_all = how == "eager"
if first_of_all:
    save_file({key: value.contiguous().clone() for key, value in model.state_dict().items()}, weights)
elif not own:
    model.load_state_dict(load_file(weights))
compiled = torch.compile(model) if how == "compile" else model

def call():
    result = compiled(x)
    return result if isinstance(result, torch.Tensor) else result[0]

given = f"{folder}/{name}.x.safetensors"
if first_of_all:
    save_file({"x": x}, given)
else:
    x = load_file(given)["x"]
with torch.no_grad():
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    for _ in range(3):
        call()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds and len(times) < 300:
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
flat = result.double().reshape(-1)
kept = f"{folder}/{name}.y.safetensors"
if first_of_all:
    save_file({"y": flat.contiguous()}, kept)
    wrong = 0.0
elif own:  # its weights are its own
    wrong = None
else:
    wrong = float((flat - load_file(kept)["y"]).abs().max() / flat.abs().max())
print(json.dumps({"median": sorted(times)[len(times) // 2], "first": first, "wrong": wrong}))
'''


def measure(model: str, contender: str, folder: str, arguments: argparse.Namespace) -> dict:
    """One turn of one contender; {"error": text} where it failed."""
    kind, how = CONTENDERS[contender]
    pythons = {"clients": arguments.clients_python, "torch": arguments.torch_python, "own": sys.executable}
    words = [model, how, folder, str(arguments.threads), str(arguments.seconds), kind]
    script = Path(folder) / "program.py"
    script.write_text(_PROGRAM)
    command = [pythons[kind], *(["-m", "rushlight", "exec"] if kind == "clients" else []), str(script), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if kind != "torch" else ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT if kind == "own" else folder)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["nothing printed"])[-1][:200]}
    return json.loads(lines[-1])


def has_example(model: str) -> bool:
    """Whether the network is among our own examples."""
    return model in ("bert-base", "vit-base", "resnet18")


def compare(model: str, folder: str, arguments: argparse.Namespace) -> dict[str, dict]:
    """What each contender took: the median of its turns."""
    order = [name for name in ("torch eager", *CONTENDERS) if name != "own example" or has_example(model)]
    turns: dict[str, list[dict]] = {name: [] for name in dict.fromkeys(order)}
    for _ in range(arguments.rounds):
        for name in turns:
            turns[name].append(measure(model, name, folder, arguments))
    return {name: _median(each) for name, each in turns.items()}


def _median(turns: list[dict]) -> dict:
    failed = next((turn for turn in turns if "error" in turn), None)
    return failed or {**turns[-1], "median": statistics.median(turn["median"] for turn in turns), "first": turns[0]["first"]}


def line(model: str, row: dict[str, dict]) -> str:
    """A row of the table: ratios to PyTorch's eager time."""
    base = row["torch eager"].get("median")
    cells = []
    for name in CONTENDERS:
        found = row.get(name)
        if found is None:
            cells.append("-")
        elif "error" in found or not base:
            cells.append(found.get("error", "?"))
        else:
            cells.append(f"{found['median'] * 1e3:.1f} ms ({found['median'] / base:.2f})")
    return f"| {model} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", required=True)
    parser.add_argument("--clients-python", required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"| model | {' | '.join(CONTENDERS)} |\n|---|{'---|' * len(CONTENDERS)}")
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models.split(","):
            rows[model] = compare(model, folder, arguments)
            print(line(model, rows[model]), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
