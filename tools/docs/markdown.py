"""Reading Markdown: fenced blocks, headings with their anchors, links. It knows only the notation that the documents use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^(```+)([^\n]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s]+)\)")
_TITLE = re.compile(r'title="([^"]*)"')
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title or "", its text."""

    language: str
    title: str
    text: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document, in order."""
    found = []
    for match in FENCE.finditer(text):
        words = match[2].split()
        title = _TITLE.search(match[2])
        found.append(Block(words[0] if words else "", title[1] if title else "", match[3]))
    return found


def prose(text: str) -> str:
    """The document without its fenced blocks and comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)


def links(text: str) -> Iterator[str]:
    """The targets of all links outside of fenced blocks and inline code."""
    for match in LINK.finditer(re.sub(r"(?<!`)`[^`\n]+`(?!`)", "code", prose(text))):
        yield match[2]


def paragraphs(text: str) -> Iterator[str]:
    """Runs of lines that are neither headings, tables, lists nor empty."""
    for run in re.split(r"\n\s*\n", prose(text)):
        if run.strip() and not re.match(r"\s*(#|\||[-*+] |\d+\. |>|:::|!!!|<)", run):
            yield run.strip("\n")


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as both the site and forges name them."""
    found: set[str] = set()
    for match in _HEADING.finditer(prose(text)):
        name = slug(match[2])
        taken = name
        number = 0
        while taken in found:
            number += 1
            taken = f"{name}_{number}"
        found.add(taken)
    return found


def slug(heading: str) -> str:
    """A heading's anchor: lower case, words joined by hyphens, without punctuation."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
