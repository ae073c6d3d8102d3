"""The example of the frame hook: what it prints, and that nothing is left behind."""

from __future__ import annotations

from examples import frame_hook


def test_the_example(capsys):
    frame_hook.calls.clear()
    frame_hook.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["double(1) = 10", "double(2) = 20", "double(-3) = -6", "double(4) = 40"]
    assert lines[4:] == ["outside of the region: double(4) = 8", "asked about describe 4 times, about double 2 times"]
    assert frame_hook.double(4) == 8
