"""Models that PyTorch quantizes, for `benchmarks.quantized`: `python -m benchmarks.quantized_models FOLDER` writes an archive
of each, `NAME.pt`, with its input, `NAME.input.pt`.

ResNet-18 for images of 224 pixels, quantized statically, per channel, and an encoder of BERT-base's size over 128 tokens,
quantized dynamically and statically. Weights are random: normal, as in a model that has been trained, or nearly.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn.quantized import FloatFunctional

TOKENS, WIDTH, HEADS, LAYERS = 128, 768, 12, 12


class Block(nn.Module):
    """Two convolutions and a residual sum (He et al., Deep Residual Learning, figure 5)."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu, self.sum, self.shorten = nn.ReLU(), FloatFunctional(), nn.Identity()
        if stride > 1:
            self.shorten = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return self.sum.add_relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))), self.shorten(x))

    def fuse(self) -> None:
        """Fold normalisation into the convolutions."""
        tq.fuse_modules(self, [["conv1", "bn1", "relu"], ["conv2", "bn2"]], inplace=True)
        if isinstance(self.shorten, nn.Sequential):
            tq.fuse_modules(self.shorten, [["0", "1"]], inplace=True)


class ResNet18(nn.Module):
    """Images to 1000 classes."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        self.pool, self.mean, self.head = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Linear(512, 1000)
        widths = [64, 64, 128, 256, 512]
        blocks = [(a, b, 1 if a == b == 64 else 2) for a, b in zip(widths, widths[1:], strict=False)]
        self.blocks = nn.Sequential(*(each for a, b, s in blocks for each in (Block(a, b, s), Block(b, b, 1))))

    def forward(self, x):
        x = self.blocks(self.pool(self.relu(self.bn1(self.conv1(self.quant(x))))))
        return self.dequant(self.head(torch.flatten(self.mean(x), 1)))

    def fuse(self) -> None:
        """Fold normalisation into the convolutions."""
        tq.fuse_modules(self, [["conv1", "bn1", "relu"]], inplace=True)
        for block in self.blocks:
            block.fuse()


class Linear(nn.Module):
    """A linear layer that a static quantization surrounds with its stubs."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.quant, self.layer, self.dequant = tq.QuantStub(), nn.Linear(inputs, outputs), tq.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.layer(self.quant(x)))


class Layer(nn.Module):
    """Attention and two linear layers (Devlin et al., BERT)."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = Linear(WIDTH, 4 * WIDTH), Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def heads(self, x):
        """(batch, heads, tokens, width of a head)"""
        return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, -1)
        x = self.norm1(x + self.out((scores @ v).transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


def encoder() -> nn.Module:
    """Twelve layers, weights as BERT draws them."""
    made = nn.Sequential(*(Layer() for _ in range(LAYERS)))
    for module in made.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
    return made.eval()


def static(model: nn.Module, *inputs: torch.Tensor) -> nn.Module:
    """The model quantized with the defaults for x86, calibrated with inputs."""
    model.qconfig = tq.get_default_qconfig("x86")
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.qconfig = None  # on float32, as what it takes and gives is
    tq.prepare(model, inplace=True)
    for each in inputs:
        model(each)
    return tq.convert(model, inplace=True)


def resnet() -> tuple[nn.Module, torch.Tensor]:
    """ResNet-18 and an image; the statistics of normalisation come from a few images."""
    model, image = ResNet18(), torch.randn(1, 3, 224, 224)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    model.train()
    with torch.no_grad():
        for _ in range(8):
            model(torch.randn(4, 3, 224, 224))
    model.eval()
    model.fuse()
    return static(model, *(torch.randn(1, 3, 224, 224) for _ in range(4))), image


def dynamic_encoder() -> tuple[nn.Module, torch.Tensor]:
    """The encoder with linear layers that quantize their inputs as they run, and its input."""
    return tq.quantize_dynamic(encoder(), {nn.Linear}), torch.randn(1, TOKENS, WIDTH)


def static_encoder() -> tuple[nn.Module, torch.Tensor]:
    """The encoder with statically quantized linear layers, and its input."""
    return static(encoder(), *(torch.randn(1, TOKENS, WIDTH) for _ in range(2))), torch.randn(1, TOKENS, WIDTH)


MODELS = {"resnet18": resnet, "encoder_dynamic": dynamic_encoder, "encoder_static": static_encoder}


def main(folder: str) -> None:
    """Write the archives."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    for name, make in MODELS.items():
        model, x = make()
        torch.jit.trace(model, x).save(str(Path(folder, f"{name}.pt")))
        torch.save(x, Path(folder, f"{name}.input.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
