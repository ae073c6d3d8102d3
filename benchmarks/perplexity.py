"""How well Gemma 3 270M predicts a text, beside llama.cpp: `python -m benchmarks.perplexity --llama PYTHON`.

In: the same packages and options as benchmarks/language.py, and a text, by default examples/data/alice.txt. It is cut into
windows of 512 tokens, each of which begins with the token for the beginning of a text; every other token is predicted from
those before it in its window. Out: the perplexity (e to the mean negative log likelihood of a token) of the model compiled,
which rounds activations to bytes, of one whose weights were made floats, which does not, and of llama.cpp; how far likelihoods
are apart.

llama.cpp's server names the likeliest tokens only: it is asked for the 2000 likeliest after each prefix, and for more where the
text's token is not among these, which takes a second a token.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import rushlight as torch
from benchmarks.language import run_in
from benchmarks.machine import processor
from examples import gemma
from examples.generation import Session
from examples.gguf_tokens import Tokenizer
from rushlight.quantized.blocks import BlockTensor

WINDOW, PIECE = 512, 64  # tokens of a window, and those that are read at once: their logits are 67 MB
TEXT = Path(__file__).parents[1] / "examples" / "data" / "alice.txt"

_LLAMA = """
import json, sys, xllamacpp
path, threads, windows = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.warmup = path, 1024, 1, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
asked = {"n_predict": 1, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "cache_prompt": True}
def likelihood(prefix, token):
    for count in (2000, 300000):
        made = server.handle_completions({**asked, "prompt": prefix, "n_probs": count})
        found = made["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        for each in found:
            if each["id"] == token:
                return each["logprob"]
    raise RuntimeError(f"no probability for the token {token}")
print(json.dumps([[likelihood(window[:place], window[place]) for place in range(1, len(window))] for window in windows]))
"""


def windows_of(tokens: list[int], begin: int, count: int) -> list[list[int]]:
    """The first `count` windows of a text, without a rest. ValueError for a text that is too short."""
    size = WINDOW - 1
    made = [[begin, *tokens[place * size : (place + 1) * size]] for place in range(min(count, len(tokens) // size))]
    if not made:
        raise ValueError(f"the text has {len(tokens)} tokens; expected at least {size}")
    return made


def log_likelihoods(session: Session, window: list[int]) -> Iterator[float]:
    """Of each token but the first, given those before it."""
    session.rewind()
    for begin in range(0, len(window) - 1, PIECE):
        targets = window[begin + 1 : begin + 1 + PIECE]
        logits = session.feed(torch.tensor([window[begin : begin + len(targets)]]), last=False)[0]
        chosen = logits.gather(1, torch.tensor(targets)[:, None])[:, 0]
        yield from (chosen - logits.logsumexp(1)).tolist()


def perplexity(likelihoods: list[list[float]]) -> float:
    """e to the mean negative log likelihood of a token."""
    found = [each for window in likelihoods for each in window]
    return math.exp(-sum(found) / len(found))


def distances(one: list[list[float]], other: list[list[float]]) -> tuple[float, float]:
    """The mean and the largest absolute difference."""
    found = [abs(a - b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)]
    return sum(found) / len(found), max(found)


def widened(model: gemma.Gemma) -> gemma.Gemma:
    """The model with floats in the place of blocks."""
    state = model.state_dict()
    floats = {name: each.dequantize() if isinstance(each, BlockTensor) else each for name, each in state.items()}
    model.load_state_dict(floats, assign=True)
    return model.requires_grad_(False)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=4, help="how many windows of the text are used")
    parser.add_argument("--llama", metavar="PYTHON", help="a Python that has xllamacpp; without it, only Rushlight is measured")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file of Gemma 3; by default that of the package")
    parser.add_argument("--text", metavar="FILE", type=Path, default=TEXT)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    path = options.model or gemma.installed_model()
    model, metadata = gemma.load(path)
    tokenizer = Tokenizer(metadata)
    lines = options.text.read_text(encoding="utf-8").splitlines()
    text = " ".join(line for line in lines if not line.startswith("#"))
    windows = windows_of(tokenizer.encode(text, begin=False), tokenizer.begin, options.windows)
    found = {}
    for name, each in (("floats", widened(gemma.load(path)[0])), ("blocks", model)):
        session = Session(each, WINDOW)
        found[name] = [list(log_likelihoods(session, window)) for window in windows]
    if options.llama:
        found["llama.cpp"] = run_in(options.llama, _LLAMA, path, options.threads, windows)
    print(f"{processor()}; {options.text.name}, {len(windows)} windows of {WINDOW} tokens")
    print(f"{'':12} {'perplexity':>12} {'mean distance from eager':>26} {'largest':>10}")
    for name, each in found.items():
        mean, largest = distances(each, found["floats"])
        print(f"{name:12} {perplexity(each):12.3f} {mean:26.4f} {largest:10.3f}")


if __name__ == "__main__":
    main()
