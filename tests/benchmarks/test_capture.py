"""The benchmark of calls and captures: a library is measured in a process of its own, and the table gives ratios."""

from __future__ import annotations

from benchmarks import capture


def test_a_library_is_measured():
    found = capture.run_once("rushlight", 0.01)
    assert set(found) == set(capture.ROWS) and all(0 < seconds < 100 for seconds in found.values())


def test_the_table_gives_ratios_where_there_is_a_peer():
    own, peer = dict.fromkeys(capture.ROWS, 1e-6), dict.fromkeys(capture.ROWS, 4e-6)
    lines = capture.section({"rushlight": own, "torch": peer})
    assert sum("0.25" in line and "1 us" in line and "4 us" in line for line in lines) == len(capture.ROWS)
    assert not any("0.25" in line for line in capture.section({"rushlight": own}))
