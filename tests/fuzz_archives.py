"""Hostile TorchScript archives: `python -m tests.fuzz_archives --trials 20000`.

Each trial damages an archive of `tests/*/archives`: bytes of the file, records swapped, repeated, emptied or enlarged, opcodes and
numbers of pickles, words of the code; or the instructions that the cache folder holds for an archive. `load` must give a module, whose methods then compile, print and can be saved, or RuntimeError
is raised: nothing else may happen, not within 5 seconds, nor beyond a limit of memory, and no file, process, module or socket may
be opened. Trials run in processes, so that a crash is a line of the report. The exit status is 1 if there was a finding; `--only 17` runs one trial.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import marshal
import os
import pkgutil
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import rushlight
from rushlight.jit.runtime.executor import executor_of
from rushlight.jit.serialization.imported_function import ImportedFunction
from rushlight.quantized import ensure_operators
from rushlight.utils.native import cache

ensure_operators()  # an archive that names a quantized operator would import them; no import is allowed in a trial
for _module in pkgutil.walk_packages(rushlight.jit.__path__, "rushlight.jit."):
    importlib.import_module(_module.name)
for _module in ("logging", "tempfile", "rushlight.nn.functional", "rushlight.quantized.packed", "rushlight.serialization.quantized"):
    importlib.import_module(_module)
ARCHIVES = sorted(path for folder in ("jit", "quantized") for path in (Path(__file__).parent / folder / "archives").glob("*.pt"))
SECONDS = 5
MEMORY_LIMIT = 6 << 30
BATCH = 500
FORBIDDEN = ("import", "os.", "subprocess.", "open", "socket.", "shutil.", "ctypes.", "exec", "pty.", "sys.settrace")
"""Audit events that show that something outside of the archive was reached. `open` comes with the archive itself, before."""
OPCODES = bytes(range(256))
WORDS = (
    "torch", "ops.prim", "self", "None", "True", "inf", "annotate", "unchecked_cast", "uninitialized", "fork", "Tensor", "int",
    "List[int]", "Optional[Tensor]", "__torch__", "CONSTANTS.c0", "CONSTANTS.c99", "__import__('os').system('true')", "eval", "lambda: 0",
    "open('/etc/passwd')", "exec('1')", "getattr(self, '__class__')", "(((((", ")))", "[" * 50, "-" * 300, "not " * 300, "9" * 5000,
    "while True: pass", "import os", "class X: pass", "def f(): pass", "yield 1", "x := 1", "\x00", "\ud7ff", "return", "break", "del x",
    "__builtins__", "0x" + "f" * 40, "1e999", "''", "*", "**", "@", ":", "=", ",", ".", "(", ")", "[", "]", "raise x", "with self: pass",
)  # fmt: skip


def records_of(data: bytes) -> list[tuple[str, bytes]]:
    """The records of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(each.filename, archive.read(each)) for each in archive.infolist()]


def pack(records: list[tuple[str, bytes]], choose: random.Random) -> bytes:
    """An archive of records; repeated names are let through."""
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if choose.random() < 0.2 else zipfile.ZIP_STORED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, data in records:
                archive.writestr(name, data)
    return out.getvalue()


def damage_bytes(data: bytes, choose: random.Random) -> bytes:
    """Change, insert, remove or repeat bytes, or cut the end off."""
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        position, length = choose.randrange(len(changed) + 1), choose.choice((1, 1, 1, 2, 4, 30))
        kind = choose.randrange(6)
        if kind <= 2:
            changed[position : position + 1] = bytes((choose.randrange(256),))
        elif kind == 3:
            changed[position:position] = choose.randbytes(length)
        elif kind == 4:
            del changed[position : position + length]
        elif choose.random() < 0.3:
            del changed[position:]
        else:
            changed[position:position] = changed[position : position + length] * choose.choice((1, 2, 50))
    return bytes(changed)


def damage_pickle(data: bytes, choose: random.Random) -> bytes:
    """Change opcodes, lengths, memo numbers and names of a pickle."""
    if choose.random() < 0.4:
        return damage_bytes(data, choose)
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 4))):
        position = choose.randrange(2, len(changed))
        kind = choose.randrange(4)
        if kind == 0:
            changed[position] = choose.choice(OPCODES)
        elif kind == 1:
            changed[position:position] = choose.choice((b"cos\nsystem\n", b"c__builtin__\neval\n", b"cbuiltins\ngetattr\n",
                                                        b"c__torch__\nX\n", b"\x8c\x02os\x8c\x06system\x93", b"R", b"b", b"\x81", b"(t",
                                                        b"K\x05", b"J\xff\xff\xff\x7f", b"\x8a\xff" + b"\xff" * 255, b"}", b"]", b"a"))  # fmt: skip
        elif kind == 2:
            names = [match.span() for match in re.finditer(rb"c[\w.]+\n\w+\n", changed)]
            if names:
                start, end = choose.choice(names)
                other = choose.choice(names)
                changed[start:end] = changed[other[0] : other[1]]
        else:
            changed[position : position + 4] = choose.choice((0, 1, 1 << 20, (1 << 32) - 1)).to_bytes(4, "little")
    return bytes(changed)


