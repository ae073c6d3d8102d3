"""Code of archives' functions that the cache folder holds for other processes, and for other modules of this one."""

from __future__ import annotations

import io
import marshal
import zipfile
from pathlib import Path

import pytest

import rushlight as rl
from rushlight.jit.runtime.executor import executor_of
from rushlight.jit.runtime.kept_code import CannotKeep, to_data
from rushlight.utils.native import cache

ARCHIVES = sorted(path for folder in ("jit", "quantized") for path in (Path(__file__).parents[1] / folder / "archives").glob("*.pt"))


class Inner(rl.nn.Module):
    def forward(self, x):
        if x.size(0) > 2:
            return x[0] + x[-1]
        return x.sum(0)


class Net(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.weight = rl.nn.Parameter(rl.arange(3.0))

    def forward(self, x, scale: float = 2.0):
        total = self.inner(x)
        for i in range(x.size(0)):
            total = total + x[i] * self.weight * scale
        return total.reshape(3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The cache folder of one test."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def archive() -> bytes:
    return rl.jit.script(Net()).save_to_buffer()


def load(data: bytes):
    return rl.jit.load(io.BytesIO(data))


def forward_of(module):
    return module._c.type.find_method("forward")


def test_a_second_module_runs_without_being_compiled(archive, folder):
    first, second = load(archive), load(archive)
    x = rl.arange(12.0).reshape(4, 3)
    expected = first(x)
    (entry,) = folder.glob("*.code")
    used = entry.stat().st_mtime_ns
    assert rl.equal(second(x), expected) and rl.equal(second(x, 1.0), first(x, 1.0)) and rl.equal(second(x[:2]), first(x[:2]))
    assert forward_of(first)._define is None and forward_of(second)._define is not None
    assert entry.stat().st_mtime_ns >= used and list(folder.glob("*.code")) == [entry]


def test_code_and_graph_are_what_compiling_gives(archive):
    modules = load(archive), load(archive)
    x = rl.ones(3, 3)
    plans = []
    for module in modules:
        module(x)
        plans.append(executor_of(forward_of(module)).plan())
    made, kept = plans
    assert str(kept.code) == str(made.code) and kept.code.names == made.code.names
    assert str(modules[1].graph_for(x)) == str(modules[0].graph_for(x))
    graph = kept.graph
    assert all(node.graph is graph and value.node is node for node in graph.all_nodes() for value in node.outputs)
    assert [node.kind for node in kept.code.nodes] == [node.kind for node in made.code.nodes]


def test_an_error_names_the_line_as_before(archive):
    messages = []
    for _ in range(2):
        with pytest.raises(rl.jit.Error) as raised:
            load(archive)(rl.ones(2, 4))
        messages.append(str(raised.value))
    assert messages[0] == messages[1] and "total + x[i] * self.weight" in messages[1]


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_methods_of_archives_come_back(path):
    codes = []
    for _ in range(2):
        module = rl.jit.load(path)
        codes.append({})
        for each in module.modules():
            for name, method in each._c.type.methods.items():
                try:
                    codes[-1][each._c.type.name, name] = executor_of(method).plan().code
                except RuntimeError:  # it needs what the library lacks
                    codes[-1][each._c.type.name, name] = None
    for key, made in codes[0].items():
        assert str(made) == str(codes[1][key])
        if made is not None:
            assert (made.register_count, made.input_count, made.output_count) == tuple(
                getattr(codes[1][key], name) for name in ("register_count", "input_count", "output_count")
            )


def test_a_damaged_entry_is_compiled_anew(archive, folder):
    x = rl.ones(4, 3)
    expected = load(archive)(x)
    (entry,) = folder.glob("*.code")
    whole = entry.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40], bytes([whole[0] ^ 1]) + whole[1:], whole + b"x"):
        entry.write_bytes(damaged)
        assert rl.equal(load(archive)(x), expected)
        assert entry.read_bytes() == whole


def test_what_is_no_code_is_compiled_anew(archive, folder):
    x = rl.ones(4, 3)
    expected = load(archive)(x)
    (entry,) = folder.glob("*.code")
    content = list(marshal.loads(cache.read(entry)))
    forged = [None, 7, (), content[:-1], [*content[:7], 10**12, *content[8:]], [*content[:2], [("aten::no_such", 1, 0, "")], *content[3:]],
              [*content[:2], [("prim::PythonOp", 1, None)], *content[3:]], [*content[:3], [99], *content[4:]],
              [*content[:4], [("__torch__.Gone", "forward")], *content[5:]]]  # fmt: skip
    for each in forged:
        cache.keep(entry, marshal.dumps(each))
        assert rl.equal(load(archive)(x), expected)


def changed(data: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """An archive with other bytes in a record."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for each in source.infolist():
            content = source.read(each)
            target.writestr(each.filename, content.replace(old, new) if each.filename.endswith(name) else content)
    return out.getvalue()


def test_other_code_and_other_constants_have_other_entries(archive, folder):
    x = rl.ones(4, 3)
    assert rl.equal(load(archive)(x), rl.tensor([2.0, 10.0, 18.0]))
    other = changed(archive, ".py", b"torch.select(x, 0, -1)", b"torch.select(x, 0, -2)")
    assert other != archive and rl.equal(load(other)(x), rl.tensor([2.0, 10.0, 18.0]))
    assert len(list(folder.glob("*.code"))) == 2

    frozen = rl.jit.freeze(load(archive).eval()).save_to_buffer()
    weights = rl.arange(3.0).numpy().tobytes()
    heavier = changed(frozen, "constants/0", weights, rl.ones(3).numpy().tobytes())
    assert rl.equal(load(frozen)(x), rl.tensor([2.0, 10.0, 18.0]))
    assert rl.equal(load(heavier)(x), rl.full((3,), 10.0)) and rl.equal(load(heavier)(x), rl.full((3,), 10.0))
    assert rl.equal(load(frozen)(x), rl.tensor([2.0, 10.0, 18.0]))


def test_nothing_is_read_from_a_folder_of_others(archive, folder):
    x = rl.ones(4, 3)
    load(archive)(x)
    folder.chmod(0o777)
    module = load(archive)
    module(x)
    assert forward_of(module)._define is None


def test_nothing_is_read_where_somebody_looks_at_the_passes(archive, folder, monkeypatch):
    x = rl.ones(4, 3)
    load(archive)(x)
    monkeypatch.setenv("RUSHLIGHT_JIT_LOG_LEVEL", "inline")
    module = load(archive)
    module(x)
    assert forward_of(module)._define is None


def test_what_has_no_name_is_not_kept(archive):
    @rl.jit.script
    def forked(x):
        return rl.jit.wait(rl.jit.fork(rl.sin, x))

    code = executor_of(forked._function).plan().code
    with pytest.raises(CannotKeep):
        to_data(code, None)
