"""Write the models of the C examples: speech (silero-vad), sentences (MiniLM-L6) and a greedy decoder.

    python -m examples.deploy.export_models build/models
    cmake -S examples/deploy -B build/deploy -D MODELS=$PWD/build/models && cmake --build build/deploy

silero-vad's archive comes with its package (`pip install --no-deps silero-vad`) or from `--silero FILE`; what is not there is
left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import rushlight as torch
from examples.deploy.decoder import Seq2Seq
from rushlight.deploy import export

SAMPLES = 512  # a chunk of sound at 16 kHz


def silero_archive() -> Path | None:
    """The archive in silero-vad's package, which need not be importable."""
    spec = importlib.util.find_spec("silero_vad")
    folders = [Path(each) for each in (spec.submodule_search_locations or ())] if spec else []
    return next((path for folder in folders if (path := folder / "data" / "silero_vad.jit").exists()), None)


def export_silero(archive: Path, folder: Path) -> Path:
    """Speech in a chunk of sound: its probability, and a state from chunk to chunk."""
    model = torch.jit.load(archive, map_location="cpu")
    return export(model, (torch.zeros(1, SAMPLES), 16000), folder / "silero", name="silero", force=True)


def export_minilm(folder: Path) -> Path:
    """Sentences to vectors of 384 numbers, for any number of them and of tokens."""
    from examples.minilm import load_encoder, model_folder

    encoder = load_encoder(model_folder()).eval()
    sentences, tokens = torch.export.Dim("sentences", max=64), torch.export.Dim("tokens", max=512)
    ids, mask = torch.ones(3, 9, dtype=torch.int64), torch.ones(3, 9, dtype=torch.int64)
    shapes = ({0: sentences, 1: tokens}, {0: sentences, 1: tokens})
    return export(encoder, (ids, mask), folder / "minilm", name="minilm", dynamic_shapes=shapes, force=True)


def export_decoder(folder: Path) -> Path:
    """A scripted encoder and greedy decoder, with its loop."""
    torch.manual_seed(0)
    model = torch.jit.script(Seq2Seq().eval())
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    return export(model, (ids, 20), folder / "decoder", name="decoder", force=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--silero", type=Path, default=None, metavar="FILE")
    options = parser.parse_args(arguments)
    archive = options.silero or silero_archive()
    print(export_decoder(options.folder))
    try:
        print(export_minilm(options.folder))
    except OSError as error:
        print(f"without MiniLM: {error}", file=sys.stderr)
    if archive is None:
        print("without silero-vad: its package is not installed, and no --silero was given", file=sys.stderr)
    else:
        print(export_silero(archive, options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
