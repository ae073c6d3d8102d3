"""Stores: keys with values that processes share: in memory, in a file, or by a server.

MPI's ranks do not need one to meet. Programs and packages use them to exchange small values by name.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.engine.errors import DistNetworkError, DistStoreError, QueueEmptyError

_DEFAULT_TIMEOUT = timedelta(seconds=300)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5e-3, 20e-3  # seconds between two looks for a key
_OPEN_STORES, _WORKERS = "refcount/", "/workers"
"""The keys that count the stores which are open on a file, and the processes at a server."""


class _Table:
    """The values of a store, in this process. Values are bytes; queues are lists of them."""

    def __init__(self, values: dict[str, bytes] | None = None, queues: dict[str, list[bytes]] | None = None) -> None:
        self.values, self.queues = values or {}, queues or {}

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def add(self, key: str, amount: int) -> int:
        total = int(self.values.get(key, b"0")) + amount
        self.values[key] = str(total).encode()
        return total

    def append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        found = self.values.get(key)
        if found is None and expected:
            return expected
        if found is None or found == expected:
            self.values[key] = desired
            return desired
        return found

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values or self.queues.get(key) for key in keys)

    def delete_key(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.values)

    def list_keys(self) -> list[str]:
        return list(self.values)

    def queue_push(self, key: str, value: bytes) -> None:
        self.queues.setdefault(key, []).append(value)

    def queue_pop(self, key: str) -> bytes | None:
        queue = self.queues.get(key)
        return queue.pop(0) if queue else None

    def queue_len(self, key: str) -> int:
        return len(self.queues.get(key, ()))


class Store:
    """Keys with values, which are bytes; strings are encoded. `get` and `wait` wait for keys as long as `timeout`."""

    def __init__(self) -> None:
        self._timeout = _DEFAULT_TIMEOUT

    def _call(self, action: str, *arguments: Any) -> Any:
        """Run a method of the table. Stores say where that is."""
        raise NotImplementedError(f"Not implemented. {type(self).__name__} has no {action}")

    @property
    def timeout(self) -> timedelta:
        """Return how long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._call("set", key, _as_bytes(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key, once it is set. DistStoreError after the timeout."""
        return self._await("get", key)

    def add(self, key: str, amount: int) -> int:
        """Add to the number at a key, 0 at first; return the sum."""
        return self._call("add", key, int(amount))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key."""
        self._call("append", key, _as_bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key to the desired value if it has the expected one, or none and "" is expected; return its value."""
        return self._call("compare_set", key, _as_bytes(expected_value), _as_bytes(desired_value))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are set."""
        return self._call("check", list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set. DistStoreError after `timeout`, or the store's."""
        self._until(lambda: self.check(keys) or None, keys, timeout)

    def delete_key(self, key: str) -> bool:
        """Remove a key; return whether it was there."""
        return self._call("delete_key", key)

    def num_keys(self) -> int:
        """Return how many keys are set."""
        return self._call("num_keys")

    def list_keys(self) -> list[str]:
        """Return the keys that are set."""
        return self._call("list_keys")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of keys, once they are set."""
        self._check_extended("multi_get")
        return [self.get(key) for key in keys]

    def _check_extended(self, action: str) -> None:
        if not self.has_extended_api():
            raise NotImplementedError(f"Not implemented. {type(self).__name__} has no {action}")

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys. DistStoreError for lists of different lengths."""
        self._check_extended("multi_set")
        if len(keys) != len(values):
            raise DistStoreError(f"multi_set: {len(keys)} keys and {len(values)} values must be of same size")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to the queue of a key."""
        self._call("queue_push", key, _as_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a key's queue, waiting for one unless `block` is False: QueueEmptyError then."""
        if block:
            return self._await("queue_pop", key)
        found = self._call("queue_pop", key)
        if found is None:
            raise QueueEmptyError(f"the queue {key!r} is empty")
        return found

    def queue_len(self, key: str) -> int:
        """Return how many values a key's queue has."""
        return self._call("queue_len", key)

    def has_extended_api(self) -> bool:
        """Return whether there are append, multi_get and multi_set: in all but a program's own stores."""
        return type(self)._call is not Store._call

    def clone(self) -> Store:
        """Return a store with the same values, with a connection of its own where it needs one."""
        return self

    def _await(self, action: str, key: str) -> bytes:
        return self._until(lambda: self._call(action, key), [key], None)

    def _until(self, look: Any, keys: Sequence[str], timeout: timedelta | None) -> Any:
        seconds = (timeout or self._timeout).total_seconds()
        end, pause = time.monotonic() + seconds, _SHORTEST_PAUSE
        while (found := look()) is None:
            if time.monotonic() >= end:
                named = ", ".join(f"/{key}" for key in keys)
                raise DistStoreError(f"wait timeout after {round(1000 * seconds)}ms, keys: {named}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return found


def _as_bytes(value: str | bytes | bytearray) -> bytes:
    if not isinstance(value, str | bytes | bytearray):
        raise TypeError(f"stores have values of str or bytes, got {type(value).__name__}")
    return value.encode() if isinstance(value, str) else bytes(value)


class HashStore(Store):
    """A store in this process's memory, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._table, self._lock = _Table(), threading.Lock()

    def _call(self, action: str, *arguments: Any) -> Any:
        with self._lock:
            return getattr(self._table, action)(*arguments)


class PrefixStore(Store):
    """A part of another store: its keys begin with `prefix`. ValueError where there is no other store.

    Every method is the other store's, which may be of a class of the program's own.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("PrefixStore: the underlying store must not be None")
        super().__init__()
        self.prefix, self.underlying_store = prefix, store

    def _named(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    @property
    def timeout(self) -> timedelta:
        """Return how long the underlying store waits."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long the underlying store waits."""
        self.underlying_store.set_timeout(timeout)

    def clone(self) -> Store:
        """Return the same part of a clone of the underlying store."""
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def num_keys(self) -> int:
        """Return how many keys are set in the underlying store."""
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        """Return the keys that are set in the underlying store."""
        return self.underlying_store.list_keys()

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are set."""
        return self.underlying_store.check([self._named(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set. DistStoreError after `timeout`, or the store's."""
        self.underlying_store.wait([self._named(key) for key in keys], *([] if timeout is None else [timeout]))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of keys, once they are set."""
        if not self.has_extended_api() and _has_own(self.underlying_store, "get"):
            return [self.get(key) for key in keys]
        return self.underlying_store.multi_get([self._named(key) for key in keys])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys."""
        if not self.has_extended_api() and _has_own(self.underlying_store, "set"):
            for key, value in zip(keys, values, strict=True):
                self.set(key, value)
            return
        self.underlying_store.multi_set([self._named(key) for key in keys], [_as_bytes(value) for value in values])

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key: in several steps where the underlying store cannot."""
        if not self.has_extended_api() and _has_own(self.underlying_store, "compare_set"):
            found = self.get(key)
            while (after := self.underlying_store.compare_set(self._named(key), found, found + _as_bytes(value))) != (
                found + _as_bytes(value)
            ):
                found = after
            return
        self.underlying_store.append(self._named(key), _as_bytes(value))

    def has_extended_api(self) -> bool:
        """Return whether the underlying store has append, multi_get and multi_set."""
        return self.underlying_store.has_extended_api()


def _has_own(store: Store, name: str) -> bool:
    """Return whether a store is of a program's class that has a method."""
    return getattr(type(store), name) is not getattr(Store, name)


def _of_one_key(name: str) -> Callable[..., Any]:
    """Return the method of PrefixStore that calls the underlying store's with the key's whole name."""

    @functools.wraps(getattr(Store, name))
    def method(self: PrefixStore, key: str, *arguments: Any, **named: Any) -> Any:
        values = [value.encode() if isinstance(value, str) else value for value in arguments]
        return getattr(self.underlying_store, name)(self._named(key), *values, **named)

    return method


for _name in ("set", "get", "add", "compare_set", "delete_key", "queue_push", "queue_pop", "queue_len"):
    setattr(PrefixStore, _name, _of_one_key(_name))


class FileStore(Store):
    """A store in a file that processes of one file system share: `world_size` of them, which is not checked.

    A key of the file counts the stores that are open; the last one that goes removes the file, unless `world_size` is -1.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)
        with open(self._path, "ab"):
            pass
        self._removes = world_size >= 0
        self._process = os.getpid()
        self.add(_OPEN_STORES, 1)

    def __del__(self) -> None:
        if getattr(self, "_process", None) != os.getpid() or sys.is_finalizing():  # not the copy of a fork
            return
        if not os.path.exists(self._path):
            return
        if self.add(_OPEN_STORES, -1) == 0 and self._removes:
            os.unlink(self._path)

    @property
    def path(self) -> str:
        """Return the file's name."""
        return self._path

    def _call(self, action: str, *arguments: Any) -> Any:
        with open(self._path, "r+", encoding="latin-1", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            content = _decoded(text) if text else [{}, {}]
            table = _Table(*content)
            found = getattr(table, action)(*arguments)
            after = _encoded([table.values, table.queues])
            if after != text:
                file.seek(0)
                file.truncate()
                file.write(after)
            return found


class TCPStore(Store):
    """A store of a server, which the process with `is_master` runs, in a thread, for all that connect to its host and port.

    Port 0 lets the system choose: `port` says which. With `wait_for_workers` the server's process waits until `world_size`
    processes are there. `use_libuv` chooses between two servers of PyTorch, of which this is neither: `libuvBackend` tells what
    was asked for. DistNetworkError: there is no server in `timeout`, or another program has the port. DistStoreError: not all
    processes came.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self.host, self._timeout = host_name, timeout
        self.libuvBackend = use_libuv
        self._lock = threading.Lock()
        self._server = _Server(port, master_listen_fd, multi_tenant) if is_master else None
        self.port = self._server.port if self._server else port
        self._connection = _connected(self.host, self.port, timeout.total_seconds())
        self._stream = self._connection.makefile("rwb")
        if wait_for_workers and world_size:
            self._wait_for_all(world_size, timeout.total_seconds())

    def _wait_for_all(self, count: int, seconds: float) -> None:
        there, end = self.add(_WORKERS, 1), time.monotonic() + seconds
        while self._server is not None and there < count:
            if time.monotonic() >= end:
                raise DistStoreError(
                    f"Timed out after {seconds:g} seconds waiting for clients. {there}/{count} clients joined."
                )
            time.sleep(_LONGEST_PAUSE)
            there = self.add(_WORKERS, 0)

    def clone(self) -> TCPStore:
        """Return a store with a connection of its own to the same server."""
        return TCPStore(self.host, self.port, timeout=self._timeout, use_libuv=self.libuvBackend)

    def __repr__(self) -> str:
        addresses = [":".join(map(str, name[:2])) for name in (self._connection.getsockname(), self._connection.getpeername())]
        socket_of = f"SocketImpl(fd={self._connection.fileno()}, addr={addresses[0]}, remote={addresses[1]})"
        server = f"TCPServer(port={self.port})" if self._server else "<nullptr>"
        return f"TCPStore(client=TCPClient({socket_of}), server={server})"

    def _call(self, action: str, *arguments: Any) -> Any:
        with self._lock:
            _write(self._stream, [action, *arguments])
            answer = _read(self._stream)
        if answer is None:
            raise DistNetworkError(f"TCPStore: the server at {self.host}:{self.port} is gone")
        found, error = answer
        if error is not None:
            raise ValueError(error)
        return found


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    end = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(seconds, 1))
        except OSError as error:
            if time.monotonic() >= end:
                raise DistNetworkError(
                    f"The client socket has timed out after {round(1000 * seconds)}ms while trying to connect to "
                    f"({host}, {port}): {error}"
                ) from error
            time.sleep(_LONGEST_PAUSE)
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("", port), backlog=512)
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, code: {error.errno}, "
            f"message: {(error.strerror or '').lower()}"
        ) from error


class _Server:
    """Answers the calls of all connections, each in a thread."""

    _running: dict[int, _Server] = {}

    def __init__(self, port: int, descriptor: int | None, shared: bool) -> None:
        known = self._running.get(port) if shared else None
        self._table, self._lock = (known._table, known._lock) if known else (_Table(), threading.Lock())
        if known:
            self.port = known.port
            return
        self._socket = _listening(port) if descriptor is None else socket.socket(fileno=descriptor)
        self._socket.listen(512)
        self.port = self._socket.getsockname()[1]
        self._running[self.port] = self
        threading.Thread(target=self._accept, daemon=True, name="rushlight-store").start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rwb")
        while (call := _read(stream)) is not None:
            action, *arguments = call
            if action not in vars(_Table) or action.startswith("_"):
                break
            found, error = None, None
            with self._lock:
                try:
                    found = getattr(self._table, action)(*arguments)
                except ValueError as raised:  # such as a sum with a value that is no number
                    error = str(raised)
            _write(stream, [found, error])
        connection.close()


def _write(stream: Any, message: list) -> None:
    stream.write(_encoded(message).encode("latin-1") + b"\n")
    stream.flush()


def _read(stream: Any) -> Any:
    """Return the next message; None at the end."""
    try:
        line = stream.readline()
    except OSError:
        return None
    return _decoded(line.decode("latin-1")) if line else None


def _encoded(value: Any) -> str:
    """Return a message as JSON in ASCII; bytes are objects with one key, which no string is."""
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, dict):
        return {"entries": [[key, _plain(each)] for key, each in value.items()]}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _decoded(text: str) -> Any:
    return json.loads(text, object_hook=_restored)


def _restored(value: dict) -> Any:
    return value["bytes"].encode("latin-1") if "bytes" in value else dict(value["entries"])
