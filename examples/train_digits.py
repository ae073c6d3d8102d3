"""Train a small convolutional network on scikit-learn's handwritten digits, 8 x 8 pixels, to over 97% test accuracy.

    python -m examples.train_digits
    python -m examples.train_digits --quantize     and then its accuracy with 8-bit weights and activations

Ends with exit status 1 where the accuracy stays below that.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import rushlight as torch
from rushlight import nn
from rushlight.ao.quantization import get_default_qconfig_mapping
from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx

F = nn.functional

TARGET = 0.97
BATCH_SIZE = 64
BRIGHTEST = 16.0  # pixel values run from 0 to this


class DigitNet(nn.Module):
    """Two convolutions with batch norm, two poolings, one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.classify = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(batch, 1, 8, 8) images to (batch, 10) logits."""
        hidden = F.max_pool2d(F.relu(self.norm1(self.conv1(images))), 2)
        hidden = F.max_pool2d(F.relu(self.norm2(self.conv2(hidden))), 2)
        return self.classify(hidden.flatten(1))


def digits(seed: int) -> list[torch.Tensor]:
    """Training images, test images, training labels, test labels; a quarter is for testing."""
    data = load_digits()
    images = (data.images[:, None] / BRIGHTEST).astype(np.float32)
    parts = train_test_split(images, data.target.astype(np.int64), test_size=0.25, random_state=seed, stratify=data.target)
    return [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]


def train_epoch(
    model: DigitNet, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor, order: np.ndarray
) -> float:
    """One pass over the training set in the given order; the mean loss."""
    model.train()
    total = 0.0
    for start in range(0, len(order), BATCH_SIZE):
        chosen = torch.from_numpy(order[start : start + BATCH_SIZE])
        loss = F.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(chosen)
    return total / len(order)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images whose digit the model names."""
    model.eval()
    with torch.no_grad():
        guesses = model(images).argmax(dim=1)
    return (guesses == labels).sum().item() / len(labels)


def quantized(model: DigitNet, images: torch.Tensor) -> nn.Module:
    """The model with integers of 8 bits, whose ranges are observed on some images."""
    mapping = get_default_qconfig_mapping("x86")
    prepared = prepare_fx(copy.deepcopy(model).eval(), mapping, (images[:1],))
    for start in range(0, len(images), BATCH_SIZE):
        prepared(images[start : start + BATCH_SIZE])
    return convert_fx(prepared)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.train_digits", description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quantize", action="store_true", help="quantize the trained network, and compare")
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    shuffle = np.random.default_rng(options.seed)
    train_images, test_images, train_labels, test_labels = digits(options.seed)
    model = DigitNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    start = time.perf_counter()
    for epoch in range(options.epochs):
        order = shuffle.permutation(len(train_images))
        loss = train_epoch(model, optimizer, train_images, train_labels, order)
        print(f"epoch {epoch + 1:2}  loss {loss:.4f}  test accuracy {accuracy(model, test_images, test_labels):.2%}")

    reached = accuracy(model, test_images, test_labels)
    print(f"{len(test_images)} test images, accuracy {reached:.2%}, {time.perf_counter() - start:.1f} s")
    if options.quantize:
        with torch.no_grad():
            small = quantized(model, train_images[:256])
        reached = accuracy(small, test_images, test_labels)
        print(f"quantized to 8 bits, calibrated on 256 training images: accuracy {reached:.2%}")
    if reached < TARGET:
        print(f"expected at least {TARGET:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
