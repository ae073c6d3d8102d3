"""A small package of modules on the path, and a way to build packages in memory."""

from __future__ import annotations

import io
import sys

import pytest

from rushlight.package import PackageExporter, PackageImporter

FILES = {
    "__init__.py": "VALUE = 2\n",
    "layers.py": (
        "import math\n\nimport rushlight as torch\nfrom rushlight import nn\n\nfrom . import VALUE\nfrom .inner import deep\n\n\n"
        "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.linear = nn.Linear(2, 3)\n\n"
        "    def forward(self, x):\n        return self.linear(x) * VALUE * deep.FACTOR + math.floor(0.5)\n"
    ),
    "inner/__init__.py": "def load():\n    from torch_package_importer import load_text\n    return load_text('sample.inner', 'note.txt')\n",
    "inner/deep.py": "FACTOR = 3\n",
    "uses_numpy.py": "import numpy as np\n\n\ndef zeros():\n    return np.zeros(2)\n",
    "typed.py": (
        "from __future__ import annotations\n\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Point:\n"
        "    x: int\n    y: int = 1\n"
    ),
}


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """The folder of the package `sample`, which can be imported."""
    folder = tmp_path / "sample"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
        del sys.modules[name]


@pytest.fixture
def build():
    """A function that builds a package through the exporter and returns its bytes."""

    def make(fill, **options):
        buffer = io.BytesIO()
        with PackageExporter(buffer, **options) as exporter:
            fill(exporter)
        return buffer.getvalue()

    return make


@pytest.fixture
def pack(build):
    """A function that builds a package and opens it."""
    return lambda fill, **options: PackageImporter(io.BytesIO(build(fill, **options)))
