"""Captures that another process made: found where everything is as it was, and only there."""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import textwrap
import types
import weakref
from enum import Enum
from pathlib import Path

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list
from rushlight.compiler import kept_captures
from rushlight.compiler.kept_graphs import KeptGraph, to_data
from rushlight.dynamo import capture, frames, handlers
from rushlight.dynamo.fingerprints import Fingerprints, of_code
from rushlight.fx.graph_module import GraphModule
from tests.dynamo.test_threads import run_in_threads

ROOT = Path(__file__).parents[2]
SCALE = 2.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(path))
    return path


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """What other tests have told the compiler for the whole process does not count here."""
    monkeypatch.setattr(kept_captures, "ALLOWED_IN_GRAPH", {})
    monkeypatch.setattr(kept_captures, "SUBSTITUTED", [])


@pytest.fixture
def captured(monkeypatch) -> list:
    """The names of the frames that are captured from here on."""
    seen, capture_frame = [], capture.capture_frame

    def noted(frame, *rest, **named):
        seen.append(frame.f_code.co_name)
        return capture_frame(frame, *rest, **named)

    monkeypatch.setattr(capture, "capture_frame", noted)
    return seen


class Block(nn.Module):
    factor = 3.0

    def __init__(self, size=4, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.scale = scale

    def forward(self, x):
        return self.norm(self.linear(x)).relu() * self.scale + self.shift(x)

    def shift(self, x):
        return x * self.factor


class Model(nn.Module):
    def __init__(self, size=4, depth=3, scale=1.0):
        super().__init__()
        self.blocks = nn.ModuleList([Block(size, scale) for _ in range(depth)])
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(size, 2)

    def forward(self, x, mask=None):
        for block in self.blocks:
            x = block(x)
        if mask is not None:
            x = x * mask
        return {"result": self.dropout(self.head(x)), "last": x}


def in_a_new_process(model, *args, **options):
    """What a model gives that is compiled as in another process, asserted to be what it gives in eager."""
    frames.reset()
    compiled = torch.compile(model, **options)
    with torch.no_grad():
        found, wanted = compiled(*args), model(*args)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    return compiled


def found_again(captured, model, *args, **options) -> bool:
    """Whether a capture was found for a call in a new process."""
    before = len(captured)
    in_a_new_process(model, *args, **options)
    return len(captured) == before


X = torch.randn(5, 4)


def test_a_second_process_captures_nothing(captured):
    in_a_new_process(Model().eval(), X)
    assert captured == ["call_model"] or captured == ["forward"]
    for _ in range(2):
        assert found_again(captured, Model().eval(), X)  # other parameters, other modules


def test_functions_closures_and_literals(captured):
    def make(weight, count):
        def function(x, *, power=2):
            return (x @ weight) ** power + count

        return function

    weight = torch.randn(4, 4)
    in_a_new_process(make(weight, 3), X)
    assert found_again(captured, make(torch.randn(4, 4), 3), X)
    assert not found_again(captured, make(weight, 4), X)  # which is a guard's concern
    assert not found_again(captured, make(torch.randn(4, 5), 4), X)


def test_what_was_found_is_guarded(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    compiled = in_a_new_process(model, X)
    assert len(captured) == 1
    model.blocks[1].scale = 5.0
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-5)
    assert len(captured) == 2
    model.head.weight = nn.Parameter(torch.zeros(2, 4))
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-5)
    assert len(captured) == 3


def test_changed_parameters_are_read(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    compiled = in_a_new_process(model, X)
    with torch.no_grad():
        for _ in range(3):  # with weights packed in passing, packed for all calls, and packed again
            torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-5)
        for parameter in model.parameters():
            parameter.mul_(0.5)
        for _ in range(3):
            torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-5)
    assert len(captured) == 1


def change_scale(model):
    model.blocks[2].scale = 7.0


def change_kind(model):
    model.blocks[0] = nn.Identity()


def train(model):
    model.blocks.train()


