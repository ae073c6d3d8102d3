"""`import torch` as Rushlight: module identity, metadata, names of classes, pickles, and the processes that a program starts.

Each program runs in a process of its own, since the alias lasts as long as the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]
# Read, not imported: the import would make `torch` Rushlight in the process of the tests.
CLAIMED = re.search(r'^CLAIMED = "(.+)"$', (ROOT / "rushlight" / "as_torch" / "metadata.py").read_text(), re.M)[1]


def run(*words, program=None, tmp_path=None, **environment):
    """A process with these words behind `python`; `program` is written to program.py in `tmp_path` first."""
    if program is not None:
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=240, cwd=tmp_path,
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def output(program, tmp_path, *options, **environment):
    """What a program prints under `rushlight exec`."""
    done = run(*options, "-m", "rushlight", "exec", "program.py", program=program, tmp_path=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_the_same_objects(tmp_path):
    program = """
        import importlib, importlib.util, sys
        import torch, torch.nn as nn
        import torch.nn.functional as F
        from torch.utils.data import DataLoader
        import torch.optim.lr_scheduler
        import rushlight, rushlight.nn.functional, rushlight.optim.lr_scheduler, rushlight.utils.data
        assert torch is rushlight and nn is rushlight.nn and F is rushlight.nn.functional
        assert torch.optim.lr_scheduler is rushlight.optim.lr_scheduler
        assert sys.modules["torch.nn.functional"] is sys.modules["rushlight.nn.functional"]
        assert DataLoader is rushlight.utils.data.DataLoader
        assert importlib.import_module("torch.fx").Graph is rushlight.fx.Graph
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch.nn.functional") is not None
        assert importlib.util.find_spec("torch.no_such_module") is None
        for name, module in list(sys.modules.items()):
            if name == "torch" or name.startswith("torch."):
                assert sys.modules["rushlight" + name[5:]] is module, name
        import inspect
        assert "class Linear" in inspect.getsource(torch.nn.Linear) and inspect.getsourcefile(torch.nn)
        print("ok")
    """
    assert output(program, tmp_path) == "ok\n"


def test_metadata_and_version(tmp_path):
    program = """
        import importlib.metadata as metadata
        import torch
        from torch.torch_version import TorchVersion
        assert metadata.version("torch") == torch.__version__ == torch.version.__version__
        assert isinstance(torch.__version__, TorchVersion) and torch.__version__ >= "2.4" and torch.__version__ > (1, 13)
        assert metadata.packages_distributions()["torch"][0] == "torch"
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert any(each.metadata["Name"] == "torch" for each in metadata.distributions())
        assert torch.version.cuda is None and torch.version.hip is None
        print(torch.__version__)
    """
    assert output(program, tmp_path) == CLAIMED + "\n"
    assert output(program, tmp_path, RUSHLIGHT_TORCH_VERSION="2.6.0") == "2.6.0\n"
    refused = run("-c", "import rushlight.as_torch", RUSHLIGHT_TORCH_VERSION="new")
    assert "RUSHLIGHT_TORCH_VERSION must be a version such as" in refused.stderr


def test_names_of_classes(tmp_path):
    program = """
        import torch
        from torch import nn
        x = torch.ones(2, requires_grad=True)
        assert type(x).__module__ == "torch" and repr(type(x)) == "<class 'torch.Tensor'>"
        assert type(nn.Linear(1, 1)).__module__ == "torch.nn.modules.linear"
        assert type(nn.Linear(1, 1).weight).__module__.startswith("torch.nn.parameter")
        assert type(torch.optim.SGD([x], 0.1)).__module__ == "torch.optim.sgd"
        assert repr(torch.float32) == "torch.float32" and type(torch.float32).__module__ == "torch"
        assert repr(x.size()) == "torch.Size([2])"
        try:
            torch.add(x, "word")
        except TypeError as error:
            print("rushlight" in str(error).lower())
    """
    assert output(program, tmp_path) == "False\n"


def test_pickles_name_torch(tmp_path):
    program = """
        import pickle, pickletools, torch
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        text = pickle.dumps(model)
        assert b"torch.nn.modules" in text and b"rushlight.nn" not in text
        again = pickle.loads(text)
        assert torch.equal(again[0].weight, model[0].weight)
        torch.save(model, "model.pt")
        assert torch.equal(torch.load("model.pt", weights_only=False)[0].bias, model[0].bias)
        assert pickle.loads(b"\\x80\\x02ctorch.nn.modules.linear\\nLinear\\nq\\x00.") is torch.nn.Linear
        print("ok")
    """
    assert output(program, tmp_path) == "ok\n"


def test_without_warnings(tmp_path):
    program = "import torch, torch.nn, torch.utils.data, torch.fx, torch.distributed; print(torch.ones(1).item())"
    assert output(program, tmp_path, "-W", "error") == "1.0\n"


def test_arguments_and_modules(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "tool.py").write_text("import sys, torch; print(torch.__package__, sys.argv[1:], __name__)")
    done = run("-m", "rushlight", "exec", "-m", "package.tool", "--lr", "3", tmp_path=tmp_path)
    assert done.stdout == "rushlight ['--lr', '3'] __main__\n", done.stderr
    program = "import sys; print(sys.argv); sys.exit(int(sys.argv[1]))"
    done = run("-m", "rushlight", "exec", "program.py", "7", program=program, tmp_path=tmp_path)
    assert done.stdout == "['program.py', '7']\n" and done.returncode == 7
    for words in ([], ["-x"], ["missing.py"], ["-m"]):
        refused = run("-m", "rushlight", "exec", *words, tmp_path=tmp_path)
        assert refused.returncode == 2 and "usage: rushlight exec" in refused.stdout + refused.stderr


def test_processes_of_a_program(tmp_path):
    program = """
        import multiprocessing, subprocess, sys
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 6
            def __getitem__(self, index):
                import torch
                return torch.full((2,), float(index))

        def double(x):
            import torch
            return torch.__package__, (x * 2).tolist()

        if __name__ == "__main__":
            code = "import torch; print(torch.__package__)"
            print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(double, [torch.ones(1)]))
            batches = DataLoader(Numbers(), batch_size=3, num_workers=1, multiprocessing_context="spawn")
            print([batch[:, 0].tolist() for batch in batches])
    """
    lines = output(program, tmp_path).splitlines()
    assert lines == ["rushlight", *["[('rushlight', [2.0])]"] * 2, "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"]


def test_import_at_the_top_of_a_program(tmp_path):
    program = "import rushlight.as_torch\nimport torch\nprint(torch.__package__, rushlight.as_torch.claimed_version())"
    done = run("program.py", program=program, tmp_path=tmp_path)
    assert done.stdout == f"rushlight {CLAIMED}\n", done.stderr


def test_another_torch_is_loaded_already(tmp_path):
    (tmp_path / "torch.py").write_text("")
    done = run("program.py", program="import torch\nimport rushlight.as_torch", tmp_path=tmp_path)
    assert "another package torch is imported already" in done.stderr and "torch.py" in done.stderr


def test_what_is_missing_is_named(tmp_path):
    def error(program):
        done = run("-m", "rushlight", "exec", "program.py", program=program, tmp_path=tmp_path)
        assert done.returncode == 1
        return done.stderr

    told = error("import torch.no_such_module")
    assert "No module named 'torch.no_such_module'" in told and "docs/compatibility.md" in told
    told = error("from torch import no_such_name")
    assert "no_such_name" in told and "docs/compatibility.md" in told
    told = error("import torch; torch.no_such_name")
    assert "no_such_name" in told and "docs/compatibility.md" in told
    assert "docs/compatibility.md" not in error("import no_such_package")
    told = error("from torch.distributed.pipelining import pipeline; pipeline()")
    assert "pipelining.pipeline" in told and "not here" in told


def test_questions_are_answered_honestly(tmp_path):
    program = """
        import torch
        from importlib.util import find_spec
        answers = [torch.distributed.is_available() == (find_spec("mpi4py") is not None), torch.cuda.is_available(), torch.backends.mps.is_available(),
                   hasattr(torch, "xpu") and torch.xpu.is_available(), torch.cuda.device_count(), hasattr(torch, "no_such_name")]
        print(answers)
    """
    assert output(program, tmp_path) == "[True, False, False, False, 0, False]\n"


def test_the_shim_is_the_package():
    ours = ROOT / "rushlight" / "as_torch" / "site" / "torch" / "__init__.py"
    assert ours.read_text() == (ROOT / "packaging" / "rushlight-torch" / "torch" / "__init__.py").read_text()
    assert f'version = "{CLAIMED}"' in (ROOT / "packaging" / "rushlight-torch" / "pyproject.toml").read_text()


@pytest.mark.oracle
def test_beside_an_installed_pytorch(tmp_path):
    """The program gets Rushlight where PyTorch is installed, too; loading PyTorch first is refused."""
    pytest.importorskip("torch")
    assert output("import torch; print(torch.__package__)", tmp_path) == "rushlight\n"
    done = run("program.py", program="import torch\nimport rushlight.as_torch", tmp_path=tmp_path)
    assert "another package torch is imported already" in done.stderr


@pytest.mark.oracle
def test_tensors_of_both_packages_do_not_mix(tmp_path):
    pytest.importorskip("torch")
    program = """
        import torch, rushlight
        for mix in (lambda: rushlight.ones(2) + torch.ones(2), lambda: rushlight.add(torch.ones(2), 1),
                    lambda: rushlight.nn.functional.linear(rushlight.ones(1, 2), torch.ones(3, 2))):
            try:
                mix()
            except TypeError as error:
                print("torch" in str(error) and "rushlight" in str(error).lower())
    """
    done = run("program.py", program=program, tmp_path=tmp_path)
    assert done.stdout == "True\n" * 3, done.stderr


def test_the_module_is_named_torch(tmp_path):
    program = "import torch; from torch import nn; print(torch.__name__, nn.Linear.__module__)\nfrom torch import banana"
    script = tmp_path / "script.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, "-m", "rushlight", "exec", str(script)], capture_output=True, text=True)
    assert done.stdout == "torch torch.nn.modules.linear\n"
    assert "cannot import name 'banana' from 'torch'" in done.stderr and "docs/compatibility.md" in done.stderr


def test_packages_that_can_do_without_their_extension_do(tmp_path):
    package = tmp_path / "torchaudio" / "_extension"
    package.mkdir(parents=True)
    (tmp_path / "torchaudio" / "__init__.py").write_text("from torchaudio._extension.utils import _load_lib\n")
    (package / "__init__.py").write_text("")
    (package / "utils.py").write_text("def _load_lib(lib):\n    raise OSError('it lies there, and cannot be loaded')\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import warnings, torch, torchaudio, inspect\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    print(torchaudio._load_lib('_torchaudio'), 'without it' in str(seen[0].message))\n"
        "print(torchaudio._extension.utils.__file__.endswith('utils.py'))\n"
    )
    done = subprocess.run([sys.executable, "-m", "rushlight", "exec", str(script)], capture_output=True, text=True)
    assert done.stdout == "False True\nTrue\n", done.stderr
