"""Settings of the compiler's time and of the cache's size: what is understood, and a warning of what is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight.utils.native import cache, toolchain


@pytest.fixture(autouse=True)
def _warns_anew():
    cache.warn_once.cache_clear()


@pytest.mark.parametrize("text, size", [
    ("", cache.DEFAULT_LIMIT), ("1000", 1000), ("3K", 3 << 10), ("2 m", 2 << 20), ("1GiB", 1 << 30), ("5MB", 5 << 20),
])  # fmt: skip
def test_sizes_of_the_cache(text, size, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_LIMIT", text)
    assert cache.size_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "1X"])
def test_other_sizes_are_said(text, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_LIMIT", text)
    with pytest.warns(UserWarning, match=f"RUSHLIGHT_CACHE_LIMIT={text} is no number of bytes"):
        assert cache.size_limit() == cache.DEFAULT_LIMIT


@pytest.mark.parametrize("text", ["q", "-3", "0", "nan"])
def test_other_times_are_said(text, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_COMPILER_TIMEOUT", text)
    with pytest.warns(UserWarning, match=f"RUSHLIGHT_COMPILER_TIMEOUT={text} is no number of seconds"):
        assert toolchain.time_limit() == toolchain.DEFAULT_TIME_LIMIT


def test_a_command_ends_silently_where_nobody_reads_on(tmp_path):
    path = str(tmp_path / "layer.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    command = [sys.executable, "-m", "rushlight", "code", path, "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # long before the command has been imported
        assert process.stderr.read() == b"" and process.wait() == 141
