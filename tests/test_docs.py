"""The documents agree with the code: programs run, links lead somewhere, and every file that they name exists."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path

import pytest

from tools.docs.markdown import Block, anchors, blocks, links, paragraphs
from tools.docs.programs import Programs, disassembled, fill, needed

ROOT = Path(__file__).resolve().parent.parent
WRITTEN_BY_PROGRAMS = {"compatibility.md", "clients.md", "functions.md", "deploy-survey.md"}
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(page for page in PAGES if Path(page).name not in WRITTEN_BY_PROGRAMS)]
MADE_BY_RUNS = {"results.md", "module.py"}
OF_USERS = {"sums.py", "halves.py", "attend.py", "choose.py", "script.py", "my_script.py", "python-gdb.py", "code.py", "file.py",
            "model.py", "example.c", "model.h", "NAME.h", "NAME.cpp", "recompiles.py", "energy.py", "first.py", "program.py", "train.py"}  # fmt: skip
OF_PROJECTS = {"llama.cpp"}


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


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
    named = set(re.findall(r"(?<![\w*])([\w./-]+\.(?:py|c|h|cpp|md|toml))\b", text_of(document)))
    own = {block.title for block in blocks(text_of(document))} | MADE_BY_RUNS | OF_USERS | OF_PROJECTS
    named = {name for name in named if not re.match(r"\d\d_", Path(name).name)}  # stages that RUSHLIGHT_DUMP left
    missing = {name for name in named - known_files() if Path(name).name not in own and name.lstrip("./") not in known_files()}
    assert not missing, f"{document} names files that do not exist: {', '.join(sorted(missing))}"


@functools.cache
def known_files() -> set[str]:
    sources = [path for folder in (".", "rushlight", "tests", "tools", "examples", "benchmarks", "docs", "packaging")
               for path in (ROOT / folder).glob("*" if folder == "." else "**/*")]  # fmt: skip
    return {"/".join(path.relative_to(ROOT).parts[start:]) for path in sources for start in range(len(path.parts))}


@pytest.mark.parametrize("document", [*DOCUMENTS, *(page for page in PAGES if page not in DOCUMENTS)])
def test_links_lead_somewhere(document):
    """To a file or folder of the repository, and to a heading of it."""
    broken = []
    for target in links(text_of(document)):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        at = ((ROOT / document).parent / path).resolve() if path else ROOT / document
        if not at.exists() or (anchor and anchor not in anchors(at.read_text())):
            broken.append(target)
    assert not broken, f"{document} links to {', '.join(broken)}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paragraphs_are_short(document):
    long = [paragraph.splitlines()[0] for paragraph in paragraphs(text_of(document)) if len(paragraph.splitlines()) > 5]
    assert not long, f"{document} has paragraphs of more than five lines: {long}"


def test_every_page_is_in_the_navigation():
    entries = set(re.findall(r": ([\w/.-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    pages = {str(Path(page).relative_to("docs")) for page in PAGES}
    guests = {"contributing.md", "benchmarks/results.md", "benchmarks/archives.md", "benchmarks/blocks.md"}
    assert entries == pages | guests


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/api/")])
def test_the_reference_names_objects_that_exist(page):
    """An entry names where an object is defined and how users call it; both are the same object."""
    entries = re.findall(r"^::: (\S+)\n    options:\n      heading: (\S+)$", text_of(page), re.MULTILINE)
    assert len(entries) == text_of(page).count("\n::: ")
    for defined, heading in entries:
        assert found(defined) is found(re.sub(r"^torch\b", "rushlight", heading)), f"{heading} is not {defined}"
        assert found(defined).__doc__, f"{defined} has no docstring"


def found(name: str) -> object:
    """What a dotted name stands for."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[end:], module)
    raise ModuleNotFoundError(name)


@pytest.fixture(scope="module")
def library_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


PROGRAMS = [page for page in PAGES if any(block.title.endswith(".py") for block in blocks(text_of(page)))]


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_run_and_print_what_is_shown(page, tmp_path, library_cache):
    """In the order of the page, in one folder. A block of text right behind a program is what it prints."""
    text = text_of(page)
    programs = Programs(text, tmp_path, library_cache)
    shown = blocks(text)
    for block, behind in zip(shown, [*shown[1:], Block("", "", "")], strict=True):
        if block.title.endswith(".py"):
            printed = programs.run(block.title).output
            if f"```\n```text\n{behind.text}" in text and behind.language == "text":
                assert printed == behind.text, f"{block.title} prints\n{printed}"
    assert "<!-- stage" not in fill(text, programs)


def test_comments_are_filled_in(tmp_path):
    text = """```python title="one.py"
import os, pathlib

folder = pathlib.Path(os.environ["RUSHLIGHT_DUMP"], "000_f")
folder.mkdir(parents=True)
(folder / "00_graph.py").write_text("first\\nsecond\\nthird\\n")
print("printed")
```
<!-- output: one.py -->
<!-- stage: one.py graph from=second to='^s' -->
<!-- when: one.py captured -->
left out
<!-- end -->
<!-- when: one.py graph -->
kept
<!-- end -->
```
<!-- output: two.py -->
```
"""
    assert needed(text) == ["one.py"]
    made = fill(text, Programs(text.replace("import os", "# import rushlight\nimport os"), tmp_path, tmp_path / "cache"))
    assert "```text\nprinted\n```" in made and '```python title="dump/000_f/00_graph.py"\nsecond\n```' in made
    assert "left out" not in made and "kept" in made and made.count("<!--") == 1


def test_bytecode_is_shown_without_running():
    assert "RETURN_VALUE" in disassembled("raise SystemExit\ndef f(x):\n    return x\n", "f")
