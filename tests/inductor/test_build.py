"""Building and loading under bad conditions: the answer is right in each, and one message says what is wrong."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.inductor import build, cache

SOURCE = """
extern "C" long rushlight_arena_bytes() { return %d; }
extern "C" int rushlight_entry(void**) { return 0; }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The cache folder of one test."""
    build._warn_once.cache_clear()
    chosen = tmp_path / "cache"
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(chosen))
    return chosen


def compiled_result() -> list[str]:
    """Compile and run something, check it, and return the warnings."""
    compiled = torch.compile(lambda x: x.softmax(-1) + 1)
    x = torch.arange(6.0).reshape(2, 3)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        assert (compiled(x) - (x.softmax(-1) + 1)).abs().max() < 1e-6
        compiled(x)
    return [str(warning.message) for warning in caught]


def wrapper(path: Path, body: str) -> str:
    """An executable shell script that stands for the compiler."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def entries(folder: Path, pattern: str = "[!.]*.so") -> list[Path]:
    return sorted(folder.glob(pattern))


def test_second_process_loads_what_the_first_built(folder):
    assert compiled_result() == [] and compiled_result() == []
    assert not build.build(SOURCE % 1).from_cache
    assert build.build(SOURCE % 1).from_cache
    assert not entries(folder, ".tmp-*")


def test_without_a_compiler_a_warning_says_what_to_install(folder, monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    torch.compiler.backends._warn_once.cache_clear()
    (message,) = compiled_result()
    assert "no C++ compiler found (/nonexistent/c++)" in message and "apt-get install g++" in message
    assert compiled_result() == []  # once per process


def test_a_failing_build_shows_the_compilers_message_and_the_source(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", "echo 'error: it is Monday' >&2; exit 1"))
    (message,) = compiled_result()
    assert "error: it is Monday" in message
    (source,) = entries(folder, "[!.]*.cpp")
    assert str(source) in message and "rushlight_entry" in source.read_text()
    assert not entries(folder) and not entries(folder, ".tmp-*")


def test_a_killed_compiler_is_a_failing_build(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", "kill -9 $$"))
    (message,) = compiled_result()
    assert "exit status -9" in message and not entries(folder)


def test_a_compiler_that_writes_rubbish(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", 'while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"'))
    (first, second) = compiled_result()
    assert "not kept" in first and "can neither be kept nor loaded" in second


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "append"])
def test_a_damaged_entry_is_built_again(folder, damage):
    build.build(SOURCE % 2)
    (path,) = entries(folder)
    good = path.read_bytes()
    middle = len(good) // 2
    path.unlink()  # the loaded library keeps its file
    path.write_bytes({
        "truncate": good[:middle], "flip": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :], "empty": b"",
        "append": good + b"x",
    }[damage])  # fmt: skip
    library = build.build(SOURCE % 2)
    assert not library.from_cache and library.arena_bytes == 2
    assert cache.is_intact(path)


def test_a_folder_that_others_can_write_to_is_not_used(folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (message,) = compiled_result()
    assert "writable by you alone" in message and str(folder) in message
    assert not list(folder.iterdir())


def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    (message,) = compiled_result()
    assert "must belong to you" in message and not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_to(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(folder))

    folder.mkdir(mode=0o700)
    original = cache.tempfile.mkstemp
    monkeypatch.setattr(cache.tempfile, "mkstemp",
                        lambda *args, **kwargs: refuse() if kwargs["dir"] == folder else original(*args, **kwargs))
    (message,) = compiled_result()
    assert "compiled code is not kept" in message and "Permission denied" in message


def test_a_folder_that_is_a_file(folder):
    folder.write_text("")
    (message,) = compiled_result()
    assert "compiled code is not kept" in message


def test_the_folder_is_private(folder):
    compiled_result()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_size_is_bounded_and_the_oldest_go_first(folder, monkeypatch):
    for number in range(4):
        build.build(SOURCE % number)
        for path in folder.iterdir():
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 100))
    size = sum(path.stat().st_size for path in folder.iterdir()) // 4
    first = {path.stem for path in sorted(entries(folder), key=lambda path: path.stat().st_mtime)[:1]}
    assert build.build(SOURCE % 0).from_cache  # used again, so it stays
    monkeypatch.setenv("RUSHLIGHT_CACHE_LIMIT", str(3 * size))
    build.build(SOURCE % 9)
    left = {path.stem for path in entries(folder)}
    assert len(left) == 3 and first <= left and {path.stem for path in entries(folder, "[!.]*.cpp")} == left


def test_leftovers_of_killed_builds_go(folder):
    folder.mkdir(mode=0o700)
    old, fresh = folder / ".tmp-old.so", folder / ".tmp-new.so"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - 2 * cache.STALE_SECONDS))
    build.build(SOURCE % 3)
    assert not old.exists() and fresh.exists()


PROGRAM = """
import sys, rushlight as torch
x = torch.arange(6.0).reshape(2, 3)
with torch.no_grad():
    got = torch.compile(lambda x: (x * 2).softmax(-1))(x)
assert (got - (x * 2).softmax(-1)).abs().max() < 1e-6
"""


def start(folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-W", "error", "-c", PROGRAM], env=environment, stderr=subprocess.PIPE)


def test_processes_building_at_once(folder):
    running = [start(folder) for _ in range(3)]
    for process in running:
        assert process.wait(60) == 0, process.stderr.read().decode()
    assert len(entries(folder)) == 1 and cache.is_intact(entries(folder)[0])


@pytest.mark.parametrize("delay", [0.2, 0.35, 0.5])
def test_a_killed_build_leaves_nothing_broken(folder, delay):
    process = start(folder)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert all(cache.is_intact(path) for path in entries(folder))
    process = start(folder)
    assert process.wait(60) == 0, process.stderr.read().decode()