def damage_code(data: bytes, choose: random.Random) -> bytes:
    """Change words and lines of the code."""
    text = data.decode(errors="replace")
    for _ in range(choose.choice((1, 1, 2, 4))):
        lines = text.split("\n")
        kind = choose.randrange(5)
        if kind == 0:
            line = choose.randrange(len(lines))
            lines[line:line] = lines[line : line + choose.choice((1, 3, 100))]
        elif kind == 1:
            del lines[choose.randrange(len(lines))]
        elif kind == 2:
            first, second = choose.randrange(len(lines)), choose.randrange(len(lines))
            lines[first], lines[second] = lines[second], lines[first]
        else:
            line = choose.randrange(len(lines))
            words = list(re.finditer(r"[\w.]+|[^\s\w]", lines[line]))
            if words:
                start, end = choose.choice(words).span()
                others = re.findall(r"[\w.]+", text)
                new = choose.choice(WORDS) if kind == 3 else choose.choice(others)
                lines[line] = lines[line][:start] + new + lines[line][end:]
        text = "\n".join(lines)
    return text.encode(errors="surrogatepass")


def damage_records(records: list[tuple[str, bytes]], choose: random.Random) -> list[tuple[str, bytes]]:
    """Swap, repeat, drop, rename, empty or enlarge records."""
    first, second = choose.randrange(len(records)), choose.randrange(len(records))
    kind = choose.randrange(6)
    name, data = records[first]
    if kind == 0:
        records[first], records[second] = (name, records[second][1]), (records[second][0], data)
    elif kind == 1:
        records.append((name, data))
    elif kind == 2:
        del records[first]
    elif kind == 3:
        records[first] = (choose.choice(("../x", name.upper(), name + "/y", "archive/data.pkl", records[second][0])), data)
    elif kind == 4:
        records[first] = (name, b"")
    else:
        records[first] = (name, data * choose.choice((2, 1000, 20000)))
    return records


def damaged(trial: int) -> tuple[str, bytes]:
    """The archive of a trial: the same for the same number."""
    choose = random.Random(trial)
    path = choose.choice(ARCHIVES)
    data = path.read_bytes()
    kind = choose.choice(("file", "records", "pickle", "pickle", "code", "code"))
    if kind == "file":
        return path.stem, damage_bytes(data, choose)
    records = records_of(data)
    if kind == "records":
        return path.stem, pack(damage_records(records, choose), choose)
    ending = ("pkl",) if kind == "pickle" else (".py",)
    at = choose.choice([index for index, (name, _) in enumerate(records) if name.endswith(ending)])
    damage = damage_pickle if kind == "pickle" else damage_code
    records[at] = (records[at][0], damage(records[at][1], choose))
    return path.stem, pack(records, choose)


_watching: list[bool] = []


def _is_allowed(event: str, arguments: tuple) -> bool:
    """Codecs are imported, and files of the cache folder opened and renamed; a number is an open file."""
    if event == "import":
        return str(arguments[0]).startswith("encodings")
    if event == "open" and type(arguments[0]) is int:
        return True
    return bool(arguments) and str(arguments[0]).startswith(os.environ["RUSHLIGHT_CACHE_DIR"])


def _audit(event: str, arguments: tuple) -> None:
    if _watching and event.startswith(FORBIDDEN) and not _is_allowed(event, arguments):
        _watching.clear()
        raise SystemError(f"the archive reached {event}{arguments!r}"[:300])


def _alarm(number: int, frame: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} seconds")


def try_archive(data: bytes) -> str | None:
    """Loads an archive and compiles its methods; returns the violation, or None."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    _watching.append(True)
    try:
        module = rushlight.jit.load(io.BytesIO(data))
        for each in module.modules():
            compile_methods(each)
        module.save_to_buffer()
    except RuntimeError:
        return None
    except BaseException:
        _watching.clear()
        return traceback.format_exc(limit=-6)
    finally:
        _watching.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def compile_methods(module: object) -> None:
    """Compiles the methods of a loaded module. Errors in code are RuntimeErrors and do not stop the other methods."""
    for method in list(module._c.type.methods.values()):
        try:
            assert isinstance(method, ImportedFunction)
            str(method.graph)
        except RuntimeError:
            continue


# Entries of the cache folder


def keep_entries() -> dict[str, tuple[bytes, list[tuple[Path, bytes]]]]:
    """By name: archives, and the cache entries written when their functions were prepared to run."""
    folder, kept = Path(os.environ["RUSHLIGHT_CACHE_DIR"]), {}
    for path in ARCHIVES:
        before = set(folder.glob("*.code"))
        prepare_methods(rushlight.jit.load(path))
        entries = [(each, cache.read(each)) for each in sorted(set(folder.glob("*.code")) - before)]
        if entries:
            kept[path.stem] = (path.read_bytes(), entries)
    return kept


def prepare_methods(module: object) -> None:
    """Compiles a module's methods; some of them need operators that the library lacks."""
    for method in list(module._c.type.methods.values()):
        with contextlib.suppress(RuntimeError):
            executor_of(method).plan()


