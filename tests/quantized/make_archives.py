"""Make the archives in `tests/quantized/archives/` by torch: `python -m tests.quantized.make_archives`, from the repository's root.
Each carries arguments and results.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import torch

from tests.jit.archives_values import encode
from tests.jit.make_archives import drop_places_of_torch
from tests.quantized.zoo import ZOO

FOLDER = Path(__file__).with_name("archives")
KEPT = ("dynamic_mlp", "dynamic_lstm", "dynamic_gru", "dynamic_cells", "embeddings", "static_residual", "static_mobilenet",
        "static_activations", "functions", "frozen_residual")  # fmt: skip


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    torch.backends.quantized.engine = "fbgemm"
    for name in KEPT:
        torch.manual_seed(0)
        module, arguments = ZOO[name]()
        buffer = io.BytesIO()
        torch.jit.save(module, buffer)
        buffer.seek(0)
        call = {"arguments": encode(arguments), "result": encode(torch.jit.load(buffer)(*arguments))}
        torch.jit.save(module, str(FOLDER / f"{name}.pt"), _extra_files={"call.json": json.dumps(call)})
        drop_places_of_torch(FOLDER / f"{name}.pt")


if __name__ == "__main__":
    main()
