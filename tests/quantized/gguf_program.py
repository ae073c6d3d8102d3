"""A program for PyTorch that loads GGUF files by transformers: `gguf_program.py FOLDER NAME...` writes the logits to FOLDER/logits.npz.

Where `torch` is Rushlight, it also gives models the files' blocks.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from accelerate import init_empty_weights
from transformers import AutoConfig, AutoModelForCausalLM

folder, names = Path(sys.argv[1]), sys.argv[2:]
ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
found = {}
torch.set_grad_enabled(False)
for name in names:
    file = f"{name}.gguf"
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    found[name] = model(ids).logits.numpy()
    if not hasattr(torch, "load_gguf"):
        continue
    from rushlight.quantized import BlockTensor, from_gguf

    config = AutoConfig.from_pretrained(folder, gguf_file=file)
    with init_empty_weights():
        empty = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for kind, made in (("loaded", model), ("empty", empty.eval())):
        assert from_gguf(made, folder / file) is made
        kept = [each for each in made.parameters() if isinstance(each, BlockTensor)]
        assert len(kept) == 15 + (name != "gemma3"), len(kept)
        found[f"{name} {kind}"] = made(ids).logits.numpy()
    assert (made.lm_head.weight is made.model.embed_tokens.weight) == (name == "gemma3")
    found[f"{name} made"] = made.generate(ids, max_new_tokens=4, do_sample=False).numpy()
    model.set_attn_implementation("eager")
    found[f"{name} eager"] = model(ids).logits.numpy()
if hasattr(torch, "load_gguf"):
    found["compiled"] = torch.compile(model)(ids).logits.numpy()
np.savez(folder / ("blocks.npz" if hasattr(torch, "load_gguf") else "logits.npz"), **found)
