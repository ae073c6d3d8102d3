"""The language model of examples/gemma.py: by tokens or at once, compiled, from a file, and in PyTorch."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

import rushlight as torch
from examples import gemma
from examples.generation import Session
from examples.gguf_tokens import Tokenizer
from examples.sampling import Sampler, Sampling
from rushlight.quantized.blocks import BlockTensor
from tests.examples.small_gemma import CONFIG, model

TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]])


def all_logits(made: gemma.Gemma, **options) -> torch.Tensor:
    return Session(made, 20, **options).feed(TOKENS, last=False)


def close(found: torch.Tensor, expected: torch.Tensor, part: float = 1e-4) -> None:
    assert float((found - expected).abs().max() / expected.abs().max()) < part


def test_by_tokens_as_at_once():
    made = model()
    expected = all_logits(made, compiled=False)
    close(all_logits(made), expected)
    for compiled in (False, True):
        session = Session(made, 20, compiled=compiled)
        close(session.feed(TOKENS[:, :5])[:, 0], expected[:, 4])
        for place in range(5, TOKENS.shape[1]):
            close(session.feed(TOKENS[:, place : place + 1])[:, 0], expected[:, place])


@pytest.fixture
def file(tmp_path) -> str:
    tensors = {}
    made = model()
    names = {
        gemma.own_name(f"blk.{layer}.{name}.weight"): f"blk.{layer}.{name}.weight" for layer in range(3) for name in gemma.NAMES
    }
    for own, tensor in made.state_dict().items():
        name = names.get(own, {"tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}.get(own))
        if name is not None:
            tensors[name] = BlockTensor.quantize(tensor, "q8_0") if tensor.dim() == 2 else tensor
    settings = {
        "block_count": 3, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
        "attention.head_count_kv": 2, "attention.key_length": 16, "context_length": 40, "attention.sliding_window": 5,
        "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e6,
    }  # fmt: skip
    metadata = {"general.architecture": "gemma3", **{f"gemma3.{name}": value for name, value in settings.items()}}
    torch.save_gguf(tensors, tmp_path / "model.gguf", metadata)
    return str(tmp_path / "model.gguf")


def test_from_a_file(file):
    made, _ = gemma.load(file)
    assert made.config.layers == 3 and isinstance(made.layers[0].gate.weight, BlockTensor)
    assert made.head.weight is made.tokens.weight
    dense = gemma.Gemma(made.config)
    dense.load_state_dict(
        {name: each.dequantize() if isinstance(each, BlockTensor) else each for name, each in made.state_dict().items()}
    )
    expected = all_logits(dense.eval(), compiled=False)
    eager = all_logits(made, compiled=False)
    close(eager, expected, 0.05)  # rows are rounded to bytes
    close(all_logits(made), eager, 0.01)


@pytest.mark.oracle
def test_as_in_pytorch():
    pytorch = pytest.importorskip("torch")
    source = (
        Path(gemma.__file__)
        .read_text()
        .replace("import rushlight as torch", "import torch")
        .replace("from rushlight", "from torch")
    )
    theirs = types.ModuleType("gemma_in_pytorch")
    sys.modules[theirs.__name__] = theirs
    exec(compile(source, gemma.__file__, "exec"), theirs.__dict__)
    made, other = model(), theirs.Gemma(CONFIG)
    other.load_state_dict({name: pytorch.from_numpy(tensor.numpy()) for name, tensor in made.state_dict().items()})
    caches = [[pytorch.zeros(1, 20, *made.cache_sizes) for _ in made.windows] for _ in range(2)]
    tokens = pytorch.from_numpy(TOKENS.numpy())
    with pytorch.no_grad():
        expected = other.eval()(tokens, pytorch.arange(12), None, pytorch.tensor([0]), *caches, last=False)
    close(all_logits(made, compiled=False), torch.from_numpy(expected.numpy()))


VOCABULARY = {
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_space_prefix": False,
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "a", "b", "▁", "ab", "▁ab", "aba", "<turn>"],
    "tokenizer.ggml.scores": [0.0, 0.0, 0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -1.0, -2.0, -1.5, 0.0],
    "tokenizer.ggml.token_type": [2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 4],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("ab", [8]), (" ab", [9]), ("aba", [10]), (" aba", [7, 10]), ("é", [3, 4]), ("a<turn>b", [5, 11, 6]), ("", []),
        ("bab ab", [6, 8, 9]),
    ],
)  # fmt: skip
def test_tokens(text, numbers):
    tokenizer = Tokenizer(VOCABULARY)
    assert tokenizer.encode(text) == [1, *numbers]
    assert tokenizer.decode([1, *numbers]) == text


def test_tokens_that_are_none():
    with pytest.raises(IndexError, match="there is no token 12"):
        Tokenizer(VOCABULARY).decode([12])
    with pytest.raises(ValueError, match="expected a vocabulary of kind 'llama', got 'gpt2'"):
        Tokenizer({"tokenizer.ggml.model": "gpt2"})


LOGITS = torch.tensor([1.0, 3.0, 2.0, -1.0, 2.5])


def drawn(count: int = 400, text: tuple[int, ...] = (), **settings) -> list[int]:
    sampler = Sampler(Sampling(**settings))
    return [sampler(LOGITS, text) for _ in range(count)]


def test_the_likeliest_token():
    assert set(drawn(3)) == {1}
    assert set(drawn(3, text=(1, 0), penalty=3.0)) == {4}
    assert set(drawn(3, text=(0, 1, 2, 4), penalty=1000.0)) == {1}  # all positive ones shrink; the negative one stays


def test_tokens_are_drawn_by_their_probabilities():
    found, expected = drawn(4000, temperature=1.0), LOGITS.softmax(0)
    shares = torch.bincount(torch.tensor(found), minlength=5) / len(found)
    assert float((shares - expected).abs().max()) < 0.03
    assert drawn(50, temperature=1.0, seed=3) == drawn(50, temperature=1.0, seed=3) != drawn(50, temperature=1.0, seed=4)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"top_k": 2}, {1, 4}), ({"top_k": 1}, {1}), ({"top_p": 0.35}, {1}), ({"top_p": 0.6}, {1, 4}), ({"min_p": 0.3}, {1, 2, 4}),
        ({"min_p": 0.9}, {1}), ({"top_k": 3, "min_p": 0.6}, {1, 4}), ({"top_p": 1e-9}, {1}),
    ],
)  # fmt: skip
def test_what_settings_leave(settings, left):
    assert set(drawn(temperature=1.5, **settings)) == left


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": -1.0}, "temperature must be at least 0 and finite, got -1.0"), ({"top_k": -1}, "top_k"), ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"), ({"min_p": 1.0}, "min_p"), ({"penalty": 0.0}, "penalty must be above 0"),
        ({"temperature": float("nan")}, "temperature"),
    ],
)  # fmt: skip
def test_settings_out_of_range(settings, said):
    with pytest.raises(ValueError, match=said):
        Sampling(**settings)
