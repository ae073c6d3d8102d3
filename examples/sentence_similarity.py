"""Find the sentences of a text that mean most nearly what a query says, with MiniLM-L6, eager and compiled.

    python -m examples.sentence_similarity
    python -m examples.sentence_similarity --sentences my.txt --query "someone is hungry" --query "rain"
    python -m examples.sentence_similarity --quantize     and what is left of the vectors with quantized weights

A sentence file has one sentence per line; lines that start with `#` are comments. Set RUSHLIGHT_DUMP=DIR to get every
stage of the compiled model as files.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tqdm import tqdm

import rushlight as torch
from examples import timing
from examples.minilm import SentenceEncoder, batches, load_encoder, load_tokenizer, model_folder
from rushlight.ao import quantization

Encode = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

SENTENCES = Path(__file__).parent / "data" / "alice.txt"
QUERIES = (
    "she is shrinking",
    "swimming in salt water",
    "talking about cats to a mouse",
    "who gets the award?",
    "doubting one's own identity",
)
NEIGHBOURS = 3
TOLERANCE = 1e-4  # of a vector of length 1, in float32
QUICK_SENTENCES = 40


def read_sentences(path: Path) -> list[str]:
    """The sentences of a file. Raises ValueError where there is none."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    sentences = [line for line in lines if line and not line.startswith("#")]
    if not sentences:
        raise ValueError(f"{path} holds no sentence; expected one sentence per line")
    return sentences


def embed(encode: Encode, tokenizer: Tokenizer, sentences: list[str], label: str = "") -> np.ndarray:
    """One unit vector per sentence, (sentences, hidden size), float32; with a label, a progress bar."""
    rows: list[np.ndarray | None] = [None] * len(sentences)
    with torch.inference_mode(), tqdm(total=len(sentences), desc=label, unit="sentence", disable=not label) as bar:
        for batch in batches(tokenizer, sentences):
            vectors = encode(batch.input_ids, batch.attention_mask).numpy()
            for place, vector in zip(batch.places, vectors, strict=False):
                rows[place] = vector
            bar.update(len(batch.places))
    return np.stack(rows)


def print_neighbours(query: str, vector: np.ndarray, embeddings: np.ndarray, sentences: list[str]) -> None:
    """The sentences nearest to one query by cosine similarity."""
    similarity = torch.matmul(torch.from_numpy(embeddings), torch.from_numpy(vector))
    values, indices = torch.topk(similarity, min(NEIGHBOURS, len(sentences)))
    print(f"\n{query}")
    for value, index in zip(values.tolist(), indices.tolist(), strict=True):
        sentence = sentences[index]
        print(f"  {value:.3f}  {sentence if len(sentence) <= 104 else sentence[:101] + '...'}")


def measured(folder: Path, eager: SentenceEncoder, compiled: Encode, quick: bool) -> list[tuple[str, str]]:
    """Rows of the table: what was measured, and the figure."""
    inputs = timing.one_sentence()
    with torch.inference_mode():
        calls = {"eager": lambda: eager(*inputs), "compiled": lambda: compiled(*inputs)}
        costs = timing.milliseconds(calls, rounds=2 if quick else 6)
    empty, warm = timing.first_calls(folder)
    return [
        ("eager", f"{costs['eager']:.2f} ms"),
        ("compiled", f"{costs['compiled']:.2f} ms ({costs['compiled'] / costs['eager']:.2f} of eager)"),
        ("first compiled call, empty cache", f"{empty:.2f} s"),
        ("first compiled call, warm cache", f"{warm:.2f} s"),
        ("import rushlight", f"{timing.import_seconds(1 if quick else 5):.2f} s"),
    ]


def quantized(eager: SentenceEncoder, tokenizer: Tokenizer, sentences: list[str], exact: np.ndarray) -> list[tuple[str, str]]:
    """For each form of the weights, how near the vectors stay, and how often a sentence keeps its nearest neighbour."""
    forms = {
        "int8 weights": quantization.Int8WeightOnlyConfig(),
        "int8 weights and activations": quantization.Int8DynamicActivationInt8WeightConfig(),
        "int4 weights, groups of 128": quantization.Int4WeightOnlyConfig(group_size=128),
        "q4_0 blocks": quantization.BlockWeightOnlyConfig("q4_0"),
    }
    rows = []
    for name, form in forms.items():
        model = copy.deepcopy(eager)
        quantization.quantize_(model, form)
        vectors = embed(torch.compile(model), tokenizer, sentences)
        nearest = [np.argmax(each @ each.T - 2 * np.eye(len(each)), axis=1) for each in (vectors, exact)]
        kept, cosine = np.mean(nearest[0] == nearest[1]), np.mean((vectors * exact).sum(1))
        rows.append((name, f"mean cosine {cosine:.4f}, nearest sentence kept {kept:.0%}"))
    return rows


def print_table(title: str, rows: list[tuple[str, str]]) -> None:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    for name, figure in rows:
        print(f"  {name:<{width}}  {figure}")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.sentence_similarity", description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="a text file with one sentence per line")
    parser.add_argument("--query", action="append", help="what to look for; may be given several times")
    parser.add_argument("--model", type=Path, help="a folder with MiniLM's weights, instead of the installed package")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK_SENTENCES} sentences and fewer timings")
    parser.add_argument("--quantize", action="store_true", help="compare the vectors of quantized weights")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    try:
        sentences = read_sentences(options.sentences)[: QUICK_SENTENCES if options.quick else None]
        folder = options.model or model_folder()
        tokenizer, eager = load_tokenizer(folder), load_encoder(folder)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    compiled = torch.compile(eager)
    by_eager = embed(eager, tokenizer, sentences, "eager   ")
    start = time.perf_counter()
    embeddings = embed(compiled, tokenizer, sentences, "compiled")
    seconds = time.perf_counter() - start

    queries = options.query or QUERIES
    for query, vector in zip(queries, embed(compiled, tokenizer, list(queries)), strict=True):
        print_neighbours(query, vector, embeddings, sentences)

    rows = measured(folder, eager, compiled, options.quick)
    rows.append((f"{len(sentences)} sentences, compiling included", f"{seconds:.2f} s"))
    difference = float(np.abs(embeddings - by_eager).max())
    rows.append(("largest difference, eager to compiled", f"{difference:.1e}"))
    print_table(f"MiniLM-L6, batch 1, {timing.TOKENS} tokens, {torch.get_num_threads()} threads", rows)
    if options.quantize:
        print_table("Quantized weights, against float32", quantized(eager, tokenizer, sentences, by_eager))
    if not difference < TOLERANCE:
        print(f"eager and compiled embeddings differ by {difference:.1e}, over {TOLERANCE:.0e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
