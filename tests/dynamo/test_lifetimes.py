"""What captures keep alive: nothing of the program's. Entries made for objects that are gone are gone too."""

from __future__ import annotations

import gc
import types
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list

pytestmark = pytest.mark.usefixtures("small_heap")


def ones():
    return torch.ones(3)


def call_model(model, x):
    return model(x) + 1


def argument(backend):
    model, x, compiled = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), ones(), torch.compile(call_model, backend=backend)
    compiled(model, x)
    return model, model[0].weight, x


def module(backend):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()
    compiled = torch.compile(model, backend=backend)
    compiled(ones())
    return model, compiled, model[0].weight, model[0].bias


def module_in_place(backend):
    model = nn.Linear(3, 3)
    model.compile(backend=backend)
    model(ones())
    return model, model.weight


def closure(backend):
    model, weight = nn.Linear(3, 3), nn.Parameter(ones())

    def function(x):
        return model(x) * weight

    compiled = torch.compile(function, backend=backend)
    compiled(ones())
    return model, weight, function, compiled


def local_class(backend):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        @torch.compile(backend=backend)
        def forward(self, x):
            return self.linear(x)

    model = Net()
    model(ones())
    return model, Net, model.linear.weight


def broken(backend):
    model = nn.Linear(3, 3)

    def function(x):
        y = model(x)
        if y.sum() > 0:
            return y * 2
        torch.compiler.graph_break()
        return y + model.weight.sum()

    compiled, x = torch.compile(function, backend=backend), ones()
    compiled(x), compiled(-x)
    return model, function, compiled, x


class Holder:
    def __init__(self):
        self.weight, self.calls = ones(), 0

    def step(self, x):
        self.calls += 1
        return x * self.weight


def method(backend):
    holder = Holder()
    compiled = torch.compile(holder.step, backend=backend)
    compiled(ones()), compiled(ones())
    return holder, holder.weight, compiled


def refused(backend):
    model = nn.Linear(3, 3)
    compiled = torch.compile(lambda x: model(x).sum().item(), fullgraph=True, backend=backend)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(ones())
    return model, compiled


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("make", [argument, module, module_in_place, closure, local_class, broken, method, refused])
def test_what_a_program_drops_is_freed(make, backend):
    with torch.no_grad():
        gone = [weakref.ref(value) for value in make(backend)]
    gc.collect()
    gc.collect()  # what the first one let go of: a compiled graph, which is a cycle of its own
    assert [reference() for reference in gone] == [None] * len(gone)


def test_entries_for_objects_that_are_gone_are_removed():
    compiled = torch.compile(call_model, backend="eager")
    models = [nn.Linear(3, 3), nn.Linear(3, 3)]
    for model in models:
        compiled(model, ones())
    assert len(_debug_get_cache_entry_list(compiled)) == 2
    del models[0], model
    gc.collect()
    assert len(_debug_get_cache_entry_list(compiled)) == 1
    assert torch.equal(compiled(models[0], ones()), models[0](ones()) + 1)
    assert len(_debug_get_cache_entry_list(compiled)) == 1


def test_models_that_come_and_go_do_not_reach_the_limit(recwarn):
    graphs = []
    compiled = torch.compile(call_model, backend=lambda module, inputs: (graphs.append(0), module.forward)[1],
                             options={"recompile_limit": 2})  # fmt: skip
    for _ in range(2):
        model = nn.Linear(3, 3)
        compiled(model, ones())
        del model
        gc.collect()
    assert len(graphs) == 2 and not _debug_get_cache_entry_list(compiled)


def test_code_made_at_run_time_is_freed_with_its_entries():
    namespace = {"torch": torch}
    exec("def function(x):\n    y = x + 1\n    torch.compiler.graph_break()\n    return y * 2", namespace)
    function = namespace.pop("function")
    compiled = torch.compile(function, backend="eager")
    assert compiled(ones()).tolist() == [4, 4, 4]
    entry, code = weakref.ref(_debug_get_cache_entry_list(compiled)[0].guarded_code), function.__code__
    assert isinstance(code, types.CodeType) and entry() is not None
    del function, compiled, code
    gc.collect()
    assert entry() is None


def test_an_entry_that_runs_may_be_removed_meanwhile():
    def function(x):
        y = x + 1
        torch.compiler.reset()
        return y * 2

    compiled = torch.compile(function, backend="eager")
    for _ in range(3):
        assert compiled(ones()).tolist() == [4, 4, 4]


def test_no_garbage_is_left_by_a_capture():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(4, 2)).eval()
    compiled = torch.compile(model, backend=lambda module, inputs: module.forward)
    with torch.inference_mode():
        gc.collect()
        gc.disable()
        try:
            compiled(torch.ones(3, 4))
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            kinds = {type(item).__module__ for item in gc.garbage}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert not any(kind.startswith("rushlight.dynamo") for kind in kinds)
