"""Hooks of mkdocs: documents outside of docs/ become pages, links to source files become names, stages are filled in."""

from __future__ import annotations

import logging
import os
import posixpath
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from mkdocs.structure.pages import Page  # noqa: E402
from mkdocs.utils import normalize_url  # noqa: E402

from tools.docs import explorer  # noqa: E402
from tools.docs.markdown import FENCE, LINK  # noqa: E402
from tools.docs.programs import BadMarker, Programs, fill, needed  # noqa: E402

log = logging.getLogger("mkdocs.hooks.documents")  # in strict mode a warning fails the build

# The reader of docstrings understands only strings in __all__; that a package adds a list of names there is no fault.
logging.getLogger("mkdocs.plugins.griffe").addFilter(lambda record: "Unsupported item in" not in record.getMessage())

# Documents of the repository that are pages too: where they lie, and their page.
GUESTS = {
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/results.md": "benchmarks/results.md",
    "benchmarks/archives.md": "benchmarks/archives.md",
    "benchmarks/blocks.md": "benchmarks/blocks.md",
}
# What the offline plugin has pages load, to search where they are files.
ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
PICTURES = ("benchmarks/results.png", "benchmarks/blocks.png")


# Programs run while mkdocs reads the pages: those of each page, by its name.
pool = ThreadPoolExecutor(os.cpu_count())
running: dict[str, Future[Programs]] = {}
explored: dict[str, Path | str] = {}  # pages of the explorer by their program, or why there is none
scratch = TemporaryDirectory(prefix="rushlight-docs-")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in GUESTS.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    for name in PICTURES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    pages = files.documentation_pages()
    named = set().union(*(explorer.names_in(file.content_string) for file in pages))
    making = pool.submit(explorer.make_pages, Path(scratch.name) / "explorer", named)
    for number, file in enumerate(pages):
        names = needed(file.content_string)
        folder = Path(scratch.name).resolve() / str(number)
        folder.mkdir(exist_ok=True)
        programs = Programs(file.content_string, folder, folder.parent / "cache")
        running[file.src_uri] = pool.submit(programs.run_all, names)
    explored.update(making.result())
    for path in explored.values():
        if isinstance(path, Path):
            files.append(File.generated(config, f"explorer/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri
    lies_at = next((name for name, guest in GUESTS.items() if guest == source), f"docs/{source}")
    markdown = _outside_fences(
        markdown, lambda text: LINK.sub(lambda match: _link(match[0], match[1], match[2], lies_at, source), text)
    )
    markdown = explorer.with_frames(markdown, source, explored)
    try:
        return fill(markdown, running[source].result())
    except BadMarker as error:
        log.warning("%s: %s", source, error)
        return markdown


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Put our script in the place of the one that the offline plugin has pages load from elsewhere."""
    return output.replace(ELSEWHERE, normalize_url("assets/file-worker.js", page))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    return output_content.replace(ELSEWHERE, "/assets/file-worker.js")


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for match in FENCE.finditer(text):
        parts += [change(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, change(text[end:])])


def _link(whole: str, text: str, target: str, lies_at: str, page: str) -> str:
    """A link as the site has it: to a page, or, where it leads to a file that is no page, that file's name."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return whole
    path, _, anchor = target.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(lies_at), path))
    to = GUESTS.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else None)
    if to is not None or name in PICTURES:
        relative = posixpath.relpath(to or name, posixpath.dirname(page) or ".")
        return f"[{text}]({relative}{'#' + anchor if anchor else ''})"
    if not os.path.exists(ROOT / name):
        log.warning("%s links to %s, which does not exist", lies_at, target)
    return text if text.startswith("`") else f"{text} (`{name}`)" if text.strip("`") != name else f"`{name}`"
