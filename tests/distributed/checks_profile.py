"""Collectives in a profile, on two ranks; assertions run on each."""

from __future__ import annotations

import json
import os
import tempfile

from torch.profiler import profile


def main(torch, dist) -> None:
    check_overlap(torch, dist)
    check_gradients(torch, dist)
    check_what_outlives(torch, dist)


def events_of(found, name):
    return [event for event in found.events() if event.name == name]


def check_overlap(torch, dist) -> None:
    x, y = torch.ones(300), torch.ones(64, 64)
    with profile() as found:
        work = dist.all_reduce(x, async_op=True)
        y = y @ y
        work.wait()
        dist.broadcast(x, 0)
    (reduced,), (sent,), (product,) = (events_of(found, name) for name in ("gloo:all_reduce", "gloo:broadcast", "aten::mm"))
    assert reduced.is_async and not product.is_async
    assert reduced.time_range.start <= product.time_range.start and product.time_range.start <= reduced.time_range.end
    assert reduced.time_range.end <= sent.time_range.start <= sent.time_range.end
    assert reduced.facts == {
        "Collective name": "all_reduce", "Seq": sent.facts["Seq"] - 1, "dtype": "float32", "In msg nelems": 300, "Bytes": 1200,
        "Process Group Name": "0", "Process Group Ranks": [0, 1], "Group size": 2, "Rank": dist.get_rank(),
    }  # fmt: skip
    sums = {row.key: row for row in found.key_averages()}
    assert sums["gloo:all_reduce"].count == 1 and sums["gloo:all_reduce"].self_cpu_time_total == 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        found.export_chrome_trace(path)
        with open(path) as file:
            ends = [each for each in json.load(file)["traceEvents"] if each["name"] == "gloo:all_reduce"]
    assert [each["ph"] for each in ends] == ["b", "e"] and ends[0]["args"]["Bytes"] == 1200 and ends[0]["ts"] <= ends[1]["ts"]


def check_gradients(torch, dist) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    with profile() as found:
        model(torch.ones(2, 8)).sum().backward()
    (reduced,), waits = events_of(found, "gloo:all_reduce"), events_of(found, "mpi:wait")
    assert reduced.facts["In msg nelems"] == 72 and len(waits) <= 1


def check_what_outlives(torch, dist) -> None:
    x, ready = torch.ones(4), torch.ones(1)
    if dist.get_rank() == 0:
        with profile() as found:
            work = dist.all_reduce(x, async_op=True)
        dist.send(ready, 1)
        work.wait()
        (reduced,) = events_of(found, "gloo:all_reduce")
        assert 0 < reduced.time_range.elapsed_us() < 60e6
    else:
        dist.recv(ready, 0)
        dist.all_reduce(x)
    assert x.tolist() == [2] * 4
