"""`rushlight explore` and `explorer.record`, from outside: pages, output, exit statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import explorer
from rushlight.explorer import page as pages
from rushlight.explorer.commands import main
from rushlight.explorer.page import recordings_of

pytestmark = pytest.mark.skipif(not pages.TEMPLATE.exists(), reason="the page is not built: `make page`")

PROGRAM = """
import sys
import torch

# naïve ☃ </script><script>window.recorded_script_ran = 1</script>
def twice(x):
    return x.sin() * 2

print(torch.compile(twice)(torch.ones(3)).shape, sys.argv[1:])
"""


def no_program():
    raise AssertionError("no program is run")


@pytest.fixture
def explore(tmp_path):
    """Run the command in a process with a program; gives the finished process and the page's recordings."""

    def run(program: str, *words: str, options: tuple = ()) -> tuple[subprocess.CompletedProcess, list[dict]]:
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        page = tmp_path / "page.html"
        command = [sys.executable, "-m", "rushlight", "explore", "-o", str(page), *options, str(tmp_path / "program.py"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return done, recordings_of(page.read_text()) if page.exists() else []

    return run


def test_a_program_and_its_arguments(explore, tmp_path):
    done, (recording,) = explore(PROGRAM, "--size", "5", options=("--title", "Twice"))
    assert done.returncode == 0 and done.stdout == "torch.Size([3]) ['--size', '5']\n" and "page.html" in done.stderr
    assert recording["title"] == "Twice" and recording["command"].endswith("program.py --size 5") and recording["error"] is None
    assert recording["output"] == done.stdout and [unit["name"] for unit in recording["units"]] == ["twice"]
    (own,) = [file for file in recording["files"] if file["own"]]
    assert own["text"] == PROGRAM and own["name"] == "program.py"
    html = (tmp_path / "page.html").read_text()
    assert "recorded_script_ran" not in html and "naïve" not in html  # what the program holds is packed


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [("raise ValueError('no ☃')", 1, "ValueError: no ☃"), ("sys.exit(3)", 3, None), ("sys.exit('why')", 1, None)],
)
def test_programs_that_end_early_have_a_page(explore, ending, status, error):
    done, (recording,) = explore(PROGRAM + ending)
    assert done.returncode == status and recording["units"]
    assert recording["error"] is None if error is None else error in recording["error"] and "program.py" in recording["error"]


def test_a_traceback_begins_in_the_program(explore):
    done, (recording,) = explore("def fails():\n    import torch\n    torch.ones(2).reshape(3)\nfails()")
    lines = recording["error"].splitlines()
    assert lines[0].startswith("Traceback") and lines[1].endswith("program.py\", line 4, in <module>") and lines[1] in done.stderr
    assert "explorer/commands.py" not in recording["error"] and "runpy" not in recording["error"]


def test_a_program_that_does_not_compile_has_no_other_frames(explore):
    done, (recording,) = explore("def (:")
    assert done.returncode == 1 and recording["error"].lstrip().startswith("File ") and "SyntaxError" in recording["error"]


def test_an_exit_with_a_message_prints_it(explore):
    done, _ = explore("import sys\nsys.exit('why')")
    assert done.returncode == 1 and done.stderr.startswith("why\n")


def test_a_program_that_the_user_stops(explore):
    done, (recording,) = explore("raise KeyboardInterrupt")
    assert done.returncode == 130 and "KeyboardInterrupt" in recording["error"]


def test_the_program_meets_its_own_streams(explore):
    program = """
import sys
import io
print(isinstance(sys.stdout, io.TextIOWrapper), sys.stdout.encoding.lower(), sys.stdout.errors is not None, sys.stdout.writable(), sys.stdout.closed)
try:
    sys.stdout.write(b"bytes")
except TypeError:
    print("refused")
sys.stdout.writelines(["a", "b\\n"])
sys.stdout.close()
try:
    print("lost")
except ValueError:
    print("closed", file=sys.stderr)
"""
    done, (recording,) = explore(program)
    assert done.returncode == 0 and done.stdout == "True utf-8 True True False\nrefused\nab\n" and done.stderr.startswith("closed\n")
    assert recording["output"] == done.stdout + "closed\n"


def test_a_program_that_closes_its_streams(explore):
    done, (recording,) = explore("import sys\nsys.stdout.close()\nsys.stderr.close()")
    assert done.returncode == 0 and recording["error"] is None


def test_a_program_that_changes_its_folder(tmp_path):
    (tmp_path / "program.py").write_text("import os\nos.mkdir('inside')\nos.chdir('inside')\n")
    command = [sys.executable, "-m", "rushlight", "explore", "-o", "page.html", "program.py"]
    subprocess.run(command, check=True, capture_output=True, timeout=300, cwd=tmp_path)
    assert (tmp_path / "page.html").exists() and not (tmp_path / "inside" / "page.html").exists()


def test_threads_that_outlive_the_program_are_recorded(explore):
    program = """
import concurrent.futures, threading, time, torch
double = torch.compile(lambda x: x * 2)
pool = concurrent.futures.ThreadPoolExecutor()
pool.submit(int).result()  # its worker waits for more until Python ends
threading.Thread(target=lambda: (time.sleep(0.5), double(torch.ones(3)), print("done"))).start()
"""
    done, (recording,) = explore(program)
    assert done.stdout == "done\n" == recording["output"] and [call["kind"] for call in recording["calls"]] == ["compile", "hit"]


def test_a_forked_child_writes_no_page(explore):
    program = "import os, time\nif not (pid := os.fork()):\n    print('child', flush=True)\nelse:\n    os.waitpid(pid, 0)\n"
    done, _ = explore(program + "print('both', flush=True)")
    assert done.stdout == "child\nboth\nboth\n" and done.stderr.count("open it in a browser") == 1


def test_tracing_gives_the_same_graph(explore, tmp_path):
    program = """
import torch
def shifted(x):
    y = x.sin()
    return y + 1
print(torch.jit.trace(shifted, torch.ones(3)).graph)
"""
    done, _ = explore(program)
    plain = subprocess.run(
        [sys.executable, "-m", "rushlight", "exec", str(tmp_path / "program.py")], capture_output=True, text=True, timeout=300
    )
    assert "program.py:4" in plain.stdout and done.stdout == plain.stdout


def test_a_program_that_never_compiles(explore):
    _, (recording,) = explore("print('x' * 1_000_000)\nprint('end')")
    assert recording["units"] == [] and recording["output"].endswith("x\nend\n") and len(recording["output"]) == 20_000
    assert [(file["name"], file["text"].splitlines()[1]) for file in recording["files"]] == [("program.py", "print('end')")]


def test_against_an_earlier_page(explore, tmp_path):
    explore(PROGRAM)
    (tmp_path / "page.html").rename(tmp_path / "before.html")
    _, recordings = explore(PROGRAM.replace("sin", "cos"), options=("--against", str(tmp_path / "before.html")))
    texts = [next(stage["text"] for stage in each["units"][0]["stages"] if stage["stage"] == "graph") for each in recordings]
    assert "sin" in texts[0] and "cos" in texts[1]


def test_an_archive(tmp_path):
    class Doubling(torch.nn.Module):
        def forward(self, x, n: int):
            for _ in range(n):
                x = torch.relu(x * 2)
            return x

    torch.jit.script(Doubling()).save(tmp_path / "model.pt")
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "rushlight", "explore", "-o", page, tmp_path / "model.pt", "--input", "float32[4]", "3"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (recording,) = recordings_of(page.read_text())
    (unit,) = recording["units"]
    assert unit["kind"] == "script" and unit["status"] == "compiled" and not unit["steps"]["cut"]
    assert {"source", "tree", "ir", "instructions", "code"} <= {stage["stage"] for stage in unit["stages"]}


def test_an_archive_whose_arguments_have_defaults(tmp_path):
    class Scaled(torch.nn.Module):
        def forward(self, x, by: float = 2.0):
            return x * by

    torch.jit.script(Scaled()).save(tmp_path / "model.pt")
    assert main(["-o", str(tmp_path / "page.html"), str(tmp_path / "model.pt"), "--input", "float32[4]"], no_program) == 0
    (unit,) = recordings_of((tmp_path / "page.html").read_text())[0]["units"]
    assert not unit["steps"]["cut"]


@pytest.mark.parametrize(
    ("recording", "text"),
    [('{"version": 2}', "version 2"), ('{"version": 1, "files": NaN}', "no NaN"), ('{"version": 1, "units": 5}', "'units'"),
     ('{"version": 1, "calls": [null]}', "'calls'")],
)  # fmt: skip
def test_pages_that_cannot_be_compared(recording, text, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pages.json, "dumps", lambda *_, **__: f"[{recording}]")
    pages.write_page(tmp_path / "before.html", [])
    monkeypatch.undo()
    (tmp_path / "program.py").write_text("print('ran')")
    words = ["-o", str(tmp_path / "page.html"), "--against", str(tmp_path / "before.html"), str(tmp_path / "program.py")]
    assert main(words, no_program) == 2
    said = capsys.readouterr()
    assert text in said.err and "ran" not in said.out


@pytest.mark.parametrize(
    ("words", "text"),
    [([], "which program?"), (["-m"], "which program?"), (["missing.py"], "there is no file 'missing.py'"),
     (["--against", "missing.html", __file__], "--against: .*missing.html"),
     (["-o", "/missing/page.html", __file__], "is in a folder that does not exist"),
     (["-o", "/", __file__], "is a folder, not a file"), (["--serve", "--port", "65536", __file__], "--port: invalid"),
     (["--serve", "missing.py"], "there is no file 'missing.py'")],
)  # fmt: skip
def test_words_that_make_no_sense(words, text, capsys):
    try:
        status = main(words, no_program)
    except SystemExit as end:
        status = end.code
    assert status == 2 and re.search(text, capsys.readouterr().err)


def test_an_archive_that_cannot_run_leaves_an_earlier_page(tmp_path, capsys):
    archive, page = str(tmp_path / "model.pt"), tmp_path / "page.html"
    page.write_text("an earlier page")
    torch.jit.script(torch.nn.ReLU()).save(archive)
    with pytest.raises(SystemExit, match="2"):
        main(["-o", str(page), archive, "--calls", "-1"], no_program)
    assert "--calls" in capsys.readouterr().err
    for words in (["--method", "nope"], ["--input", "missing.npy"]):
        assert main(["-o", str(page), archive, *words], no_program) == 1
        assert capsys.readouterr().err.startswith("rushlight explore: ")
    Path(archive).write_bytes(b"PK\x03\x04 nothing")
    assert main(["-o", str(page), archive], no_program) == 1
    assert "rushlight explore: " in capsys.readouterr().err and page.read_text() == "an earlier page"


def test_a_block_of_a_program(tmp_path):
    with explorer.record(tmp_path / "page.html", title="a block"):
        torch.compile(lambda x: x.exp() + 1)(torch.ones(2))
    (recording,) = recordings_of((tmp_path / "page.html").read_text())
    assert recording["title"] == "a block" and len(recording["units"]) == 1
    with pytest.raises(LookupError), explorer.record(str(tmp_path / "second.html")):
        raise LookupError("inside")
    assert "LookupError: inside" in recordings_of((tmp_path / "second.html").read_text())[0]["error"]


def test_a_block_that_cannot_be_written_exits_or_is_repeated(tmp_path):
    with pytest.warns(UserWarning, match="not written"), pytest.raises(KeyError), explorer.record(tmp_path / "no" / "page.html"):
        raise KeyError("the block's own")
    block = explorer.record(tmp_path / "page.html")
    compiled = torch.compile(lambda x: x.exp() - 1)
    for ones in (torch.ones(2), torch.ones(2, 2)):
        with pytest.raises(SystemExit), block:
            compiled(ones)
            raise SystemExit(0)
    (recording,) = recordings_of((tmp_path / "page.html").read_text())
    assert recording["error"] is None
    assert [call["kind"] for call in recording["calls"] if call["unit"] == 0] == ["recompile", "hit"]


def test_a_block_that_changes_the_folder_or_forks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inside").mkdir()
    with explorer.record("page.html"):
        os.chdir("inside")
    assert (tmp_path / "page.html").exists()
    recording = explorer.record(tmp_path / "child.html")
    with recording:
        monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not (tmp_path / "child.html").exists()


def test_serving_makes_the_page_anew_when_the_program_changes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "rushlight", "explore", "--serve", "--port", "0", str(program)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment)
    try:
        address = re.search(r"http://127.0.0.1:\d+/", server.stderr.readline())[0]
        threading.Thread(target=server.stderr.read, daemon=True).start()  # or the pipe fills
        assert "<iframe" in _fetch(address)
        _wait_for(address, "1")
        assert recordings_of(_fetch(address + "page"))[-1]["files"][0]["text"] == PROGRAM
        program.write_text(PROGRAM.replace("sin", "cos"), encoding="utf-8")
        _wait_for(address, "2")
        assert "cos" in json.dumps(recordings_of(_fetch(address + "page"))[-1]["files"])
    finally:
        server.terminate()
        server.wait(timeout=30)


def _fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()


def _wait_for(address: str, version: str) -> None:
    for _ in range(300):
        if _fetch(address + "version") == version:
            return
        time.sleep(0.2)
    raise AssertionError(f"the page {version} never came")


def test_the_gallery(tmp_path):
    from examples.explorer.gallery import write_pages

    (made,) = write_pages(tmp_path, ("attend",))
    assert made == ("attend", tmp_path / "attend.html") and recordings_of(Path(made[1]).read_text())[0]["units"]
