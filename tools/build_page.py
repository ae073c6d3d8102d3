"""Builds the explorer's page, rushlight/explorer/page.html, from the TypeScript in rushlight/explorer/page.

python tools/build_page.py                  nothing is done where the page is newer than its sources
python tools/build_page.py --if-possible    without Node.js, or where its packages can't be installed, say so and succeed
python tools/build_page.py --check          check the types of the sources, too
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "rushlight/explorer/page"
PAGE = FOLDER.with_suffix(".html")
LEAST_NODE = 20  # the oldest version that esbuild's and TypeScript's releases here run on


class CannotBuild(Exception):
    """The page can't be built here, for a reason that its user can change."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the explorer's page.")
    parser.add_argument("--if-possible", action="store_true", help="succeed without a page where it can't be built")
    parser.add_argument("--check", action="store_true", help="check the types of the sources")
    options = parser.parse_args()
    try:
        build(check=options.check)
    except CannotBuild as error:
        print(f"The explorer's page was not built: {error}", file=sys.stderr)
        return 0 if options.if_possible else 1
    return 0


def build(check: bool = False) -> None:
    """Build the page unless it is newer than its sources; CannotBuild where that fails."""
    if check or not is_new():
        install_packages()
    if check:
        run("npm", "run", "--silent", "check")
    if not is_new():
        run("npm", "run", "--silent", "build")


def is_new() -> bool:
    """Whether the page is newer than all that it is made from."""
    return PAGE.exists() and all(source.stat().st_mtime <= PAGE.stat().st_mtime for source in sources())


def sources() -> list[Path]:
    """The files that the page is made from."""
    return [*(FOLDER / "src").rglob("*.*"), FOLDER / "build.mjs", FOLDER / "package-lock.json"]


def install_packages() -> None:
    """Install the packages that the lock file names, unless they are there."""
    check_node()
    installed = FOLDER / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (FOLDER / "package-lock.json").stat().st_mtime:
        run("npm", "ci", "--no-fund", "--no-audit")


def check_node() -> None:
    """CannotBuild without Node.js, or with too old a version."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise CannotBuild(f"it needs Node.js {LEAST_NODE} or later (node and npm), which are not there")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < LEAST_NODE:
        raise CannotBuild(f"it needs Node.js {LEAST_NODE} or later, and this is {version}")


def run(*command: str) -> None:
    """Run a command in the page's folder; CannotBuild where it fails, after what it printed."""
    if subprocess.run(command, cwd=FOLDER, check=False).returncode:
        raise CannotBuild(f"`{' '.join(command)}` failed in {FOLDER}")


if __name__ == "__main__":
    sys.exit(main())
