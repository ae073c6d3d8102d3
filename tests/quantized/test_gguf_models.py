"""Models of transformers with the blocks of GGUF files: as with widened weights, in Rushlight and in PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.quantized import BlockTensor, from_gguf

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "gguf_program.py"
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
WIDTH, INNER, HEADS, SHARED, VOCABULARY = 64, 96, 4, 2, 50
HEAD = {"llama": 16, "qwen2": 16, "qwen3": 128, "gemma3": 32}  # transformers takes Qwen3's from no file


def tensors(architecture: str) -> dict[str, torch.Tensor]:
    """Random weights of two layers."""
    generator, head = np.random.default_rng(0), HEAD[architecture]

    def blocks(rows: int, width: int) -> BlockTensor:
        return BlockTensor.quantize(torch.from_numpy(generator.normal(size=(rows, width)).astype(np.float32) * 0.3), "q8_0")

    def plain(width: int) -> torch.Tensor:
        return torch.from_numpy(1 + generator.normal(size=width).astype(np.float32) * 0.1)

    made = {"token_embd.weight": blocks(VOCABULARY, WIDTH), "output_norm.weight": plain(WIDTH)}
    if architecture != "gemma3":
        made["output.weight"] = blocks(VOCABULARY, WIDTH)
    for layer in range(2):
        sizes = {
            "attn_q": (HEADS * head, WIDTH), "attn_k": (SHARED * head, WIDTH), "attn_v": (SHARED * head, WIDTH),
            "attn_output": (WIDTH, HEADS * head), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
        }  # fmt: skip
        made |= {f"blk.{layer}.{name}.weight": blocks(*each) for name, each in sizes.items()}
        norms = {"attn_norm": WIDTH, "ffn_norm": WIDTH}
        if architecture == "gemma3":
            norms |= {"post_attention_norm": WIDTH, "post_ffw_norm": WIDTH}
        if architecture in ("gemma3", "qwen3"):
            norms |= {"attn_q_norm": head, "attn_k_norm": head}
        made |= {f"blk.{layer}.{name}.weight": plain(width) for name, width in norms.items()}
        if architecture == "qwen2":
            made |= {f"blk.{layer}.{name}.bias": plain(sizes[name][0]) - 1 for name in ("attn_q", "attn_k", "attn_v")}
    return made


def write(folder: Path, architecture: str) -> None:
    settings = {
        "context_length": 64, "embedding_length": WIDTH, "block_count": 2, "feed_forward_length": INNER, "attention.head_count": HEADS,
        "attention.head_count_kv": SHARED, "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e4, "vocab_size": VOCABULARY,
        "attention.key_length": HEAD[architecture], "rope.dimension_count": HEAD[architecture], "attention.sliding_window": 4,
    }  # fmt: skip
    metadata = {"general.architecture": architecture, **{f"{architecture}.{name}": value for name, value in settings.items()}}
    torch.save_gguf(tensors(architecture), folder / f"{architecture}.gguf", metadata)


def logits(folder: Path, *command: str) -> np.lib.npyio.NpzFile:
    done = subprocess.run([*command, str(PROGRAM), str(folder), *ARCHITECTURES], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(next(folder.glob("*.npz")))


def prepared(folder: Path) -> Path:
    for package in ("transformers", "accelerate", "gguf"):
        pytest.importorskip(package)
    for architecture in ARCHITECTURES:
        write(folder, architecture)
    return folder


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> np.lib.npyio.NpzFile:
    return logits(prepared(tmp_path_factory.mktemp("rushlight")), sys.executable, "-m", "rushlight", "exec")


def distance(one: np.ndarray, other: np.ndarray) -> float:
    assert one.shape == other.shape
    return float(np.abs(one - other).max() / np.abs(other).max())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_blocks_are_as_widened_weights(found, name):
    for kind in ("loaded", "empty", "eager"):
        assert distance(found[f"{name} {kind}"], found[name]) < 0.1  # rows are rounded to bytes
    assert found[f"{name} made"].shape == (1, 12)


def test_compiled(found):
    assert distance(found["compiled"], found[ARCHITECTURES[-1]]) < 0.1


@pytest.mark.oracle
def test_as_in_pytorch(found, tmp_path):
    pytest.importorskip("torch")
    expected = logits(prepared(tmp_path), sys.executable)
    for name in ARCHITECTURES:
        assert distance(found[name], expected[name]) < 1e-4


# Without transformers


def small(**more: nn.Module) -> nn.ModuleDict:
    """A model with a table of tokens, and other parts."""
    return nn.ModuleDict(
        {"model": nn.ModuleDict({"embed_tokens": nn.Embedding(4, 32), "norm": nn.LayerNorm(32, bias=False)}), **more}
    )


TABLE, NORM = BlockTensor.quantize(torch.ones(4, 32), "q8_0"), torch.full((32,), 3.0)


def given(model: nn.Module, folder: Path, architecture: object = "qwen3", more: dict | None = None, **tensors: torch.Tensor):
    held = {"token_embd.weight": TABLE, "output_norm.weight": NORM, **tensors}
    held = {name: tensor for name, tensor in held.items() if tensor is not None}
    torch.save_gguf(held, folder / "file.gguf", {"general.architecture": architecture, **(more or {})})
    return from_gguf(model, torch.load_gguf(folder / "file.gguf"))


def test_parameters_are_replaced(tmp_path):
    model = given(small(lm_head=nn.Linear(32, 4, bias=False)), tmp_path)
    table = model["model"]["embed_tokens"].weight
    assert isinstance(table, BlockTensor) and not table.requires_grad and model["lm_head"].weight is table
    assert torch.equal(model["model"]["norm"].weight, NORM)
    norm = given(small(), tmp_path, "gemma3")["model"]["norm"].weight
    assert torch.equal(norm, NORM - 1)
    narrow = given(small().to(torch.bfloat16), tmp_path)["model"]
    assert narrow["embed_tokens"].weight.dtype is narrow["norm"].weight.dtype is torch.bfloat16
    assert isinstance(narrow["embed_tokens"].weight, BlockTensor)


def test_a_model_without_a_head(tmp_path):
    model = given(small()["model"], tmp_path, **{"output.weight": TABLE})
    assert isinstance(model["embed_tokens"].weight, BlockTensor)


def test_rows_of_queries(tmp_path):
    q = nn.Linear(32, 8, bias=False)
    model = small()
    model["model"]["layers"] = nn.ModuleList([nn.ModuleDict({"self_attn": nn.ModuleDict({"q_proj": q})})])
    rows = torch.arange(8.0)[:, None].expand(8, 32)
    blocks = {"blk.0.attn_q.weight": BlockTensor.quantize(rows, "q8_0"), "rope_freqs.weight": torch.ones(2)}
    given(model, tmp_path, "llama", {"llama.attention.head_count": 2}, **blocks)
    assert q.weight.dequantize()[:, 0].round().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    for heads in (3, 0, "2"):
        with pytest.raises(RuntimeError, match=f"'blk.0.attn_q.weight' has 8 rows, which are not of {heads!r} heads"):
            given(model, tmp_path, "llama", {"llama.attention.head_count": heads}, **blocks)


@pytest.mark.parametrize(
    ("architecture", "tensors", "said"),
    [
        ("mamba", {}, "of the architecture 'mamba'; known are gemma3, llama, qwen2, qwen3"), (3, {}, "of the architecture 3;"),
        ("qwen3", {"output_norm.weight": None}, "has no weights for 'model.norm.weight'"),
        ("qwen3", {"blk.0.attn_q.weight": TABLE}, "tensor 'blk.0.attn_q.weight' is no parameter of the model"),
        ("qwen3", {"other": TABLE}, "tensor 'other' is no parameter"), ("qwen3", {"blk.x.y.z": TABLE}, "tensor 'blk.x.y.z' is no"),
        ("qwen3", {"token_embd.weight": TABLE[:2]}, r"has the sizes \[2, 32\], the model's has \[4, 32\]"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit(tmp_path, architecture, tensors, said):
    model = small()
    before = dict(model.named_parameters())
    with pytest.raises(RuntimeError, match=said):
        given(model, tmp_path, architecture, **tensors)
    assert all(each is before[name] for name, each in model.named_parameters())


def test_buffers_without_values(tmp_path):
    model = small()
    model.register_buffer("angles", torch.ones(2, device="meta"), persistent=False)
    with pytest.raises(RuntimeError, match="buffer 'angles' is on the meta device.*init_empty_weights"):
        given(model, tmp_path)
