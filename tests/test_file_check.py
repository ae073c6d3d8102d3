"""FileCheck: which texts pass which checks."""

import pytest

from rushlight.testing import FileCheck

TEXT = """graph(%x):
  %1 = add(%x, %x)
  %2 = mul(%1, %x)
  %3 = mul(%2, %x)
  return (%3)
"""

PASSING = {
    "order": FileCheck().check("add").check("mul").check("return"),
    "not": FileCheck().check("add").check_not("sub").check("mul").check_not("add"),
    "not at all": FileCheck().check_not("sub"),
    "same": FileCheck().check("add").check_same("%x)"),
    "next": FileCheck().check("add").check_next("mul").check_next("%3"),
    "count": FileCheck().check_count("mul", 2),
    "count exactly": FileCheck().check_count("mul", 2, exactly=True).check("return"),
    "dag": FileCheck().check_dag("return").check_dag("add").check_dag("mul"),
    "regex": FileCheck().check_regex(r"%\d = mul\(%2").check("return"),
}
FAILING = {
    "order": (FileCheck().check("mul").check("add"), 'Expected to find "add"'),
    "not": (FileCheck().check("add").check_not("mul").check("return"), 'Expected to not find "mul"'),
    "not behind": (FileCheck().check("add").check_not("return"), 'Expected to not find "return"'),
    "same": (FileCheck().check("add").check_same("mul"), "CHECK-SAME: mul"),
    "next": (FileCheck().check("graph").check_next("mul"), "CHECK-NEXT: mul"),
    "count": (FileCheck().check_count("mul", 3), 'Expected to find "mul"'),
    "count exactly": (FileCheck().check_count("mul", 1, exactly=True), 'Expected to not find "mul"'),
    "dag": (FileCheck().check("add").check_dag("mul").check_dag("graph"), 'Expected to find "graph"'),
    "regex": (FileCheck().check_regex(r"sub\d"), "regex"),
}


@pytest.mark.parametrize("name", PASSING)
def test_checks_that_hold(name):
    PASSING[name].run(TEXT)


@pytest.mark.parametrize("name", FAILING)
def test_checks_that_fail(name):
    check, message = FAILING[name]
    with pytest.raises(RuntimeError, match=message) as error:
        check.run(TEXT)
    assert "Searched string" in str(error.value) and "From CHECK" in str(error.value)


def test_highlighted_source():
    text = "at line 3:\n    return x + y\n           ~~~~~ <--- HERE\n"
    FileCheck().check_source_highlighted("x + y").run(text)
    with pytest.raises(RuntimeError, match="SOURCE-HIGHLIGHTED"):
        FileCheck().check_source_highlighted("return").run(text)


def test_checks_written_in_comments():
    FileCheck().run("# CHECK: add\n# CHECK-NEXT: mul\n# CHECK-COUNT-1: mul\n# CHECK-NOT: sub\n", TEXT)
    with pytest.raises(RuntimeError, match='to find "sub"'):
        FileCheck().run("# CHECK: sub", TEXT)
    with pytest.raises(RuntimeError, match="expected lines such as"):
        FileCheck().run("nothing", TEXT)


def test_what_is_checked_may_be_a_graph():
    import rushlight as torch

    scripted = torch.jit.script(lambda_free)
    FileCheck().check("aten::add").check_not("aten::mul").run(scripted.graph)


def lambda_free(x):
    return x + x
