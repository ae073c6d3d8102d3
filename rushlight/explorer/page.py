"""One HTML file that shows recordings, and needs neither a network nor a server.

In: recordings, as `page/src/recording.ts` describes them. Out: the page that `tools/build_page.py` built, with the recordings
in it as compressed JSON, which no browser takes for markup or a script.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

VERSION = 1  # the format of recordings; pages refuse others
TEMPLATE = Path(__file__).with_name("page.html")
MAX_BYTES = 1 << 30  # limit for decompressed recordings: far more than a browser shows, and far less than a zip bomb

_BEGIN, _END = '<script type="application/octet-stream" id="recordings">', "</script>"
_ELEMENT = re.compile(re.escape(_BEGIN) + r"([A-Za-z0-9+/=\s]*)" + re.escape(_END))
_GZIP = 16 + zlib.MAX_WBITS


class PageNotBuilt(FileNotFoundError):
    """The explorer's page is not there, because it is built from TypeScript by an installation from the sources."""


def page_of(recordings: Sequence[dict[str, Any]]) -> str:
    """The HTML of a page that shows recordings. Raises PageNotBuilt where there is no page to put them into, and ValueError for
    numbers that JSON lacks."""
    begin, end = _template().split(_BEGIN + _END)
    return "".join((begin, _BEGIN, _packed(recordings), _END, end))


def write_page(path: str | os.PathLike[str], recordings: Sequence[dict[str, Any]]) -> None:
    """Write the page of recordings to a file."""
    Path(path).write_text(page_of(recordings), encoding="utf-8")


def recordings_of(html: str) -> list[dict[str, Any]]:
    """The recordings in a page. Raises ValueError where there are none, or what is there is none."""
    found = _ELEMENT.search(html)
    if not found or not found[1].strip():
        raise ValueError("this is no page of the explorer: it holds no recordings")
    try:
        recordings = json.loads(_unpacked(found[1]), parse_constant=_refuse)
    except (binascii.Error, zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the recordings of this page are damaged: {error}") from None
    if not isinstance(recordings, list) or not all(isinstance(each, dict) for each in recordings):
        raise ValueError("the recordings of this page are damaged: they are not a list of objects")
    return recordings


def _refuse(name: str) -> None:
    raise ValueError(f"the recordings of this page are damaged: JSON has no {name}")


def comparable_recording(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The last recording of a page, if it has one, for another page to compare with. Raises OSError where the file cannot be
    read, and ValueError where the other page could not show it."""
    found = recordings_of(Path(path).read_text(encoding="utf-8"))[-1:]
    for recording in found:
        if recording.get("version") != VERSION:
            raise ValueError(f"its recording has version {recording.get('version')!r}; this Rushlight reads {VERSION}")
        for name in ("files", "units", "calls", "eager", "tapes"):
            entries = recording.get(name, [])
            if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
                raise ValueError(f"its recording is damaged: {name!r} is not a list of objects")
    return found


def check_built() -> None:
    """Raise PageNotBuilt if there is no page to put recordings into."""
    if not TEMPLATE.exists():
        raise PageNotBuilt(f"the explorer's page {TEMPLATE} was not built; run `make page`, which needs Node.js 20 or later")


def _template() -> str:
    check_built()
    return TEMPLATE.read_text(encoding="utf-8")


def _packed(recordings: Sequence[dict[str, Any]]) -> str:
    text = json.dumps(list(recordings), separators=(",", ":"), allow_nan=False)
    compress = zlib.compressobj(wbits=_GZIP)
    return base64.b64encode(compress.compress(text.encode()) + compress.flush()).decode()


def _unpacked(packed: str) -> bytes:
    decompress = zlib.decompressobj(wbits=_GZIP)
    text = decompress.decompress(base64.b64decode(packed), MAX_BYTES)
    if decompress.unconsumed_tail:
        raise ValueError(f"the recordings of this page are larger than {MAX_BYTES} bytes")
    if not decompress.eof:
        raise ValueError("the recordings of this page are damaged: their end is missing")
    return text
