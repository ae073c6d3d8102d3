"""Load weights of a GGUF file into transformers' models, without dequantizing them.

In: a module whose parameters have transformers' names, and a file. Out: the same module, whose linear layers and embeddings
hold the file's blocks. It undoes the changes of GGUF writers: names, the rows of Llama's queries and keys, Gemma's norms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.quantized.blocks import BlockTensor
from rushlight.serialization.gguf import GGUFFile, load_gguf

_WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_GEMMA3 = _LAYER | {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip
_UNUSED = ("rope_freqs.weight",)  # transformers computes these from the model's config
_HEAD, _TABLE = "lm_head.weight", "model.embed_tokens.weight"


def from_gguf(model: Module, file: GGUFFile | str | os.PathLike) -> Module:
    """Replace a model's weights by those of a GGUF file, keeping its blocks.

    Args:
        model: one of transformers' Gemma 3 (text), Llama, Qwen2 or Qwen3 models, with a head or without, with weights or on the
            meta device. Its parameters' dtypes are kept: blocks stand for numbers of that dtype.
        file: a path, or what `torch.load_gguf` gives.

    Returns the model. RuntimeError, with the model unchanged, where the file's architecture is not known, a tensor of the file
    is no parameter of the model or has other sizes, or a parameter is in none; and for buffers on the meta device.

    Example:
        >>> import rushlight as torch, tempfile, os
        >>> from rushlight.quantized import from_gguf
        >>> from rushlight.quantized.blocks import BlockTensor
        >>> path = os.path.join(tempfile.mkdtemp(), "small.gguf")
        >>> table = BlockTensor.quantize(torch.ones(4, 32), "q8_0")
        >>> torch.save_gguf({"token_embd.weight": table}, path, {"general.architecture": "qwen3"})
        >>> model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(4, 32)})
        >>> from_gguf(model, path)["embed_tokens"].weight.format
        'q8_0'
    """
    found = file if isinstance(file, GGUFFile) else load_gguf(file)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    prefix = "" if any(name.startswith("model.") for name in parameters) else "model."
    own = {prefix + name: parameter for name, parameter in parameters.items()}
    made = _weights(found, own)
    if _HEAD in own and _HEAD not in made and _TABLE in made:
        made[_HEAD] = made[_TABLE]  # a file without an output head uses the token embedding for it
    _check(model, own, made)
    for name, weight in made.items():
        owner, _, leaf = name.removeprefix(prefix).rpartition(".")
        setattr(model.get_submodule(owner), leaf, weight)
    return model


def _weights(file: GGUFFile, own: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the file's tensors as parameters, by transformers' names."""
    architecture = file.metadata.get("general.architecture")
    restore = _RESTORED.get(architecture) if isinstance(architecture, str) else None
    if restore is None:
        raise RuntimeError(f"from_gguf: the file is of the architecture {architecture!r}; known are {', '.join(_RESTORED)}")
    made: dict[str, Parameter] = {}
    for name, tensor in file.items():
        target = _target(name, _GEMMA3 if architecture == "gemma3" else _LAYER)
        if name in _UNUSED or (target == _HEAD and target not in own):
            continue
        if target not in own:
            raise RuntimeError(f"from_gguf: the file's tensor {name!r} is no parameter of the model")
        if tuple(tensor.shape) != tuple(own[target].shape):
            sizes = list(tensor.shape), list(own[target].shape)
            raise RuntimeError(f"from_gguf: the file's tensor {name!r} has the sizes {sizes[0]}, the model's has {sizes[1]}")
        made[target] = Parameter(restore(name, tensor, file.metadata).to(own[target].dtype), requires_grad=False)
    return made


def _target(name: str, layer: Mapping[str, str]) -> str | None:
    """Return transformers' name for a tensor of a file; None if there is none."""
    match name.split("."):
        case "blk", number, part, kind if part in layer and number.isdecimal():
            return f"model.layers.{number}.{layer[part]}.{kind}"
        case part, kind if part in _WHOLE:
            return f"{_WHOLE[part]}.{kind}"
    return None


def _check(model: Module, own: Mapping[str, Parameter], made: Mapping[str, Parameter]) -> None:
    missing = [name for name in own if name not in made]
    if missing:
        raise RuntimeError(f"from_gguf: the file has no weights for {', '.join(map(repr, missing[:5]))} of the model")
    empty = [name for name, buffer in model.named_buffers() if buffer.device.type == "meta"]
    if empty:
        raise RuntimeError(
            f"from_gguf: the buffer {empty[0]!r} is on the meta device, and files have no buffers: build the model with "
            "accelerate's init_empty_weights(), which leaves buffers alone"
        )


# Undo the changes that GGUF writers make


def _convert_llama(name: str, tensor: Tensor, metadata: Mapping[str, Any]) -> Tensor:
    """Reorder the rows of queries and keys: files interleave them in pairs, transformers stores the two halves one after the
    other."""
    part = name.split(".")[-2]
    if part not in ("attn_q", "attn_k"):
        return tensor
    heads = metadata.get("llama.attention.head_count")
    if part == "attn_k":
        heads = metadata.get("llama.attention.head_count_kv", heads)
    rows = len(tensor)
    if type(heads) is not int or heads < 1 or rows % (2 * heads):
        raise RuntimeError(f"from_gguf: {name!r} has {rows} rows, which are not of {heads!r} heads")
    order = tensor_from_array(np.arange(rows).reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1))
    if isinstance(tensor, BlockTensor):
        return BlockTensor(tensor.blocks[order], tensor.format, tensor.dtype)
    return tensor[order]


def _convert_gemma(name: str, tensor: Tensor, metadata: Mapping[str, Any]) -> Tensor:
    """Convert a norm weight: files store w, transformers stores w - 1."""
    return tensor - 1 if name.endswith("norm.weight") else tensor


def _as_it_is(name: str, tensor: Tensor, metadata: Mapping[str, Any]) -> Tensor:
    return tensor


_RESTORED: dict[str, Callable[[str, Tensor, Mapping[str, Any]], Tensor]] = {
    "gemma3": _convert_gemma, "llama": _convert_llama, "qwen2": _as_it_is, "qwen3": _as_it_is,
}  # fmt: skip