def share_a_block(model):
    model.blocks[1] = model.blocks[0]


def share_a_parameter(model):
    model.blocks[1].linear.weight = model.blocks[0].linear.weight


def share_memory(model):
    both = torch.randn(2, 4, 4)
    model.blocks[0].linear.weight = nn.Parameter(both[0])
    model.blocks[1].linear.weight = nn.Parameter(both[0])


def move_in_memory(model):
    model.head.weight = nn.Parameter(torch.randn(3, 4)[1:])


def remove_a_bias(model):
    model.head.bias = None


def other_strides(model):
    model.blocks[0].linear.weight = nn.Parameter(torch.randn(4, 4).t())


def other_type(model):
    model.blocks[0].linear.to(torch.float64).to(torch.float32)
    model.blocks[0].linear.weight = nn.Parameter(model.blocks[0].linear.weight.detach(), requires_grad=False)


def own_forward(model):
    model.blocks[1].forward = lambda x: x * 100


def own_method(model):
    model.blocks[1].shift = types.MethodType(lambda self, x: x * 50, model.blocks[1])


def another_length(model):
    model.blocks.append(Block())


CHANGES = [change_scale, change_kind, train, share_a_block, share_a_parameter, share_memory, move_in_memory, remove_a_bias,
           other_strides, other_type, own_forward, own_method, another_length]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_another_model_is_captured(captured, change):
    in_a_new_process(Model().eval(), X)
    model = Model().eval()
    change(model)
    assert not found_again(captured, model, X)
    assert found_again(captured, model, X)


def test_hooks_are_seen(captured):
    in_a_new_process(Model().eval(), X)
    for register in ("register_forward_hook", "register_forward_pre_hook"):
        model = Model().eval()
        getattr(model.blocks[1], register)(lambda module, *seen: seen[-1] * 2 if len(seen) == 2 else (seen[0][0] * 3,))
        assert not found_again(captured, model, X)
        assert found_again(captured, Model().eval(), X)


def test_models_with_other_settings_are_kept_beside_one_another(captured):
    models = [Model(scale=scale).eval() for scale in (1.0, 2.0, 3.0)]
    for model in models:
        in_a_new_process(model, X)
    assert all(found_again(captured, model, X) for model in models)


def test_modules_of_many_kinds(captured):
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.added = nn.ParameterList([torch.randn(4) for _ in range(3)])
            self.named = nn.ModuleDict({"first": nn.Linear(4, 4), "second": nn.ReLU()})
            self.listed = [nn.Linear(4, 4), nn.BatchNorm1d(4)]
            self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
            self.register_buffer("places", torch.arange(4.0), persistent=False)

        def __getattr__(self, name):
            return 5.0 if name == "magic" else super().__getattr__(name)

        @torch.no_grad()
        def forward(self, x):
            for parameter in self.added:
                x = x + parameter * self.magic
            for module in (*self.named.values(), *self.listed):
                x = module(x)
            return self.layer(x[None]) + self.places

    def model():
        made = Many().eval()
        made.listed[1].eval()
        return made

    in_a_new_process(model(), X)
    assert found_again(captured, model(), X)


@pytest.mark.filterwarnings("error")
def test_modules_that_are_made_in_a_compiled_function():
    def function(x):
        return nn.Linear(4, 4)(x).shape

    for _ in range(2):
        frames.reset()
        assert torch.compile(function)(X) == (5, 4)


def test_methods_decorators_and_partials(captured):
    class Holder:
        def __init__(self, factor):
            self.factor = factor
            self.weight = torch.randn(4, 4)

        def run(self, x):
            return x @ self.weight * self.factor

    def doubled(function):
        @functools.wraps(function)
        def run(x):
            return function(x) * 2

        return run

    def added(count):
        return doubled(lambda x: x + count)

    def derived(base):
        class Derived(base):
            def forward(self, x):
                return super().forward(x) + 1

        return Derived().eval()

    for make, one, other in (
        (lambda factor: Holder(factor).run, 2.0, 3.0), (added, 1, 2), (derived, nn.ReLU, nn.GELU),
        (lambda alpha: functools.partial(torch.add, X, alpha=alpha), 2, 3),
    ):  # fmt: skip
        in_a_new_process(make(one), X)
        assert found_again(captured, make(one), X)
        assert not found_again(captured, make(other), X)