def damaged_value(value: object, choose: random.Random) -> object:
    """A damaged part of an entry: numbers and texts out of range, parts left out or repeated."""
    if isinstance(value, (list, tuple)) and value and choose.random() < 0.9:
        items = list(value)
        at = choose.randrange(len(items))
        kind = choose.randrange(8)
        if kind == 0:
            del items[at]
        elif kind == 1:
            items[at:at] = [items[choose.randrange(len(items))]] * choose.choice((1, 3))
        else:
            items[at] = damaged_value(items[at], choose)
        return type(value)(items)
    if isinstance(value, int) and choose.random() < 0.5:
        return value + choose.choice((-1, 1, 2, 100))
    return choose.choice((None, True, -1, 0, 1, 7, 1 << 40, 1 << 80, 1.5, "", "x", "aten::add", "prim::TupleSlice", "CALL", "STORE", "OPN",
                          "GET_ATTR", "LOOP", "training", (), [], ("plain", 1), ("tensor", -1), ("tensor", 5), {}, b"\x00"))  # fmt: skip


def try_entry(name: str, kept: dict, choose: random.Random) -> str | None:
    """Loads an archive beside forged cache entries and runs its methods; returns the violation, or None."""
    data, entries = kept[name]
    for path, content in entries:
        if choose.random() < 0.3:
            path.write_bytes(damage_bytes(path.read_bytes(), choose))
        else:
            cache.keep(path, marshal.dumps(damaged_value(marshal.loads(content), choose)))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    _watching.append(True)
    try:
        call_methods(rushlight.jit.load(io.BytesIO(data)))
    except RuntimeError:  # from a `__setstate__`
        return None
    except BaseException:
        _watching.clear()
        return traceback.format_exc(limit=-6)
    finally:
        _watching.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for path, content in entries:
            cache.keep(path, content)
    return None


def call_methods(module: object) -> None:
    """Calls a module's methods with tensors for all arguments. Few methods accept these, so any Python exception is allowed."""
    for method in list(module._c.type.methods.values()):
        try:
            count = len(method.schema.arguments) - 1
            executor_of(method).run([module._c, *(rushlight.ones(2, 3) for _ in range(count))])
        except Exception as error:
            if isinstance(error, (SystemError, TimeoutError)):
                raise


# Trials


def run(trials: range) -> int:
    """Run trials in this process, announcing each; the number of findings."""
    signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RUSHLIGHT_CACHE_DIR"] = folder
        kept = keep_entries()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        return _run(trials, kept)


def _run(trials: range, kept: dict) -> int:
    findings = 0
    for trial in trials:
        choose = random.Random(f"entry {trial}")
        of_entry = choose.random() < 0.1
        name, data = (choose.choice(sorted(kept)), b"") if of_entry else damaged(trial)
        print(f"trial {trial}", flush=True)
        found = try_entry(name, kept, choose) if of_entry else try_archive(data)
        if found is not None:
            findings += 1
            print(f"FOUND trial {trial} of {name}:\n{found}", flush=True)
    print("end", flush=True)
    return findings


def run_batches(trials: range) -> int:
    """Run trials in processes, one after the other; the number of findings."""
    findings = 0
    start = trials.start
    while start < trials.stop:
        stop = min(start + BATCH, trials.stop)
        with tempfile.TemporaryFile("w+") as out:
            command = [sys.executable, "-m", "tests.fuzz_archives", "--start", str(start), "--trials", str(stop - start), "--inside"]
            code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
            out.seek(0)
            lines = out.read().splitlines()
        shown = [line for line in lines if not line.startswith("trial ") and line != "end"]
        if shown:
            print("\n".join(shown))
        findings += sum(line.startswith("FOUND") for line in shown)
        last = next((line for line in reversed(lines) if line.startswith("trial ")), f"trial {start - 1}")
        if "end" not in lines:
            findings += 1
            print(f"FOUND {last}: the process ended with status {code}")
            start = int(last.split()[1]) + 1
        else:
            start = stop
    return findings


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--inside", action="store_true", help="run in this process")
    options = parser.parse_args()
    if options.only is not None:
        return int(run(range(options.only, options.only + 1)) > 0)
    trials = range(options.start, options.start + options.trials)
    if options.inside:
        return int(run(trials) > 0)
    findings = run_batches(trials)
    print(f"{len(trials)} trials, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.addaudithook(_audit)
    sys.exit(main())
