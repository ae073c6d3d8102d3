"""Warnings and log records of compiled functions: which there are, and where they are said to come from."""

from __future__ import annotations

import logging
import warnings

import pytest

import rushlight as torch

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
