"""Stores in memory, in a file and by a server have one behaviour."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import rushlight.distributed as dist


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "file":
        return dist.FileStore(tmp_path / "store", 2)
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True)
    return dist.PrefixStore("part", dist.HashStore()) if request.param == "prefix" else dist.HashStore()


def test_values_and_numbers(store):
    store.set("a", "text")
    store.set("b", b"\x00\xff\n")
    assert store.get("a") == b"text" and store.multi_get(["a", "b"]) == [b"text", b"\x00\xff\n"]
    assert [store.add("n", 2), store.add("n", -5)] == [2, -3] and store.get("n") == b"-3"
    store.append("a", "s")
    assert store.get("a") == b"texts"
    assert store.compare_set("a", "other", "new") == b"texts" and store.compare_set("a", "texts", "new") == b"new"
    assert store.compare_set("fresh", "", "first") == b"first"
    assert store.check(["a", "b"]) and not store.check(["a", "z"])
    assert store.delete_key("a") and not store.delete_key("a")


def test_queues(store):
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert store.queue_len("q") == 2 and store.queue_pop("q") == b"1" and store.queue_pop("q") == b"2"
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)


def test_waiting(store):
    threading.Timer(0.05, lambda: store.set("late", "x")).start()
    store.wait(["late"], timedelta(seconds=10))
    store.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(dist.DistStoreError, match="timeout"):
        store.get("never")


def test_clients_of_one_server():
    server = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("localhost", server.port, wait_for_workers=False)
    client.set("k", "v")
    assert server.get("k") == b"v"
    with pytest.raises(dist.DistNetworkError):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(milliseconds=50))


def test_a_program_s_own_store_serves_behind_a_prefix():
    class Own(dist.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value

        def get(self, key):
            return self.values.get(key, b"")

        def compare_set(self, key, expected, desired):
            if self.values.get(key, b"") == expected:
                self.values[key] = desired
            return self.values[key]

    own = Own()
    part = dist.PrefixStore("part", own)
    part.set("a", "x")
    part.append("a", "y")
    assert own.values == {"part/a": b"xy"} and part.multi_get(["a"]) == [b"xy"] and not part.has_extended_api()
    with pytest.raises(NotImplementedError, match="Not implemented"):
        own.append("a", "y")
    with pytest.raises(ValueError, match="must not be None"):
        dist.PrefixStore("part", None)


def test_the_last_store_of_a_file_removes_it(tmp_path):
    first, second = (dist.FileStore(tmp_path / "store", 2) for _ in range(2))
    del first
    assert second.num_keys() == 1 and (tmp_path / "store").exists()
    del second
    assert not (tmp_path / "store").exists()


def test_processes_meet_by_an_address(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/place?rank=1&world_size=2"))
    assert (rank, size, type(store)) == (1, 2, dist.FileStore)
    dist.register_rendezvous_handler("own", lambda url, **_: iter([(store, 3, 4)]))
    assert next(dist.rendezvous("own://")) == (store, 3, 4)
    for kind, text, url in (
        (ValueError, "path missing", "file://?rank=0&world_size=1"),
        (ValueError, "rank parameter missing", "tcp://127.0.0.1:1?world_size=1"),
        (ValueError, "size parameter missing", "tcp://127.0.0.1:1?rank=0"),
        (ValueError, "port number missing", "tcp://127.0.0.1?rank=0&world_size=1"),
        (RuntimeError, "No rendezvous handler for no://", "no://"),
        (RuntimeError, "already registered", None),
    ):
        with pytest.raises(kind, match=text):
            next(dist.rendezvous(url)) if url else dist.register_rendezvous_handler("own", None)


def test_a_server_says_what_it_misses():
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(milliseconds=50))
    server = dist.TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match=f"failed to listen.*{server.port}"):
        dist.TCPStore("127.0.0.1", server.port, 1, True)
    server.set("text", "no number")
    with pytest.raises(ValueError, match="invalid literal"):
        server.add("text", 1)
    assert server.get("text") == b"no number"
