"""Where processes meet that a program started itself: `rendezvous`, by an address such as "tcp://localhost:29500"."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse, urlsplit

from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.stores import FileStore, Store, TCPStore

Handler = Callable[..., Iterator[tuple[Store, int, int]]]


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """Return an iterator that gives a store which all processes share, this one's rank, and the number of ranks.

    `url` is "env://", which reads MASTER_ADDR and MASTER_PORT, "tcp://HOST:PORT", "file://PATH", or of a kind that was
    registered. Rank and number are `rank` and `world_size`, or in the url ("tcp://localhost:29500?rank=0&world_size=2"), or
    RANK and WORLD_SIZE for "env://". `timeout` is how long the store waits. RuntimeError: the kind of url is unknown.
    ValueError: a part of it is missing.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    given = parse_qs(parts.query)
    if (rank != -1 or world_size != -1) and ("rank" in given or "world_size" in given):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](with_query(url, rank=rank, world_size=world_size), **kwargs)


def with_query(url: str, **values: int) -> str:
    """Return a url with parameters, without those that are -1."""
    added = "&".join(f"{name}={value}" for name, value in values.items() if value != -1)
    joint = "&" if urlsplit(url).query else "?"
    return f"{url}{joint}{added}" if added else url


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Have urls `scheme://...` mean a function of the url, and keywords such as `timeout`, that does what `rendezvous` does.

    RuntimeError for a scheme that has one.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def is_known(scheme: str) -> bool:
    """Return whether there are urls of a kind."""
    return scheme in _handlers


def rank_and_size(method: str | None, rank: int, size: int) -> tuple[int, int]:
    """Return this process's rank and the number of ranks: those given, those of the method's address, or of the environment."""
    query = parse_qs(urlparse(method or "").query)
    rank = rank if rank >= 0 else int(query.get("rank", [os.environ.get("RANK", "-1")])[0])
    size = size if size >= 0 else int(query.get("world_size", [os.environ.get("WORLD_SIZE", "-1")])[0])
    return rank, size


def meeting_place(method: str | None, rank: int, size: int, timeout: timedelta) -> Store:
    """Return the store of a method: a url as `rendezvous` takes it; None means env://. ValueError: a variable is missing."""
    method = method or "env://"
    given = parse_qs(urlparse(method).query)
    wanted = {name: value for name, value in (("rank", rank), ("world_size", size)) if name not in given}
    store, _, _ = next(_handlers[urlparse(method).scheme](with_query(method, **wanted), timeout=timeout))
    return store


def _of_environment(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    rank, size = (_number(url, name, os.environ.get(name.upper())) for name in ("rank", "world_size"))
    host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield TCPStore(host, port, size, is_master=rank == 0, timeout=timeout), rank, size


def _of_address(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    parts = urlparse(url)
    if not parts.port:
        raise ValueError("tcp:// rendezvous: port number missing")
    rank, size = (_number(url, name) for name in ("rank", "world_size"))
    libuv = parse_qs(parts.query).get("use_libuv", ["1"])[0] == "1"
    yield TCPStore(parts.hostname or "", parts.port, size, rank == 0, timeout, use_libuv=libuv), rank, size


def _of_file(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    path = urlparse(url).path
    if not path:
        raise ValueError("file:// rendezvous: path missing")
    rank, size = (_number(url, name) for name in ("rank", "world_size"))
    store = FileStore(path, size)
    store.set_timeout(timeout)
    yield store, rank, size


def _number(url: str, name: str, otherwise: str | None = None) -> int:
    parts = urlparse(url)
    found = parse_qs(parts.query).get(name, [otherwise])[0]
    if found is None:
        what = "environment variable " + name.upper() + " expected, but not set" if parts.scheme == "env" else ""
        raise ValueError(
            f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: "
            + (what or f"{name.removeprefix('world_')} parameter missing")
        )
    return int(found)


def _variable(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set. "
            "Start the program by `rushlight launch -n N program.py` where it does not start its ranks itself"
        )
    return os.environ[name]


_handlers: dict[str, Handler] = {"env": _of_environment, "tcp": _of_address, "file": _of_file}
