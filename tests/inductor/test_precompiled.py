"""Precompiled headers of generated code: when they are made, that units compile after them, and that they may fail."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.inductor import build, precompiled
from rushlight.utils.native import toolchain
from tests.inductor.test_build import wrapper

SOURCE = """#include <rushlight/vec.h>
extern "C" long rushlight_arena_bytes() { return %d; }
extern "C" int rushlight_entry(void**) { return 0; }
"""

pytestmark = pytest.mark.skipif(toolchain.is_clang(toolchain.compiler()), reason="needs GCC")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder that has as many programs as make precompiled headers worth while, and commands that are recorded."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for number in range(precompiled.MIN_PROGRAMS):
        (folder / f"{number}.so").touch()
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(folder))
    monkeypatch.setattr(precompiled, "_failed", set())
    return folder


@pytest.fixture
def commands(monkeypatch) -> list[list[str]]:
    """The compiler's commands."""
    found: list[list[str]] = []
    run = toolchain.run
    monkeypatch.setattr(toolchain, "run", lambda commands, *rest: (found.extend(commands), run(commands, *rest)))
    return found


def made(folder: Path) -> list[Path]:
    return list(folder.glob("*.gch"))


def units_after_headers(commands: list[list[str]]) -> list[bool]:
    return ["-include" in command for command in commands if "-c" in command]


def test_they_are_made_once_and_used(folder, commands):
    for number in range(3):
        build.build(SOURCE % number)
    assert len(made(folder)) == 1 and sum("c++-header" in command for command in commands) == 1
    assert units_after_headers(commands) == [True] * 3
    assert not list(folder.glob(".tmp-*"))


def test_a_cache_with_few_programs_has_none(folder, commands):
    for number in range(precompiled.MIN_PROGRAMS):
        (folder / f"{number}.so").unlink()
    build.build(SOURCE % 0)
    assert not made(folder) and units_after_headers(commands) == [False]


def test_programs_that_include_nothing_of_them_do_without(folder, commands):
    build.build((SOURCE % 0).partition("\n")[2])
    assert not made(folder) and units_after_headers(commands) == [False]


def test_gcc_takes_them(folder, tmp_path, monkeypatch):
    """GCC reads the headers' text without a word where the flags differ from those of the precompiled ones."""
    build.build(SOURCE % 0)
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Winvalid-pch", "-Werror"))
    build.build(SOURCE % 1)
    build.build(SOURCE % 2)
    assert len(made(folder)) == 2


def test_results_are_the_same(folder):
    x = torch.randn(8, 40)

    def function(x):
        return (x @ x.t()).softmax(-1), x.sin().sum(0), x.sort(1)[0]

    for got, want in zip(torch.compile(function)(x), function(x), strict=True):
        torch.testing.assert_close(got, want)
    assert made(folder)


@pytest.mark.parametrize("damage", ["truncate", "empty"])
def test_damaged_ones_are_removed(folder, damage):
    build.build(SOURCE % 0)
    (file,) = made(folder)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] if damage == "truncate" else b"")
    assert build.build(SOURCE % 1).arena_bytes == 1
    assert build.build(SOURCE % 2).arena_bytes == 2


def test_a_compiler_that_can_make_none(folder, tmp_path, monkeypatch):
    calls = tmp_path / "calls"
    body = f'case "$*" in *c++-header*) echo 1 >> {calls}; exit 1;; esac; exec g++ "$@"'
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", body))
    for number in range(2):
        assert build.build(SOURCE % number).arena_bytes == number
    assert calls.read_text() == "1\n" and not made(folder)


def test_front_ends_do_without(folder, commands, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "front", 'exec "$@"') + " g++")
    build.build(SOURCE % 0)
    assert not made(folder) and units_after_headers(commands) == [False]


def test_use_keeps_them_in_the_cache(folder):
    build.build(SOURCE % 0)
    (file,) = made(folder)
    os.utime(file, (0, 0))
    build.build(SOURCE % 1)
    assert time.time() - file.stat().st_mtime < 600
