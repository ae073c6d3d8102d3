"""Building and loading under bad conditions: the answer is right in each, and one message says what is wrong."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.inductor import build
from rushlight.utils.native import cache, toolchain
from tests.fuzz_kills import kill_at

SOURCE = """
extern "C" long rushlight_arena_bytes() { return %d; }
extern "C" int rushlight_entry(void**) { return 0; }
"""


@pytest.fixture(autouse=True)
def nothing_said_or_refused():
    """Messages are given, and folders are tried, as in a new process."""
    yield
    cache.warn_once.cache_clear()
    cache._refused.clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The cache folder of one test."""
    chosen = tmp_path / "cache"
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(chosen))
    return chosen


PROGRAM = """
import rushlight as torch
x = torch.arange(6.0).reshape(2, 3)
with torch.no_grad():
    got = torch.compile(lambda x: (x * 2).softmax(-1))(x)
assert (got - (x * 2).softmax(-1)).abs().max() < 1e-6
"""

TWO_PROGRAMS = PROGRAM + """
with torch.no_grad():
    assert torch.equal(torch.compile(lambda x: x + 1)(x), x + 1)
"""


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


def test_comments_make_no_other_program(folder):
    build.build("// one.py:1\n" + SOURCE % 8)
    assert build.build("// two.py:20\n// two.py:30\n" + (SOURCE % 8).replace("}\n", "}  // here\n")).from_cache
    assert not build.build(SOURCE % 9).from_cache


