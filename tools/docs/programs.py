"""Running the programs that documents show, and filling in the stages of the compiler that they left.

A program is a fenced block whose title is a file's name, ```python title="attend.py". Comments say what of its run is shown:

    <!-- stage: attend.py code -->                       a stage that RUSHLIGHT_DUMP left, by its name
    <!-- stage: attend.py partition part=1 graph=0 -->   the second file of that name, of the first graph
    <!-- stage: attend.py passes part=all -->            all files of that name
    <!-- stage: attend.py code from=kernel_1 to=^} -->   lines from one that matches a pattern to one that matches another
    <!-- before: attend.py attend -->                    the function's own bytecode
    <!-- output: attend.py -->                           what the program prints
    <!-- when: attend.py captured --> ... <!-- end -->   a part that stays only if the program left such a stage
"""

from __future__ import annotations

import dis
import io
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.docs.markdown import FENCE, blocks

_LANGUAGES = {".py": "python", ".cpp": "cpp"}
_MARKER = re.compile(r"<!-- (stage|before|output): (.*?) -->")
_CONDITIONAL = re.compile(r"<!-- when: (.*?) -->\n(.*?)<!-- end -->\n?", re.DOTALL)
_SECONDS = 300


class BadMarker(Exception):
    """A comment asks for what no program of its document has."""


@dataclass
class Run:
    """What a program printed, and the folder where its stages lie."""

    output: str
    dump: Path
    replaced: dict[str, str] = field(default_factory=dict)

    def graphs(self) -> list[Path]:
        return sorted(path for path in self.dump.glob("*") if path.is_dir())

    def stages(self, name: str, graph: int = 0) -> list[Path]:
        folders = self.graphs()
        if graph >= len(folders):
            return []
        return sorted(path for path in folders[graph].iterdir() if re.fullmatch(r"\d+_" + re.escape(name), path.stem))

    def plain(self, text: str) -> str:
        """The text with folders of this machine left out."""
        for path, short in self.replaced.items():
            text = text.replace(path, short)
        return text


class Programs:
    """The programs of one document, each run once, when something of it is first asked for."""

    def __init__(self, text: str, folder: Path, cache: Path):
        self.sources = {block.title: block.text for block in blocks(text) if block.title.endswith(".py")}
        self.folder = folder
        self.cache = cache
        self._runs: dict[str, Run] = {}

    def source(self, name: str) -> str:
        if name not in self.sources:
            raise BadMarker(f"no program {name} in this document")
        return self.sources[name]

    def run(self, name: str) -> Run:
        if name not in self._runs:
            self._runs[name] = run_program(name, self.source(name), self.folder, self.cache)
        return self._runs[name]

    def run_all(self, names: list[str]) -> Programs:
        """The programs themselves, those of the names run."""
        for name in names:
            self.run(name)
        return self


def run_program(name: str, source: str, folder: Path, cache: Path) -> Run:
    """Run a program in a folder, with all stages dumped there."""
    (folder / name).write_text(source)
    dump = folder / f"dump_{Path(name).stem}"
    environment = os.environ | {"RUSHLIGHT_DUMP": str(dump), "RUSHLIGHT_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("RUSHLIGHT_LOGS", None)
    start = [sys.executable, name] if "import rushlight" in source else [sys.executable, "-m", "rushlight", "exec", name]
    done = subprocess.run(start, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{name} fails:\n{done.stdout}{done.stderr}")
    return Run(done.stdout, dump, {f"{folder}{os.sep}": "", str(cache): "~/.cache/rushlight"})


def needed(text: str) -> list[str]:
    """The programs that the comments of a document name, each once."""
    found = [(match.start(), match[2]) for match in _outside_fences(_MARKER, text) if match[1] != "before"]
    found += [(match.start(), match[1]) for match in _outside_fences(_CONDITIONAL, text)]
    return list(dict.fromkeys(shlex.split(words)[0] for _, words in sorted(found)))


def fill(text: str, programs: Programs) -> str:
    """The document with every comment replaced by what its program left. Raises BadMarker."""
    kept = _replace(_CONDITIONAL, text, lambda match: match[2] if _left(programs, match[1]) else "")
    return _replace(_MARKER, kept, lambda match: _shown(programs, match[1], match[2]))


def _outside_fences(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches that do not begin inside a fenced block, where comments are only shown."""
    fences = [match.span() for match in FENCE.finditer(text)]
    return [match for match in pattern.finditer(text) if not any(start < match.start() < end for start, end in fences)]


def _replace(pattern: re.Pattern[str], text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    parts, end = [], 0
    for match in _outside_fences(pattern, text):
        parts += [text[end : match.start()], replacement(match)]
        end = match.end()
    return "".join([*parts, text[end:]])


def _left(programs: Programs, words: str) -> bool:
    name, stage, *options = shlex.split(words)
    return bool(programs.run(name).stages(stage, int(_options(options).get("graph", 0))))


def _options(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _shown(programs: Programs, kind: str, words: str) -> str:
    first, *rest = shlex.split(words)
    if kind == "output":
        run = programs.run(first)
        return _fence("text", "", run.plain(run.output))
    if kind == "before":
        return _fence("text", "", disassembled(programs.source(first), rest[0]))
    return _stage(programs.run(first), rest[0], _options(rest[1:]))


def _stage(run: Run, name: str, options: dict[str, str]) -> str:
    files = run.stages(name, int(options.get("graph", 0)))
    if options.get("part") == "all" and files:
        return "\n\n".join(_file(run, path, options) for path in files)
    part = int(options.get("part", 0))
    if part >= len(files):
        raise BadMarker(f"no stage {name} {options or ''} in {run.dump.name}")
    return _file(run, files[part], options)


def _file(run: Run, path: Path, options: dict[str, str]) -> str:
    text = run.plain(path.read_text())
    if "from" in options:
        text = "\n".join(_lines(text, options["from"], options.get("to")))
    return _fence(_LANGUAGES.get(path.suffix, "text"), f"dump/{path.parent.name}/{path.name}", text)


def _lines(text: str, start: str, end: str | None) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        inside = inside or re.search(start, line) is not None
        if inside:
            yield line
            if end and re.search(end, line):
                return
    if not inside:
        raise BadMarker(f"no line matches {start!r}")


def disassembled(source: str, function: str) -> str:
    """The bytecode of a function of a program, without running it."""

    def codes(code: types.CodeType) -> Iterator[types.CodeType]:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from codes(constant)

    for code in codes(compile(source, "program.py", "exec")):
        if code.co_name == function:
            written = io.StringIO()
            dis.dis(code, file=written, depth=0)
            return written.getvalue()
    raise BadMarker(f"no function {function}")


def _fence(language: str, title: str, text: str) -> str:
    heading = f' title="{title}"' if title else ""
    return f"```{language}{heading}\n{text.strip(chr(10))}\n```"
