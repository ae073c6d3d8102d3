"""Image classifiers as workloads, with random weights: ResNet-18 and ViT-Base.

PyTorch and Rushlight run the very files examples/resnet.py and examples/vit.py; this module spells the same models in
NumPy's vocabulary.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

import numpy as np

from benchmarks.encoder import linear
from benchmarks.onnx_vision import onnx_resnet, onnx_vit
from benchmarks.workload import Arrays, Workload, error_function

PIXELS = 224
CLASSES = 1000
BATCH_NORM_EPSILON = 1e-5
STAGES = (64, 128, 256, 512)
LAYER_NORM_EPSILON = 1e-6
PATCH = 16
TITLE = f"batch 1, {PIXELS} px"


class VisionWorkload(Workload):
    """An image (1, 3, PIXELS, PIXELS) to scores (1, CLASSES)."""

    def inputs(self) -> Arrays:
        image = np.random.default_rng(0).standard_normal((1, 3, PIXELS, PIXELS))
        return {"image": image.astype(np.float32)}

    def load_state(self, torch: ModuleType, model: object, weights: Arrays) -> Callable:
        """`model` with the weights, for inference."""
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        return model.eval()


class ResNetWorkload(VisionWorkload):
    def __init__(self, name: str, title: str) -> None:
        super().__init__(name, title, tolerance=1e-4)

    def weights(self) -> Arrays:
        return resnet_weights()

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        return self.load_state(torch, importlib.import_module("examples.resnet").ResNet(CLASSES), weights)

    def onnx_model(self, weights: Arrays) -> bytes:
        return onnx_resnet(weights, (1, 3, PIXELS, PIXELS), CLASSES, BATCH_NORM_EPSILON)

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        weights = {name: xp.asarray(array) for name, array in weights.items()}
        return lambda image: resnet(xp, weights, image)


class ViTWorkload(VisionWorkload):
    def __init__(self, name: str, title: str, layers: int, hidden: int, heads: int) -> None:
        super().__init__(name, title, tolerance=1e-4)
        self.layers, self.hidden, self.heads = layers, hidden, heads

    def weights(self) -> Arrays:
        return vit_weights(self.layers, self.hidden)

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        vit = importlib.import_module("examples.vit")
        config = vit.ViTConfig(
            image_size=PIXELS, patch_size=PATCH, hidden_size=self.hidden, layers=self.layers, heads=self.heads,
            mlp_size=4 * self.hidden, classes=CLASSES, layer_norm_eps=LAYER_NORM_EPSILON,
        )  # fmt: skip
        return self.load_state(torch, vit.VisionTransformer(config), weights)

    def onnx_model(self, weights: Arrays) -> bytes:
        return onnx_vit(weights, self.layers, self.heads, (1, 3, PIXELS, PIXELS), PATCH, LAYER_NORM_EPSILON)

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        weights = {name: xp.asarray(array) for name, array in weights.items()}
        return lambda image: vision_transformer(xp, weights, image, self.layers, self.heads)


# ---- ResNet --------------------------------------------------------------------------------------------------------


def convolve(xp: ModuleType, image: np.ndarray, weight: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """A convolution; in NumPy one kernel tap at a time."""
    if xp is not np:
        import jax

        pads = [(padding, padding)] * 2
        return jax.lax.conv_general_dilated(image, weight, (stride, stride), pads)
    size = weight.shape[2]
    image = np.pad(image, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    outputs = (image.shape[2] - size) // stride + 1
    total = 0.0
    for y in range(size):
        for x in range(size):
            rows, columns = (slice(start, start + (outputs - 1) * stride + 1, stride) for start in (y, x))
            part = image[0, :, rows, columns].reshape(image.shape[1], -1)
            total = total + weight[:, :, y, x] @ part
    return total.reshape(1, weight.shape[0], outputs, outputs)


def batch_norm(xp: ModuleType, weights: Arrays, name: str, x: np.ndarray) -> np.ndarray:
    scale = weights[f"{name}.weight"] / xp.sqrt(weights[f"{name}.running_var"] + BATCH_NORM_EPSILON)
    shift = weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return x * scale[:, None, None] + shift[:, None, None]


def max_pool(xp: ModuleType, x: np.ndarray) -> np.ndarray:
    """Windows of 3 x 3, stride 2, padding 1."""
    x = xp.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    size = (x.shape[2] - 3) // 2 + 1
    taps = [x[:, :, y : y + 2 * size - 1 : 2, z : z + 2 * size - 1 : 2] for y in range(3) for z in range(3)]
    return xp.max(xp.stack(taps), 0)


def resnet(xp: ModuleType, weights: Arrays, image: np.ndarray) -> np.ndarray:
    x = convolve(xp, image, weights["conv1.weight"], 2, 3)
    x = max_pool(xp, xp.maximum(batch_norm(xp, weights, "bn1", x), 0))
    for block, stride in resnet_blocks():
        identity = x
        if f"{block}.downsample.0.weight" in weights:
            identity = convolve(xp, x, weights[f"{block}.downsample.0.weight"], stride, 0)
            identity = batch_norm(xp, weights, f"{block}.downsample.1", identity)
        x = convolve(xp, x, weights[f"{block}.conv1.weight"], stride, 1)
        x = xp.maximum(batch_norm(xp, weights, f"{block}.bn1", x), 0)
        x = batch_norm(xp, weights, f"{block}.bn2", convolve(xp, x, weights[f"{block}.conv2.weight"], 1, 1))
        x = xp.maximum(x + identity, 0)
    return linear(weights, "fc", x.mean((2, 3)))


def resnet_blocks() -> list[tuple[str, int]]:
    """The name and the stride of each block."""
    return [
        (f"layer{stage + 1}.{index}", 2 if stage and not index else 1)
        for stage in range(len(STAGES))
        for index in range(2)
    ]


def resnet_weights() -> Arrays:
    """A state dict with torchvision's names; the spread keeps values near 1 through all layers."""
    generator = np.random.default_rng(0)
    weights: Arrays = {}

    def conv(name: str, outputs: int, channels: int, size: int) -> None:
        spread = (2.0 / (channels * size * size)) ** 0.5
        values = generator.standard_normal((outputs, channels, size, size)) * spread
        weights[f"{name}.weight"] = values.astype(np.float32)

    def norm(name: str, channels: int, scale: float) -> None:
        weights[f"{name}.weight"] = (scale * generator.uniform(0.8, 1.2, channels)).astype(np.float32)
        weights[f"{name}.bias"] = generator.uniform(-0.1, 0.1, channels).astype(np.float32)
        weights[f"{name}.running_mean"] = generator.uniform(-0.1, 0.1, channels).astype(np.float32)
        weights[f"{name}.running_var"] = generator.uniform(0.8, 1.2, channels).astype(np.float32)
        weights[f"{name}.num_batches_tracked"] = np.array(1, np.int64)

    conv("conv1", STAGES[0], 3, 7)
    norm("bn1", STAGES[0], 1.0)
    channels = STAGES[0]
    for block, stride in resnet_blocks():
        outputs = STAGES[int(block[5]) - 1]
        conv(f"{block}.conv1", outputs, channels, 3)
        norm(f"{block}.bn1", outputs, 1.0)
        conv(f"{block}.conv2", outputs, outputs, 3)
        norm(f"{block}.bn2", outputs, 0.5)
        if stride != 1:
            conv(f"{block}.downsample.0", outputs, channels, 1)
            norm(f"{block}.downsample.1", outputs, 0.7)
        channels = outputs
    weights["fc.weight"] = (generator.standard_normal((CLASSES, channels)) * 0.02).astype(np.float32)
    weights["fc.bias"] = np.zeros(CLASSES, np.float32)
    return weights


