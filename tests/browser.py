"""A headless Chromium that tests drive by the WebDriver protocol, and a server of a folder's files."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,700")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's key for an element id


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class _Isolated(_Quiet):
    """Serves pages with the headers that let them share memory with workers."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


@contextmanager
def served(folder: Path, isolated: bool = False) -> Iterator[str]:
    """Serves a folder's files inside the block and gives the address. Isolated pages may share memory with workers."""
    handler = functools.partial(_Isolated if isolated else _Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Browser:
    """One window of the browser."""

    def __init__(self, address: str):
        self._address = address

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a command to the driver and returns its answer."""
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, address: str) -> None:
        """Go to a page."""
        self.call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The return value of a function body that the page runs."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """The text of an element; empty where it is not there."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_for(self, selector: str, pattern: str, seconds: float = 60) -> str:
        """Waits until an element's text matches the pattern and returns it; AssertionError with the text after `seconds`."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, text := self.text(selector)):
            assert time.monotonic() < deadline, f"{selector} shows {text!r}, not {pattern!r}"
            time.sleep(0.05)
        return text

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.call("POST", f"/element/{self._element(selector)}/click")

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        origin = {_ELEMENT: self._element(selector)}
        self._act("pointer", [{"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}])

    def press(self, keys: str) -> None:
        """Press keys one after another."""
        self._act("key", [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")])

    def _act(self, kind: str, steps: list[dict[str, Any]]) -> None:
        self.call("POST", "/actions", {"actions": [{"type": kind, "id": kind, "actions": steps}]})

    def errors(self) -> list[str]:
        """The console's errors since the last call."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def choose_file(self, selector: str, path: Path) -> None:
        """Chooses a file in a file input."""
        self.call("POST", f"/element/{self._element(selector)}/value", {"text": str(path)})

    def _element(self, selector: str) -> str:
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]

    def stroke(self, selector: str, places: Sequence[tuple[float, float]]) -> None:
        """Draws a line over an element with the mouse. Its corners are pixels relative to the element's corner."""
        left, top = self.run(
            "const at = document.querySelector(arguments[0]).getBoundingClientRect(); return [at.x, at.y]", selector
        )
        moves = [
            {"type": "pointerMove", "duration": 0, "x": round(left + x), "y": round(top + y), "origin": "viewport"}
            for x, y in places
        ]
        steps = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self._act("pointer", steps)

    def screenshot(self, path: Path) -> None:
        """Writes a PNG screenshot of the window."""
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


@contextmanager
def chromium(folder: Path, *flags: str) -> Iterator[Browser]:
    """A browser whose profile lies in `folder`."""
    process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        found = next(filter(None, (re.search(r"on port (\d+)\.", line) for line in process.stdout)))
        driver = Browser(f"http://127.0.0.1:{found[1]}/session")
        options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={folder}", *flags]}
        capabilities = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
        session = driver.call("POST", "", {"capabilities": capabilities})["sessionId"]
        browser = Browser(f"{driver._address}/{session}")
        try:
            yield browser
        finally:
            browser.call("DELETE", "")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def wait_until(condition: Callable[[], T], seconds: float = 60) -> T:
    """The first value of a condition that is true; AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
