"""Pages of the explorer within documents: `<!-- explorer: attend Inductor -->` shows the page of a program of
`examples/explorer/`, at a view.

In: the text of a document, and the pages of the programs that it names. Out: the text with a frame in each marker's place.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from examples.explorer.gallery import write_pages

MARKER = re.compile(r"<!-- explorer: (?P<name>\w+)(?: (?P<view>\w+))? -->")


def names_in(text: str) -> set[str]:
    """The programs that a document names."""
    return {match["name"] for match in MARKER.finditer(text)}


def make_pages(folder: Path, names: set[str]) -> dict[str, Path | str]:
    """The pages of programs, or why there is none."""
    return dict(write_pages(folder, tuple(sorted(names))))


def with_frames(text: str, page: str, made: dict[str, Path | str]) -> str:
    """A document, which is the page of that name, with a frame for each marker."""

    def shown(match: re.Match[str]) -> str:
        found = made[match["name"]]
        if isinstance(found, str):
            return f"*The explorer's page is missing here: {found}.*"
        address = posixpath.relpath(f"explorer/{found.name}", posixpath.dirname(page) or ".")
        address += f"#/{match['view']}" if match["view"] else ""
        title = f"The explorer's page of {match['name']}"
        frame = f'<iframe class="explorer" src="{address}" title="{title}" loading="lazy"></iframe>'
        return f'{frame}\n\n<a href="{address}">Open this page alone</a>'

    return MARKER.sub(shown, text)
