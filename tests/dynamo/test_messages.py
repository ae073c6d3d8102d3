"""Warnings and log records of compiled functions: which there are, and where they are said to come from."""

from __future__ import annotations

import logging
import re
import warnings

import pytest

import rushlight as torch
from rushlight import nn

logger = logging.getLogger(__name__)


def helper(level):
    warnings.warn("from a helper", FutureWarning, stacklevel=level)


def warns(x):
    warnings.warn("one", stacklevel=1)
    helper(1)
    helper(2)
    helper(3)
    return x * 2


def caller(function, x):
    return function(x)


def records(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = caller(function, torch.ones(2))
    assert torch.equal(result, torch.ones(2) * 2)
    return [(str(one.message), one.category, one.filename, one.lineno) for one in found]


def test_warnings_name_the_lines_of_the_program():
    compiled = torch.compile(warns, fullgraph=True, backend="eager")
    records(warns)
    wanted = records(warns)
    found = records(compiled)
    assert [record[:2] for record in found] == [record[:2] for record in wanted]
    assert found[:3] == wanted[:3]  # the last one's caller is a frame of the compiler


def test_each_place_warns_once_by_default():
    compiled = torch.compile(warns, backend="eager")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            compiled(torch.ones(2))
    assert 4 <= len(found) <= 5


def test_a_warning_that_is_an_error_is_raised_where_it_stands():
    def careful(x):
        try:
            warnings.warn("no", RuntimeWarning, stacklevel=1)
        except RuntimeWarning:
            return x + 1
        return x * 5

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert torch.equal(torch.compile(careful, backend="eager")(torch.ones(2)), torch.ones(2) + 1)


def logs(x):
    logger.info("at %s", "info")
    logger.debug("never")
    return x * 2


def test_log_records_name_the_lines_of_the_program(caplog):
    compiled = torch.compile(logs, fullgraph=True, backend="eager")
    with caplog.at_level(logging.INFO, logger=__name__):
        logs(torch.ones(2))
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    places = {(one.getMessage(), one.levelno, one.pathname, one.lineno, one.funcName) for one in caplog.records}
    assert len(caplog.records) == 3 and len(places) == 1


def test_a_level_that_changes_is_seen(caplog):
    compiled = torch.compile(logs, fullgraph=True, backend="eager")
    with caplog.at_level(logging.WARNING, logger=__name__):
        compiled(torch.ones(2))
    with caplog.at_level(logging.DEBUG, logger=__name__):
        compiled(torch.ones(2))
    assert [record.levelno for record in caplog.records] == [logging.INFO, logging.DEBUG]


@pytest.fixture(autouse=True)
def forget():
    yield
    torch.compiler.reset()


def test_modules_nested_too_deeply_run_in_eager_and_say_so():
    module = torch.nn.Identity()
    for _ in range(200):
        module = torch.nn.Sequential(module)
    with pytest.warns(UserWarning, match=r"(?s)more deeply than Python's recursion limit.*sys\.setrecursionlimit|nested more than"):
        result = torch.compile(module)(torch.ones(2))
    assert result.tolist() == [1, 1]


def loops(x, layers):
    for layer in layers:
        x = layer(x)
        torch._dynamo.graph_break()
    return x


@pytest.mark.parametrize("make", [nn.ModuleList, list, tuple, lambda layers: dict(enumerate(layers)).values()])
def test_a_loop_with_a_break_is_named_as_it_is_written(make):
    layers = make([nn.Linear(2, 2) for _ in range(3)])
    reasons = [reason.reason for reason in torch._dynamo.explain(loops)(torch.ones(2, 2), layers).break_reasons]
    assert "the loop goes on in Python after the graph break inside it: for layer in layers:" in reasons
    assert not any("iterator" in reason for reason in reasons)


def test_loops_over_modules_are_captured_whole():
    def run(x, modules, named):
        for position, layer in enumerate(modules):
            x = layer(x) + position
        for layer in reversed(modules[:2]):
            x = layer(x)
        for _, layer in named.items():
            x = layer(x)
        return x

    layers = [nn.Linear(2, 2) for _ in range(3)]
    modules, named = nn.ModuleList(layers), nn.ModuleDict({"one": layers[0], "two": nn.ReLU()})
    x = torch.ones(2, 2)
    assert torch.equal(torch.compile(run, fullgraph=True, backend="eager")(x, modules, named), run(x, modules, named))


scale = 2.0


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.power = 3

    def forward(self, x, options):
        for layer in self.layers:
            x = layer(x)
        return x * options["by"] ** self.power * scale


def guards_of(function, *args):
    return torch._dynamo.explain(function)(*args).guards


def test_guards_speak_of_the_programs_variables():
    factor = torch.ones(2)

    def program(x, model, input):
        return model(x, {"by": 2}) * factor + input

    found = guards_of(program, torch.ones(2, 2), Scaled(), 3)
    for guard in (
        "check_tensor(x, torch.float32, device=cpu, requires_grad=False, size=[2, 2], stride=[2, 1])",
        "check_tensor(factor, torch.float32, device=cpu, requires_grad=False, size=[2], stride=[1])",
        "type(x) is Tensor", "type(model) is Scaled", "model.layers[0].weight is the same Parameter", "model.power == 3",
        "check_tensor(model.layers[0].bias, torch.float32, device=cpu, requires_grad=True, size=[2], stride=[1])",
        "repr(scale) == '2.0'",
        "input == 3", "Scaled.forward is the same function", "model.layers[0] has no hooks",
    ):  # fmt: skip
        assert guard in found
    assert not [guard for guard in found if re.search(r"__\\w+_\\d|__closure|__globals|__of_", guard)]


def test_a_failed_guard_names_the_programs_variable():
    model = Scaled()
    compiled = torch.compile(lambda x, options: model(x, options), backend="eager")
    compiled(torch.ones(2, 2), {"by": 2})
    model.power = 4
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(RuntimeError, match="model.power == 3 .value., found 4"):
        compiled(torch.ones(2, 2), {"by": 2})
