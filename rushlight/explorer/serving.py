"""`rushlight explore --serve`: the page on localhost, made anew whenever a file of the program changes.

In: a program. Out: a page within a frame that asks the server whether there is a newer one. Each page is made by a process
of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rushlight.explorer.page import recordings_of

_FRAME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>rushlight explore</title>
<style>html, body, iframe { margin: 0; width: 100%; height: 100%; border: 0; overflow: hidden }</style>
<iframe id="page" src="/page"></iframe>
<script>
let shown = null;
async function look() {
  try {
    const version = await (await fetch("/version")).text();
    if (shown !== null && version !== shown) document.getElementById("page").contentWindow.location.reload();
    shown = version;
  } catch (error) { /* the server is gone, or restarts */ }
  setTimeout(look, 500);
}
look();
</script></html>
"""
_WAITING = "<!doctype html><meta charset='utf-8'><title>rushlight explore</title><p>The program runs for the first time …</p>"


class _Pages:
    """The newest page of a program, and when its files changed last."""

    def __init__(self, program: Sequence[str], title: str | None):
        self.program = program
        self.title = title
        self.text = _WAITING
        self.version = 0
        self.files: list[Path] = [Path(word) for word in program[:1] if word != "-m"]

    def changed(self) -> dict[Path, float]:
        """When each file was changed; 0 for one that is not there at the moment."""
        return {path: path.stat().st_mtime if path.exists() else 0.0 for path in self.files}

    def make(self) -> None:
        """Run the program, and take its page."""
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            title = ["--title", self.title] if self.title else []
            command = [sys.executable, "-m", "rushlight", "explore", "--quiet", "-o", page, *title, *self.program]
            subprocess.run(command, check=False)
            if not page.exists():
                return
            self.text = page.read_text(encoding="utf-8")
        own = [Path(each["path"]) for each in recordings_of(self.text)[-1]["files"] if each["own"]]
        self.files = list(dict.fromkeys([*self.files, *own]))
        self.version += 1

    def keep_making(self) -> None:
        """Make the page, and another one after each change."""
        while True:
            before = self.changed()
            self.make()
            before = self.changed() | before  # files that were met only now count as unchanged
            while self.changed() == before:
                time.sleep(0.3)


def serve(program: Sequence[str], port: int, title: str | None) -> int:
    """Serve the page until the user stops it; the exit status."""
    pages = _Pages(program, title)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = {"/": _FRAME, "/page": pages.text, "/version": str(pages.version)}.get(self.path.partition("?")[0])
            body = ("not found" if text is None else text).encode()
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/plain" if self.path == "/version" else "text/html; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the program's own output is what matters."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        print(f"rushlight explore: port {port} of localhost: {error.strerror or error}; name another one with --port",
              file=sys.stderr)  # fmt: skip
        return 1
    threading.Thread(target=pages.keep_making, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/ shows the page; Ctrl-C ends", file=sys.stderr)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
