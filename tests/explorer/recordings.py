"""Recordings made by hand, for tests of the explorer's page."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

SOURCE = """import rushlight as torch


def attend(x, w, b):
    scores = x @ w + b
    print("scored")
    return torch.softmax(scores, dim=-1)
"""
GRAPH = """def forward(self, x, w, b):
    mm = torch.ops.aten.mm.default(x, w)
    add = torch.ops.aten.add.Tensor(mm, b)
    softmax = torch.ops.aten._softmax.default(add, -1, False)
    return (softmax,)
"""
FUSION = """group 0:
  buf1: Template mm

group 1:
  buf2: Reduction softmax
"""
CODE = """// mm, add
static void kernel_0(const float* in0, float* out0) {
  gemm(in0, out0);
}

// _softmax
static void kernel_1(const float* in0, float* out0) {
  softmax(in0, out0);
}
"""


def recording(title: str, **fields: Any) -> Data:
    """A recording, with nothing in it but what is given."""
    machine = {
        "processor": "a processor", "threads": 2, "python": "3.12.4", "rushlight": "0.1.0", "bandwidth": 2e10, "flops": 1e11,
    }  # fmt: skip
    empty: Data = {"notes": [], "output": "", "error": None, "files": [], "units": [], "calls": [], "interpreted": [], "eager": [], "tapes": []}
    about = {"version": 1, "title": title, "command": f"python {title}.py", "made": "2026-01-02T03:04:05", "machine": machine}
    return about | empty | fields


def unit(number: int, name: str, **fields: Any) -> Data:
    """A compiled unit without stages."""
    lists = ("captured", "broken", "untouched", "breaks", "guards", "stages", "kernels", "memory")
    facts = {"id": number, "kind": "capture", "name": name, "place": None, "last": None, "began": 0.0, "seconds": 0.5}
    return facts | {"status": "compiled", "why": "", "recompile": None, "steps": None} | {key: [] for key in lists} | fields


def stage(number: int, view: str, name: str, text: str, places: list, **fields: Any) -> Data:
    """A stage of a unit."""
    languages = {"code": "cpp", "graph": "python", "forward": "python", "source": "python", "ir": "torchscript"}
    facts = {"id": number, "view": view, "stage": name, "title": name, "language": languages.get(name, "text")}
    return facts | {"text": text, "places": places, "at": 0.1, "seconds": 0.01, "graph": None, "base": None} | fields


def node(name: str, label: str, places: list[str], **fields: Any) -> Data:
    """A node of a graph."""
    kind = label if label in ("input", "output", "constant") else "call"
    facts = {"name": name, "label": label, "kind": kind, "detail": "f32[4, 16]", "places": places}
    return facts | {"path": [], "line": None, "kernel": None} | fields


def kernel(name: str, operators: list[str], places: list[str], **fields: Any) -> Data:
    """A timed kernel of the graph "forward"."""
    facts = {"name": name, "operators": operators, "places": places, "graph": "forward", "calls": 10, "seconds": 2e-5}
    numbers = {"bytes": 4096, "flops": 8192, "share": 0.4, "code": None, "buffers": [], "apart": [], "assembly": ""}
    return facts | numbers | fields


def call(number: int | None, kind: str, at: float, seconds: float, **fields: Any) -> Data:
    """A call of a compiled function."""
    return {"unit": number, "name": "attend", "at": at, "seconds": seconds, "kind": kind, "stages": [], "timed": False} | fields


def small(title: str = "attend") -> Data:
    """A recording in which every view has something to show."""
    file = {"path": "/home/someone/attend.py", "name": "attend.py", "text": SOURCE, "own": True}
    calls = [
        call(0, "compile", 0.0, 0.6, stages=[["capture", 0.1], ["code", 0.4]]),
        call(0, "hit", 0.7, 1e-4, timed=True),
        call(1, "recompile", 0.8, 0.4),
    ]
    steps = [{"keys": ["Autograd", "CPU"], "key": "Autograd", "kernel": "derivatives.sum", "depth": 0}]
    eager = {
        "operator": "aten::sum", "places": ["0:6"], "seconds": 1e-5, "count": 3, "inputs": ["f32[4]"], "outputs": ["f32[]"], "steps": steps,
    }  # fmt: skip
    tape = {
        "title": "backward of sum", "places": ["0:7"], "edges": [[0, 1]], "bytes": 64,
        "nodes": [
            {"name": "SumBackward0", "saved": [], "places": ["0:7"]},
            {"name": "MulBackward0", "saved": [["other", "f32[16]", 64]], "places": ["0:5"]},
        ],
    }  # fmt: skip
    return recording(
        title, files=[file], units=[_attend(), _again(), _script()], calls=calls, eager=[eager], tapes=[tape],
        notes=["The assembly was left out."], output="scored\n",
    )  # fmt: skip


def _attend() -> Data:
    nodes = [
        node("x", "input", []), node("w", "input", []), node("b", "input", []),
        node("mm", "aten.mm", ["0:5"], line=2, kernel="kernel_0"),
        node("add", "aten.add", ["0:5"], line=3, kernel="kernel_0"),
        node("softmax", "aten._softmax", ["0:7"], line=4, kernel="kernel_1"),
        node("output", "output", []),
    ]  # fmt: skip
    edges = [[0, 3], [1, 3], [3, 4], [2, 4], [4, 5], [5, 6]]
    places = [[2, 3, ["0:5"]], [4, 4, ["0:7"]]]
    stages = [
        stage(0, "Capture", "bytecode", "LOAD_FAST x\nRETURN_VALUE\n", [[1, 1, ["0:5"]]]),
        stage(1, "Graphs", "graph", GRAPH.replace("torch.ops.aten.", "torch."), places),
        stage(2, "Graphs", "forward", GRAPH, places, graph={"nodes": nodes, "edges": edges}, base=1),
        stage(4, "Inductor", "fusion", FUSION, [[2, 2, ["0:5"]], [5, 5, ["0:7"]]]),
        stage(3, "Inductor", "code", CODE, [[1, 4, ["0:5"]], [6, 9, ["0:7"]]]),
    ]
    kernels = [
        kernel(
            "kernel_0",
            ["mm", "add"],
            ["0:5"],
            code=[3, 2, 4],
            buffers=["buf1"],
            apart=["buf2: it is a reduction"],
            assembly="\tret\n",
        ),
        kernel("kernel_1", ["_softmax"], ["0:7"], code=[3, 7, 9], seconds=6e-5, buffers=["buf2"]),
    ]
    why = {"reason": "a call with an effect on the world", "hint": "Print outside of it.", "places": ["0:6"]}
    guards = [
        {"text": "x.dtype == torch.float32", "place": "0:4", "failed": False},
        {"text": "x.size(0) == 4", "place": None, "failed": True},
    ]
    memory = {"graph": "forward", "arena": 512, "unshared": 768, "blocks": [["buf0", 256, 0, 0, 1], ["buf1", 256, 256, 1, 1]]}
    return unit(
        0, "attend", place="0:4", last=7, captured=["0:5", "0:7"], broken=["0:6"], breaks=[why], guards=guards, stages=stages,
        kernels=kernels, memory=[memory],
    )  # fmt: skip


def _again() -> Data:
    return unit(
        1, "attend", place="0:4", status="eager", why="it changed too often", recompile={"of": 0, "failed": ["x.size(0) == 4"]}
    )


def _script() -> Data:
    ir = "graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  return (%1)\n"
    stages = [
        stage(10, "TorchScript", "source", "def forward(self, x):\n    return torch.relu(x)\n", []),
        stage(11, "TorchScript", "ir", ir, [[2, 2, ["0:5"]]]),
        stage(12, "TorchScript", "ir", ir.replace("relu", "relu_"), [[2, 2, ["0:5"]]], title="after inplace", base=11),
    ]
    steps = {
        "instructions": ["LOAD 1", "OP aten::relu", "RET"], "places": ["0:5", "0:5", None], "cut": False,
        "steps": [[0, [], [["x", "f32[2]"]]], [1, ["f32[2]"], [["x", "f32[2]"]]], [2, ["f32[2] positive"], [["x", "f32[2]"]]]],
    }  # fmt: skip
    return unit(2, "Gate.forward", kind="script", status="interpreted", place="0:4", stages=stages, steps=steps)


HOSTILE = '</script><script>window.ran=1</script><img src=x onerror="window.ran=1">\0\ud800\u2028\u2029🕯️&lt;<!--'


def hostile() -> Data:
    """A recording whose every text tries to be markup."""

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoil(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [spoil(each, key) for each in value]
        fixed = key in ("view", "kind", "language", "status", "place", "places", "captured", "broken", "untouched", "made")
        return value + HOSTILE if isinstance(value, str) and not fixed else value

    return spoil(small())


KERNELS, CODE_LINES, NODES, LINES = 1000, 10_000, 3000, 400


def large() -> Data:
    """1,000 kernels, 10,000 lines of C++ and 3,000 nodes, which come from 400 lines."""
    text = "".join(f"y{line} = torch.relu(y{line - 1}) + {line}\n" for line in range(1, LINES + 1))
    file = {"path": "/home/someone/large.py", "name": "large.py", "text": text, "own": True}
    each = CODE_LINES // KERNELS
    kernels = [
        kernel(
            f"kernel_{at}", ["relu", "add"], [f"0:{at % LINES + 1}"], seconds=1e-6 * (1 + at % 37), flops=100 * (1 + at % 91),
            code=[2, at * each + 1, at * each + each - 1],
        )
        for at in range(KERNELS)
    ]  # fmt: skip
    body = "\n".join(f"    const auto tmp{line} = lane.load(in0 + {line});" for line in range(each - 3))
    code = "\n".join(f"static void kernel_{at}(const float* in0) {{\n{body}\n}}\n" for at in range(KERNELS))
    places = [[at * each + 1, at * each + each - 1, [f"0:{at % LINES + 1}"]] for at in range(KERNELS)]
    nodes = [
        node(
            f"relu_{at}", "aten.relu", [f"0:{at * KERNELS // NODES % LINES + 1}"], line=at + 1, kernel=f"kernel_{at * KERNELS // NODES}",
            path=["model", f"model.layers.{at // 250}", f"model.layers.{at // 250}.part{at // 50 % 5}"],
        )
        for at in range(NODES)
    ]  # fmt: skip
    edges = [[at, at + 1] for at in range(NODES - 1)] + [[at, at + 7] for at in range(0, NODES - 7, 5)]
    graph = "".join(f"relu_{at} = torch.ops.aten.relu.default(relu_{at - 1})\n" for at in range(NODES))
    stages = [
        stage(1, "Graphs", "forward", graph, [], graph={"nodes": nodes, "edges": edges}),
        stage(2, "Inductor", "code", code, places),
    ]
    captured = [f"0:{line}" for line in range(1, LINES + 1)]
    only = unit(0, "large", place="0:1", captured=captured, stages=stages, kernels=kernels)
    return recording("large", files=[file], units=[only], calls=[call(0, "hit", 0.0, 0.1, timed=True)])


def changed() -> Data:
    """The small recording after a change: one line, one kernel less, other times."""
    other = small("attend, changed")
    file, attend = other["files"][0], other["units"][0]
    file["text"] = file["text"].replace("softmax", "log_softmax")
    attend["stages"][2]["text"] = attend["stages"][2]["text"].replace("_softmax", "_log_softmax")
    attend["kernels"][0]["seconds"] *= 2
    del attend["kernels"][1]
    return other