# ---- vision transformer --------------------------------------------------------------------------------------------


def normalize(xp: ModuleType, weights: Arrays, name: str, x: np.ndarray) -> np.ndarray:
    centered = x - x.mean(-1, keepdims=True)
    scale = xp.sqrt((centered * centered).mean(-1, keepdims=True) + LAYER_NORM_EPSILON)
    return centered / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def attend(xp: ModuleType, weights: Arrays, name: str, x: np.ndarray, heads: int) -> np.ndarray:
    batch, tokens, size = x.shape
    parts = linear(weights, f"{name}.qkv", x).reshape(batch, tokens, 3, heads, size // heads).transpose(2, 0, 3, 1, 4)
    scores = parts[0] @ parts[1].transpose(0, 1, 3, 2) / (size // heads) ** 0.5
    powers = xp.exp(scores - scores.max(-1, keepdims=True))
    context = powers / powers.sum(-1, keepdims=True) @ parts[2]
    return linear(weights, f"{name}.proj", context.transpose(0, 2, 1, 3).reshape(batch, tokens, size))


def vision_transformer(xp: ModuleType, weights: Arrays, image: np.ndarray, layers: int, heads: int) -> np.ndarray:
    erf = error_function(xp)
    side = PIXELS // PATCH
    patches = image.reshape(1, 3, side, PATCH, side, PATCH).transpose(0, 2, 4, 1, 3, 5).reshape(1, side * side, -1)
    kernel = weights["patch_embed.weight"].reshape(weights["patch_embed.weight"].shape[0], -1)
    x = patches @ kernel.T + weights["patch_embed.bias"]
    x = xp.concatenate([weights["cls_token"], x], 1) + weights["pos_embed"]
    for index in range(layers):
        name = f"blocks.{index}"
        x = x + attend(xp, weights, name, normalize(xp, weights, f"{name}.norm1", x), heads)
        wide = linear(weights, f"{name}.fc1", normalize(xp, weights, f"{name}.norm2", x))
        x = x + linear(weights, f"{name}.fc2", wide * 0.5 * (1.0 + erf(wide * 0.5**0.5)))
    return linear(weights, "head", normalize(xp, weights, "norm", x)[:, 0])


def vit_weights(layers: int, hidden: int) -> Arrays:
    """A state dict with the names of examples/vit.py."""
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (generator.standard_normal(shape) * 0.02).astype(np.float32)

    weights = {
        "cls_token": normal(1, 1, hidden),
        "pos_embed": normal(1, (PIXELS // PATCH) ** 2 + 1, hidden),
        "patch_embed.weight": normal(hidden, 3, PATCH, PATCH),
        "patch_embed.bias": normal(hidden),
    }

    def dense(name: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = normal(outputs, inputs), normal(outputs)

    def norm(name: str) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = np.ones(hidden, np.float32), normal(hidden)

    for index in range(layers):
        name = f"blocks.{index}"
        norm(f"{name}.norm1")
        dense(f"{name}.qkv", 3 * hidden, hidden)
        dense(f"{name}.proj", hidden, hidden)
        norm(f"{name}.norm2")
        dense(f"{name}.fc1", 4 * hidden, hidden)
        dense(f"{name}.fc2", hidden, 4 * hidden)
    norm("norm")
    dense("head", CLASSES, hidden)
    return weights


VISION_WORKLOADS: list[Workload] = [
    ViTWorkload("vit_base", f"ViT-Base, {TITLE}", layers=12, hidden=768, heads=12),
    ResNetWorkload("resnet18", f"ResNet-18, {TITLE}"),
]