def test_without_a_compiler_a_warning_says_what_to_install(folder, monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    torch.compiler.backends._warn_once.cache_clear()
    (message,) = compiled_result()
    assert "no C++ compiler found (/nonexistent/c++)" in message and "apt-get install g++" in message
    assert "pip install 'rushlight[compiler]'" in message
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


def test_a_compiler_that_hangs_is_stopped_and_not_tried_again(folder, monkeypatch, tmp_path):
    """What it started is stopped too, and the next graph does not wait."""
    child = tmp_path / "child"
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", f"sleep 600 & echo $! > {child}; wait"))
    monkeypatch.setenv("RUSHLIGHT_COMPILER_TIMEOUT", "0.3")
    toolchain_hung = set(toolchain._hung)
    (message,) = compiled_result()
    assert "did not finish" in message and "0.3 seconds" in message
    deadline = time.monotonic() + 30  # a kill takes effect when the kernel comes to it
    while is_running(int(child.read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(int(child.read_text()))
    child.unlink()
    torch.compiler.backends._warn_once.cache_clear()
    (message,) = compiled_result()
    assert "is not tried again" in message and not child.exists()
    toolchain._hung.intersection_update(toolchain_hung)


def is_running(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_a_compiler_that_writes_nothing(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", "exit 0"))
    (message,) = compiled_result()
    assert "reported success and wrote no library" in message and not entries(folder)


def test_a_compiler_whose_library_lacks_the_entry(folder, monkeypatch, tmp_path):
    body = 'for a; do case "$a" in *.o|*.so) out="$a";; esac; done; echo "int x;" | g++ -shared -fPIC -x c++ - -o "$out"'
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", body))
    (message,) = compiled_result()
    assert "is no compiled program" in message


def test_a_full_disk(folder, monkeypatch, tmp_path):
    """The compiler says so; then the temporary folder is tried, where it says so too."""
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", "echo 'fatal error: error writing: No space left on device' >&2; exit 1"))
    first, second = compiled_result()
    assert "compiled code is not kept" in first and "No space left" in first
    assert "can neither be kept nor loaded" in second


def mounted(tmp_path: Path, options: str, program: str) -> subprocess.CompletedProcess:
    """Run a Python program whose cache folder is a file system with mount options; skips where that is not permitted."""
    place = tmp_path / "mounted"
    place.mkdir()
    mount = f"mount -t tmpfs -o {options} tmpfs {place} && chmod 700 {place} && touch {place}/mounted || exit 77; "
    late = f"mount -o remount,ro {place}; " if "readonly" in program else ""
    script = f"{mount}{late}exec {sys.executable} -W always -c '{program}'"
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(place), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not permitted here")
    return done


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("options, program, expected", [
    ("size=4k", "full", "No space left on device"), ("size=12k", "full", "No space left on device"),
    ("noexec", "noexec", "failed to map segment"), ("size=1m", "readonly", "Read-only file system"),
])  # fmt: skip
def test_file_systems_that_do_not_serve(tmp_path, options, program, expected):
    """One message for several programs; of the sizes, one is too small for the source, one for what is built from it."""
    done = mounted(tmp_path, options, f"kind = \"{program}\"\n{TWO_PROGRAMS}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning: compile: compiled code is not kept") == done.stderr.count("Warning:") == 1
    assert expected in done.stderr


def test_without_a_home(monkeypatch):
    monkeypatch.delenv("RUSHLIGHT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    (message,) = compiled_result()
    assert "set HOME or RUSHLIGHT_CACHE_DIR" in message and not Path("~").exists()


def test_an_entry_under_another_name_is_not_loaded(folder):
    build.build(SOURCE % 4)
    build.build(SOURCE % 5)
    first, second = entries(folder)
    os.replace(first, second)
    assert not cache.is_intact(second)
    assert build.build(SOURCE % 4).arena_bytes == 4 and build.build(SOURCE % 5).arena_bytes == 5


def test_entries_of_another_processor_are_not_loaded(folder, monkeypatch):
    build.build(SOURCE % 6)
    monkeypatch.setattr(build, "instructions", lambda: ("sse2",))
    assert not build.build(SOURCE % 6).from_cache and len(entries(folder)) == 2


def test_several_units_are_the_program_that_one_is(folder, monkeypatch):
    x = torch.randn(64, 64)

    def function(x):
        y = (x @ x).relu().softmax(-1)
        return (y @ x + 1).tanh().sum(0), (x.exp() @ y).sigmoid()

    results = []
    for most in (1, 4):
        monkeypatch.setattr(build, "_units", lambda most=most: most)
        monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(folder / str(most)))
        with torch.no_grad():
            results.append(torch.compile(function)(x))
    for one, several in zip(*results, strict=True):
        assert torch.equal(one, several)


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


def test_a_full_cache_serves_where_it_may_only_be_read(folder, monkeypatch):
    """As in an image that was made with what it will run."""
    build.build(SOURCE % 3)

    def refuse(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(cache.os, "utime", refuse)
    assert build.build(SOURCE % 3).from_cache


def test_nothing_is_built_again_where_building_failed(folder, monkeypatch, tmp_path):
    """What is there already is still loaded from there."""
    build.build(SOURCE % 4)
    calls = tmp_path / "calls"
    script = f"echo $@ >> {calls}; case \"$*\" in *{folder}*) echo 'No space left on device' >&2; exit 1; esac; exec g++ $@"
    monkeypatch.setenv("CXX", wrapper(tmp_path / "cxx", script))
    with pytest.warns(UserWarning, match="compiled code is not kept"):
        build.build(SOURCE % 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build.build(SOURCE % 6)
    in_folder = [line for line in calls.read_text().splitlines() if str(folder) in line]
    assert len(in_folder) == 1
    monkeypatch.delenv("CXX")
    assert build.build(SOURCE % 4).from_cache


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


def start(folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-W", "error", "-c", PROGRAM], env=environment, stderr=subprocess.PIPE)


def test_processes_building_at_once(folder):
    """Eight processes on one cold cache: all are right, and one of them compiled."""
    running = [start(folder) for _ in range(8)]
    for process in running:
        assert process.wait(120) == 0, process.stderr.read().decode()
    assert len(entries(folder)) == 1 and cache.is_intact(entries(folder)[0])
    assert not entries(folder, ".tmp-*")


def test_threads_building_at_once(folder):
    with ThreadPoolExecutor(8) as pool:
        libraries = list(pool.map(build.build, [SOURCE % 7] * 8))
    assert {library.arena_bytes for library in libraries} == {7} and sum(not library.from_cache for library in libraries) == 1


@pytest.mark.parametrize("seconds", [0.2, 0.3, 0.4, 0.5, 0.7])
def test_a_killed_build_leaves_nothing_broken(folder, seconds):
    """tests/fuzz_kills.py does this hundreds of times."""
    kill_at(folder, seconds)


def test_lines_that_go_on_in_the_next_one(folder):
    """A backslash at the end of a comment would take the next line of C++ text away."""
    def function(x):
        scores = x @ x.t() + \
            x.sum() \
            - 1
        return scores.softmax(-1), scores * 2 \
            + x.mean()

    x = torch.randn(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = torch.compile(function, fullgraph=True)(x)
    torch.testing.assert_close(results, function(x))
    text = "".join(path.read_text() for path in entries(folder, "[!.]*.cpp"))
    assert "scores = x @ x.t() +\n" in text


def test_paths_that_are_no_text(folder, tmp_path):
    path = os.fsencode(tmp_path) + b"/p\xff.py"
    Path(os.fsdecode(path)).write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, timeout=120, errors="replace",
                          env={**os.environ, "PYTHONPATH": os.getcwd()})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("arguments", ["", " -O1"])
def test_a_compiler_with_arguments(folder, monkeypatch, tmp_path, arguments):
    """As in "ccache g++"; the same compiler with other arguments makes other libraries."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("CXX", wrapper(tmp_path / "front", f'echo "$@" >> {calls}; exec "$@"') + " g++" + arguments)
    assert compiled_result() == [] and len(entries(folder)) == 1
    assert all(line.startswith(f"g++{arguments} -") for line in calls.read_text().splitlines())
    called = calls.read_text()
    assert compiled_result() == [] and calls.read_text() == called
    monkeypatch.setenv("CXX", "g++ -DANOTHER")
    assert compiled_result() == [] and len(entries(folder)) == 2


def test_a_compiler_whose_path_has_spaces(folder, monkeypatch, tmp_path):
    (tmp_path / "my tools").mkdir()
    monkeypatch.setenv("CXX", wrapper(tmp_path / "my tools" / "my g++", 'exec g++ "$@"'))
    assert compiled_result() == [] and len(entries(folder)) == 1


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the package ziglang")
def test_zig_compiles_where_no_other_compiler_is(folder, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.is_zig(toolchain.compiler()) and not toolchain.has_openmp(toolchain.compiler())
    assert compiled_result() == [] and len(entries(folder)) == 1


def test_clang_without_openmp(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", wrapper(tmp_path / "clang++", 'case "$*" in *-fopenmp*) exit 1;; esac; exec g++ "$@"'))
    assert not toolchain.has_openmp(toolchain.compiler())
    assert compiled_result() == [] and len(entries(folder)) == 1


@pytest.mark.parametrize("text", ["no such compiler", "'g++", "  "])
def test_texts_that_name_no_compiler(folder, monkeypatch, text):
    monkeypatch.setenv("CXX", text)
    (message,) = compiled_result()
    assert f"no C++ compiler found ({text})" in message
    torch.compiler.backends._warn_once.cache_clear()
