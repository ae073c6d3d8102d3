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
