"""Note 5, "Speedup Your Module with TorchDynamo": a ViT, compiled. Weights and image are random: nothing is downloaded.

With the package `transformers` the model is its ViTModel, as in the note, where its `torch` is this one; otherwise that of
examples/vit.py.
"""

import sys
import time
from pathlib import Path

import torch

torch.manual_seed(0)
try:
    if sys.modules.get("torch") is not torch:
        raise ImportError("transformers would import another torch")
    from transformers import ViTConfig, ViTModel

    model = ViTModel(ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                               image_size=64)).eval()  # fmt: skip
    inputs = {"pixel_values": torch.randn(10, 3, 64, 64)}
except ImportError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the repository, for examples/vit.py
    from examples.vit import ViTConfig, VisionTransformer

    model = VisionTransformer(ViTConfig(image_size=64, hidden_size=64, layers=2, heads=4, mlp_size=128)).eval()
    inputs = {"image": torch.randn(10, 3, 64, 64)}

device = torch.device(0 if torch.cuda.is_available() else "cpu")
print(device)
model = model.to(device)
inputs = {k: v.to(device) for k, v in inputs.items()}


def timed(name, call):
    begin = time.perf_counter()
    with torch.no_grad():
        result = call(**inputs)
    print(f"{name}: {(time.perf_counter() - begin) * 1e3:.1f} ms")
    return result if isinstance(result, torch.Tensor) else result[0]


expected = timed("eager", model)
model_ = torch.compile(model)
_ = timed("compiled, first call", model_)  # trigger JIT-compilation
actual = timed("compiled", model_)
print("same result:", torch.allclose(expected, actual, atol=1e-4), tuple(actual.shape))