def test_threads_share_what_was_kept(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    frames.reset()
    with torch.no_grad():
        wanted = model(X)

    def work(number):
        compiled = torch.compile(model)
        for _ in range(3):
            torch.testing.assert_close(compiled(X), wanted, rtol=1e-4, atol=1e-5)

    assert not run_in_threads(work, 6) and len(captured) == 1


def test_modules_are_not_kept_alive(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    compiled = in_a_new_process(model, X)
    assert len(captured) == 1
    block = weakref.ref(model.blocks[1])
    del compiled, model
    gc.collect()
    assert block() is None


def test_modes_and_arguments_are_told_apart(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    for args in ((X[:2],), (X.double().float(), torch.ones(5, 4)), (X.t().contiguous().t(),)):
        assert not found_again(captured, model, *args)
        assert found_again(captured, model, *args)
    with torch.inference_mode():
        assert not found_again(captured, model, X)
    assert not found_again(captured, model, X, fullgraph=True)
    assert not found_again(captured, model, X, dynamic=False)
    assert found_again(captured, model, X)


def test_methods_that_were_replaced(captured, monkeypatch):
    for owner, name, other in (
        (Block, "shift", lambda self, x: x * 7), (Block, "factor", 4.0), (nn.LayerNorm, "forward", lambda self, x: x + 1),
        (nn.Linear, "extra", 1), (F, "layer_norm", lambda x, *rest: x * 2), (torch.Tensor, "relu", lambda x: x - 3),
    ):  # fmt: skip
        in_a_new_process(Model().eval(), X)
        assert found_again(captured, Model().eval(), X)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, other, raising=False)
            assert not found_again(captured, Model().eval(), X), name


def test_tensors_of_any_dtype(captured):
    function = lambda x, mask, places: x.masked_fill(mask, 0.0)[places]  # noqa: E731
    inputs = X, X > 0, torch.tensor([1, 0])
    in_a_new_process(function, *inputs)
    assert found_again(captured, function, *inputs)


def test_globals_are_looked_at(captured, monkeypatch):
    def function(x):
        return x * SCALE

    in_a_new_process(function, X)
    assert found_again(captured, function, X)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert not found_again(captured, function, X)


class Colour(Enum):
    RED = 1
    BLUE = 2


class Config:
    def __init__(self, colour=Colour.RED):
        self.colour = colour
        self.names = {"a": 1, "b": (2, 3)}

    @property
    def factor(self):
        return self.names["b"][0] * 1.5

    @staticmethod
    def half(x):
        return x / 2

    @classmethod
    def made(cls, x):
        return x + len(cls.__name__)


class Configured(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        y = x + 1 if self.config.colour is Colour.RED else x - 1
        if "a" in {"a", "b"} and x.dtype in (torch.float32, torch.float64):
            y = self.config.half(y) * self.config.factor
        return self.config.made(y).to(torch.float64)


def test_objects_of_a_program(captured):
    in_a_new_process(Configured(Config()), X)
    assert found_again(captured, Configured(Config()), X)
    assert not found_again(captured, Configured(Config(Colour.BLUE)), X)
    config = Config(Colour.BLUE)
    config.names["b"] = (4, 3)
    assert not found_again(captured, Configured(config), X)


def test_what_differs_from_process_to_process_is_not_kept(captured):
    functions = [
        lambda x: x + len([name for name in {"p", "q"} if name > "p"]), lambda x: x + hash("text") % 3,
        lambda x: x + len(f"{test_globals_are_looked_at}"), lambda x: x + len(list({"p", "q"})[0]),
    ]  # fmt: skip
    for function in functions:
        in_a_new_process(function, X)
        assert not found_again(captured, function, X)
    numbers = lambda x: x + sum({5, 3})  # noqa: E731
    in_a_new_process(numbers, X)
    assert found_again(captured, numbers, X)


def test_sizes_open_up_as_in_the_process_that_captured(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    compiled = in_a_new_process(model, X)
    assert len(captured) == 1
    for rows in (6, 7, 8, 9):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(captured) == 2  # with open sizes, as history has it


@pytest.mark.parametrize("tell", ["allow_in_graph", "substitute_in_graph"])
def test_what_the_compiler_was_told_keeps_captures_away(captured, monkeypatch, tell):
    def followed(x):
        return x * 2

    function = lambda x: followed(x) + 1  # noqa: E731
    in_a_new_process(function, X)
    monkeypatch.setattr(kept_captures, "ALLOWED_IN_GRAPH", handlers.ALLOWED_IN_GRAPH)
    monkeypatch.setattr(kept_captures, "SUBSTITUTED", handlers.SUBSTITUTED)
    try:
        if tell == "allow_in_graph":
            torch.compiler.allow_in_graph(followed)
        else:
            torch.compiler.substitute_in_graph(followed)(lambda x: x + x)
        for _ in range(2):
            assert not found_again(captured, function, X)
    finally:
        handlers.ALLOWED_IN_GRAPH.pop(id(followed), None)
        handlers.HANDLERS.pop(followed, None)


def test_captures_are_not_kept_where_that_is_switched_off(captured, folder):
    for _ in range(2):
        in_a_new_process(Model().eval(), X, options={"keep_captures": False})
    assert len(captured) == 2 and not list(folder.glob("*.capture"))
    in_a_new_process(Model().eval(), X)
    assert not found_again(captured, Model().eval(), X, options={"keep_captures": False})


def test_texts_and_reasons(captured):
    model = Model().eval()
    (first,) = _debug_get_cache_entry_list(in_a_new_process(model, X)._compiled)
    (second,) = _debug_get_cache_entry_list(in_a_new_process(model, X)._compiled)
    assert len(captured) == 1
    one, other = first.guarded_code, second.guarded_code
    assert one.source.replace(one.graph_name, other.graph_name) == other.source and one.graph_name != other.graph_name
    assert one.guards.text() == other.guards.text()
    assert [guard.reason for guard in one.guards.guards] == [guard.reason for guard in other.guards.guards]
    assert str(one.graph.graph) == str(other.graph.graph) and one.graph.code == other.graph.code
    values = {"args": (X,), "kwargs": {}, "self": model, "x": X, "mask": None, "__globals": {}, "__closure": None}
    assert isinstance(other.guards.explain(values), str)


def test_a_graph_survives_as_data():
    found = []

    def backend(module, inputs):
        found.append(module)
        return module.forward

    def function(x, y):
        parts = torch.split(x, [1, 3], dim=-1)
        picked = x[1:, None, ..., ::2].to(torch.float64).contiguous(memory_format=torch.contiguous_format)
        return torch.cat([parts[1], y.reshape(x.shape[0], 1)], -1), picked, torch.zeros(2, device="cpu"), x.mean((0, 1))

    inputs = X, torch.randn(5)
    wanted = torch.compile(function, backend=backend)(*inputs)
    attributes = {node.target: getattr(found[0], node.target) for node in found[0].graph.nodes if node.op == "get_attr"}
    again = KeptGraph(to_data(found[0]), attributes)
    assert isinstance(again.module(), GraphModule) and str(again.graph) == str(found[0].graph)
    assert again.code == found[0].code
    assert [node.stack_trace for node in again.graph.nodes] == [node.stack_trace for node in found[0].graph.nodes]
    torch.testing.assert_close(again.forward(*inputs), wanted)


def test_kernels_can_be_looked_at(captured):
    model = Model().eval()
    in_a_new_process(model, X)
    compiled = in_a_new_process(model, X)
    assert len(captured) == 1
    with torch.no_grad(), torch.compiler.profile() as seen:
        compiled(X)
    assert "test_kept_captures.py" in str(seen)


def test_indices_out_of_range_raise_as_in_eager(captured):
    def function(x, i):
        return x[i] * 2

    i = torch.tensor([0, 4, 2])
    in_a_new_process(function, X, i)
    compiled = in_a_new_process(function, X, i)
    assert len(captured) == 1
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(X, torch.tensor([0, 9, 2]))


def test_damaged_entries_are_passed_over(captured, folder):
    model = Model().eval()
    in_a_new_process(model, X)
    (entry,) = folder.glob("*.capture")
    for damage in (lambda data: data[:100], lambda data: data[:-5] + bytes(5), lambda data: b""):
        entry.write_bytes(damage(entry.read_bytes()))
        assert not found_again(captured, model, X)
        assert found_again(captured, model, X)


def test_without_its_plan_a_capture_is_made_anew(captured, folder):
    model = Model().eval()
    in_a_new_process(model, X)
    for plan in folder.glob("*.plan"):
        plan.unlink()
    assert not found_again(captured, model, X)
    assert found_again(captured, model, X)


def test_fingerprints():
    def make(body, extra=""):
        scope = {}
        exec(f"class A:\n{extra}    def f(self, x):\n        return {body}\n", scope)
        return scope["A"]

    of = lambda value: Fingerprints().of(value)  # noqa: E731
    assert of(make("x + 1")) == of(make("x + 1"))
    others = [make("x + 2"), make("x + 1.0"), make("x - 1"), make("x.y"), make("(lambda: x)()"), make("{x, 1}"),
              make("x + 1", "    flag = 1\n"), make("x + 1", "    flag = True\n"), make("x + 1", "    g = property(id)\n"),
              make("x + 1", "    @staticmethod\n    def g(): pass\n")]  # fmt: skip
    assert len({of(kind) for kind in others} | {of(make("x + 1"))}) == len(others) + 1
    assert of(make("x in {'p', 'q', 'r'}")) == of(make("x in {'r', 'p', 'q'}"))
    assert of_code(make("x + 1").f.__code__) != of_code(make("x + 2").f.__code__)


# In processes of their own


def python(folder, *arguments, **environment):
    """What a process prints."""
    known = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT), **environment}
    run = subprocess.run([sys.executable, *map(str, arguments)], env=known, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_small_programs_in_other_processes(tmp_path):
    """All programs of tests/dynamo, by captures of another process, whose hashes are others."""
    first = json.loads(python(tmp_path, "-m", "tests.dynamo.kept_programs", tmp_path / "kept", PYTHONHASHSEED="1"))
    second = json.loads(python(tmp_path, "-m", "tests.dynamo.kept_programs", tmp_path / "kept", PYTHONHASHSEED="2"))
    assert first["differing"] == second["differing"] == []
    assert first["kept"] >= 500 and second["found"] >= 0.98 * first["kept"]


PROGRAM = """
    import sys
    import rushlight as torch
    from rushlight import nn
    from helper import change

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return change(self.linear(x))

    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(3, 4)
    with torch.no_grad():
        found, wanted = torch.compile(model)(x), model(x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    print("rushlight.dynamo.capture" in sys.modules)
"""


def test_what_was_edited_is_captured_again(tmp_path):
    program, helper = tmp_path / "program.py", tmp_path / "helper.py"
    program.write_text(textwrap.dedent(PROGRAM))
    texts = ["def change(x):\n    return x * 2\n", "def change(x):\n    return x * 3\n", "change = lambda x: x.relu()\n"]
    for text in texts:
        helper.write_text(text)
        os.utime(helper, (1e9 + len(text), 1e9 + texts.index(text)))
        ran = [python(tmp_path / "cache", program, PYTHONPATH=f"{ROOT}:{tmp_path}").strip() for _ in range(2)]
        assert ran == ["True", "False"]  # the second process does not even import what captures
