"""How fast a page of the explorer is in headless Chromium: until its first view is there, and until a hover is shown.

python -m benchmarks.explorer_page PAGE.html [--at "/Inductor?unit=0&stage=2"] [--hovers 40]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.browser import Browser, chromium

# Resolves once the element of a view is there and painted.
FIRST_VIEW = """
const [done] = [arguments[arguments.length - 1]];
const painted = () => requestAnimationFrame(() => setTimeout(() => done(performance.now())));
const look = () => document.querySelector("#view") ? painted() : setTimeout(look, 1);
look();
"""
# Points at lines of the source one after another. A hover's time ends with the frame that shows its marks.
HOVERS = """
const [count, done] = arguments;
const lines = [...document.querySelectorAll(".source .cm-line")].filter((line) => line.innerText.trim());
const times = [];
const next = (at) => {
  if (at === count) return done(times);
  const began = performance.now();
  lines[at % lines.length].dispatchEvent(new MouseEvent("mousemove", { bubbles: true }));
  const handled = performance.now();
  requestAnimationFrame(() => setTimeout(() => {
    times.push([handled - began, performance.now() - began]);
    setTimeout(() => next(at + 1), 20);
  }));
};
next(0);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Times a page of the explorer.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--at", action="append", help="a place in the page; the largest texts and graph where none is given")
    parser.add_argument("--hovers", type=int, default=40)
    options = parser.parse_args()
    print(f"{options.page}: {options.page.stat().st_size:,} bytes")
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder), "--window-size=1600,1000") as browser:
        for place in options.at or ["/Overview", "/Capture", "/Graphs", "/Inductor", "/Time"]:
            measure(browser, options.page.resolve().as_uri(), place, options.hovers)


def measure(browser: Browser, address: str, place: str, hovers: int) -> None:
    """Print the times of one place in a page."""
    browser.open("about:blank")
    browser.open(f"{address}#{place}")
    first = wait_for(browser, FIRST_VIEW)
    times = wait_for(browser, HOVERS, hovers)
    handled, shown = (sorted(column) for column in zip(*times, strict=True))
    print(
        f"{place}: first view {first:.0f} ms; hover {statistics.median(handled):.1f} ms of script"
        f" (at most {handled[-1]:.1f}), {statistics.median(shown):.1f} ms until it is shown (at most {shown[-1]:.1f})"
    )


def wait_for(browser: Browser, script: str, *arguments: Any) -> Any:
    """What a script passes to its last argument."""
    return browser.call("POST", "/execute/async", {"script": script, "args": list(arguments)})


if __name__ == "__main__":
    main()
