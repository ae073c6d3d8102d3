"""Two web pages whose models run in the browser: one names a digit that is drawn, one finds speech in sound.

    pip install 'rushlight[compiler,demo]'
    pip install --no-deps silero-vad
    python -m examples.browser.build build/pages
    python -m http.server -d build/pages

The folder holds static files: any server will do. The digits' network learns from scikit-learn's as the pages are built. The
speech model is silero-vad's archive, from its package or by `--silero FILE`; its page is left out where there is none.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import rushlight as torch
from examples.deploy.export_models import export_silero, silero_archive
from examples.train_digits import DigitNet, accuracy, digits, train_epoch
from rushlight.deploy import export
from rushlight.deploy.targets import build_library

PAGES = Path(__file__).parent / "pages"
EPOCHS = 12
MOST_SHIFT = 1  # pixels: drawn digits lie less exactly than scanned ones


def shifted(images: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """Images moved by up to MOST_SHIFT pixels, all by the same."""
    down, right = generator.integers(-MOST_SHIFT, MOST_SHIFT + 1, size=2)
    frame = np.zeros_like(images.numpy())
    source = images.numpy()[..., max(-down, 0) : 8 - max(down, 0), max(-right, 0) : 8 - max(right, 0)]
    frame[..., max(down, 0) : 8 + min(down, 0), max(right, 0) : 8 + min(right, 0)] = source
    return torch.from_numpy(frame)


def trained(epochs: int) -> DigitNet:
    """A network that names digits of 8 x 8 pixels, also where they are shifted a little."""
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    train_images, test_images, train_labels, test_labels = digits(0)
    model = DigitNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        images = torch.cat([train_images, *(shifted(train_images, generator) for _ in range(2))])
        labels = train_labels.repeat(3)
        train_epoch(model, optimizer, images, labels, generator.permutation(len(images)))
        print(f"digits: epoch {epoch + 1} of {epochs}, test accuracy {accuracy(model, test_images, test_labels):.1%}")
    return model.eval()


def build_page(exported: Path, name: str, output: Path) -> None:
    """Put a model's module, WebAssembly and weights, and the page of that name, into the folder of pages."""
    wasm = build_library(exported, name, "wasm32")
    for file in (wasm, exported / f"{name}.js", exported / f"{name}.d.ts", exported / f"{name}.weights"):
        shutil.copy(file, output)
    for file in PAGES.glob(f"{name}_page.*"):
        shutil.copy(file, output)


def build(output: Path, silero: Path | None, epochs: int = EPOCHS) -> None:
    """Write the folder of pages."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        exported = export(trained(epochs), (torch.zeros(1, 1, 8, 8),), Path(scratch) / "digits", name="digits")
        build_page(exported, "digits", output)
        if silero is not None:
            build_page(export_silero(silero, Path(scratch)), "silero", output)
    for shared in ("index.html", "style.css"):
        shutil.copy(PAGES / shared, output)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--silero", type=Path, default=None, metavar="FILE")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args(arguments)
    silero = options.silero or silero_archive()
    if silero is None:
        print("there is no silero-vad: its page is left out (pip install --no-deps silero-vad)", file=sys.stderr)
    build(options.folder, silero, options.epochs)
    print(f"python -m http.server -d {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
