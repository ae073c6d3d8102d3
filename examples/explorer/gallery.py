"""Pages of the explorer for the programs beside this one, and for TorchScript archives.

    python -m examples.explorer.gallery build/pages [NAME ...]

What needs a package or file that is not there (transformers, silero-vad, MiniLM's weights) is left out, and a line says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rushlight.explorer.page import TEMPLATE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]  # Programs run here, so that a page names their files as they lie in the repository.
PROGRAMS = ("attend", "breaks", "train_resnet", "encode", "transformers_bert", "silero", "decoder")


def words_for(name: str, folder: Path) -> list[str]:
    """What `rushlight explore` is to explore. FileNotFoundError or ImportError for what is not there."""
    if name == "silero":
        from examples.deploy.export_models import silero_archive

        archive = silero_archive()
        if archive is None:
            raise FileNotFoundError("silero-vad is not installed")
        return [str(archive), "--input", "float32[1,512]", "16000"]
    if name == "decoder":
        return [str(decoder_archive(folder)), "--input", str(folder / "ids.npy"), "20"]
    if name == "encode":
        from examples.minilm import model_folder

        model_folder()
        return ["-m", "examples.explorer.encode"]
    if name == "transformers_bert" and importlib.util.find_spec("transformers") is None:
        raise ImportError("transformers is not installed")
    return [str((HERE / f"{name}.py").relative_to(ROOT))]


def decoder_archive(folder: Path) -> Path:
    """The scripted encoder and greedy decoder of the C examples, and the numbers of a sentence."""
    import numpy as np

    import rushlight as torch
    from examples.deploy.decoder import Seq2Seq

    torch.manual_seed(0)
    torch.jit.script(Seq2Seq().eval()).save(folder / "decoder.pt")
    np.save(folder / "ids.npy", np.array([[3, 4, 5, 6, 7]]))
    return folder / "decoder.pt"


def write_pages(folder: Path, names: tuple[str, ...] = PROGRAMS) -> Iterator[tuple[str, Path | str]]:
    """Write a page for each name: names with their pages, or with why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    if not TEMPLATE.exists():
        yield from ((name, "`make page` was not run, which needs Node.js") for name in names)
        return
    for name in names:
        page = folder.resolve() / f"{name}.html"
        with tempfile.TemporaryDirectory() as scratch:
            try:
                words = words_for(name, Path(scratch))
            except (OSError, ImportError) as error:
                yield name, str(error)
                continue
            command = [sys.executable, "-m", "rushlight", "explore", "-o", str(page), "--title", name, *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        yield name, page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], metavar="NAME", help=f"of {', '.join(PROGRAMS)}")
    options = parser.parse_args()
    for name, made in write_pages(options.folder, tuple(options.names) or PROGRAMS):
        print(f"{name}: {made}" if isinstance(made, Path) else f"{name}: left out, {made}")


if __name__ == "__main__":
    main()
