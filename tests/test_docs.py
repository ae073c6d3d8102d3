"""The documents agree with the code: README's example runs, and every file that they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/OVERVIEW.md")
MADE_BY_RUNS = {"00_graph.py", "04_code.cpp", "06_module.py", "07_guards.py", "08_bytecode.py", "results.md"}
OF_USERS = {"sums.py", "halves.py", "attend.py", "choose.py", "script.py", "my_script.py", "python-gdb.py"}
OF_PROJECTS = {"llama.cpp"}


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == "True\n"
    assert (tmp_path / "model.pt").exists()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_files_exist(document):
    """A name may leave out the folders that its section has named."""
    sources = [path for folder in (".", "rushlight", "tests", "tools", "examples", "benchmarks", "docs")
               for path in (ROOT / folder).glob("*" if folder == "." else "**/*")]  # fmt: skip
    known = {"/".join(path.relative_to(ROOT).parts[start:]) for path in sources for start in range(len(path.parts))}
    named = set(re.findall(r"(?<![\w*])([\w./-]+\.(?:py|c|h|cpp|md|toml))\b", (ROOT / document).read_text()))
    missing = {name for name in named - known if Path(name).name not in MADE_BY_RUNS | OF_USERS | OF_PROJECTS}
    assert not missing, f"{document} names files that do not exist: {', '.join(sorted(missing))}"
