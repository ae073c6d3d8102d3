"""The explorer's pictures in the documentation: `python -m tools.docs.pictures` takes them anew.

In: the programs of `examples/explorer/`, and headless Chromium. Out: PNG files in docs/assets/.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from examples.explorer.gallery import write_pages
from tests.browser import chromium

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "assets"


class Picture(NamedTuple):
    """A view of a program's page: where in the page, the window's size, light or dark, and a text that is there when it is."""

    name: str
    program: str
    at: str
    size: str
    is_dark: bool
    waits_for: str


PICTURES = (
    Picture("explorer-overview", "train_resnet", "/Overview", "1280,800", False, "Where to look"),
    Picture("explorer-capture", "breaks", "/Capture?unit=0", "1280,800", True, "Break 1"),
    Picture("explorer-inductor", "train_resnet", "/Inductor?unit=0&mark=0:18", "1920,1080", False, "Operators that became it"),
    Picture("explorer-time", "train_resnet", "/Time", "1920,1080", True, "Roofline"),
)


def take(picture: Picture, page: Path, folder: Path) -> Path:
    """Take a picture; its file."""
    dark = ["--force-dark-mode", "--enable-features=WebContentsForceDark:0"] if picture.is_dark else []
    with chromium(folder / picture.name, f"--window-size={picture.size}", *dark) as browser:
        theme = "dark" if picture.is_dark else "light"
        browser.open(f"file://{page}#{picture.at}")
        browser.wait_for("#view", picture.waits_for)
        browser.run("document.documentElement.dataset.theme = arguments[0]", theme)
        time.sleep(1)  # the program's lines get their colours when the browser has nothing else to do
        made = FOLDER / f"{picture.name}.png"
        browser.screenshot(made)
    return made


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pages = dict(write_pages(folder, tuple({picture.program for picture in PICTURES})))
        for picture in PICTURES:
            print(take(picture, pages[picture.program], folder))


if __name__ == "__main__":
    main()
