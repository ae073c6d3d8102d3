"""Run PyTorch's test files, and report: see the package."""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_OF_RANKS = {
    "BACKEND": "gloo",
    "WORLD_SIZE": "3",
    "TEMP_DIR": tempfile.gettempdir(),
    "OMP_NUM_THREADS": "1",
}
"""What tests of several processes read: for a library's own threads, ranks are many enough."""
ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "build" / "torch-tests"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.torch_tests", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run test files with one library")
    run.add_argument("--source", type=Path, required=True, help="the unpacked source package of PyTorch")
    run.add_argument("--library", choices=("rushlight", "torch"), default="rushlight")
    run.add_argument("--limit", type=int, default=120, help="seconds for one test")
    run.add_argument("-k", dest="chosen", help="an expression of pytest that chooses tests: their results are shown, not kept")
    run.add_argument("--one-of", type=int, default=1, metavar="N", help="run one test in N, chosen by a hash of its name")
    run.add_argument("-n", dest="processes", type=int, default=2)
    run.add_argument("files", nargs="+", help="names below the source's folder test, without .py")
    report = commands.add_parser("report", help="count and group what has been run")
    report.add_argument("files", nargs="*")
    report.add_argument("--errors", type=int, default=0, help="how many groups of errors to show for each file")
    options = parser.parse_args()
    if options.command == "run":
        return max(_run(options, name) for name in options.files)
    return _report(options.files, options.errors)


def _results_of(name: str, library: str) -> Path:
    return RESULTS / f"{name.replace('/', '.')}.{library}.jsonl"


def _run(options: argparse.Namespace, name: str) -> int:
    source = options.source.resolve()
    file = source / "test" / f"{name}.py"
    if not file.exists():
        sys.exit(f"{file} does not exist; --source is to be the unpacked source package of PyTorch")
    results = _results_of(name, options.library) if options.chosen is None else RESULTS / "chosen.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "TORCH_TESTS_LIBRARY": options.library,
        "TORCH_TESTS_SOURCE": str(source),
        "TORCH_TESTS_RESULTS": str(results),
        "TORCH_TESTS_LIMIT": str(options.limit),
        "TORCH_TESTS_OF": str(options.one_of),
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(max(options.limit - 10, 1)),  # ranks that wait for one another say where
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
        **(_OF_RANKS if name.startswith("distributed/") else {}),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(file.parent), str(source / "test"), os.environ.get("PYTHONPATH", "")]),
    }
    flags = ["--noconftest", "-p", "no:cacheprovider", "-p", "tools.torch_tests.plugin", "--import-mode=importlib", "-q"]
    flags += ["--rootdir", str(file.parent), "-c", "/dev/null", "--tb=short"]
    flags += ["-n", str(options.processes)] if options.processes > 1 and options.chosen is None else []
    flags += ["--no-header", "-W", "ignore", "--assert=plain"]  # PyTorch captures plain asserts, not those that pytest rewrites
    flags += ["-k", options.chosen] if options.chosen is not None else ["--tb=short", "-rN"]
    return subprocess.run([sys.executable, "-m", "pytest", *flags, str(file)], env=environment, cwd=file.parent).returncode


def _read(path: Path) -> dict[str, dict]:
    """Results by test, without those on a device that Rushlight does not have."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["test"]: result for result in map(json.loads, lines) if "LAZY::" not in result["test"]}


_ABSENT = (
    re.compile(r"(?:the library has no |No module named '|<absent |no operator namespace or module ')(?P<name>[\w.]+)"),
    re.compile(r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)"),
    re.compile(r"has no attribute '(?P<name>\w+)"),
    re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'"),
)
# Of these packages the own names and some modules are documented, other modules are not.
_OPEN_PACKAGES = ("_dynamo", "_inductor")
_OPEN_MODULES = ("config", "exc", "backends")
_BELOW = re.compile(r"\b(?:_dynamo|_inductor)\.(\w+)\.")

_COUNTS = re.compile(r"\bop_count\b|\bexpected_ops\b|\bcounters\[|\b_debug_get_cache_entry_list\b|\bcompilation_metrics\b")
_GUARD_HOOKS = ("argument 'guard_fail_fn'", "argument 'guard_export_fn'")
_OF_BUILD = ("libtorchbind_test.so", "libbackend_with_compiler.so", "libjitbackend_test.so", "_TorchScriptTesting", "mkldnn")
_OF_GRAPHS = re.compile(
    r"Searched string:\s+(graph\(|%[\w.]+ : |%[\w.]+, %|return \(|block\d|with prim::|prim::|= prim::)"  # FileCheck of a graph
    r"|^AssertionError: graph\(%"  # a graph does not hold the kinds of nodes that are expected
    r"|'(Graph|Node|Block|Value|Code|TensorType)' object has no attribute '"
    r"|parse_ir\(\)|in line \d+ of:\s+graph\("  # the text of a graph is read
    r"|an object of '[^']+' has no attribute '(getattr|hasattr|setattr|qualified_name)'"  # a module's `_c`
)
_OF_CODE = re.compile(
    r"_inductor\.utils\.run_(fw_bw_)?and_get_(fw_bw_)?\w*code|_inductor\.(test_operators|aoti_eager)|module 'prims'"
)
_INNER_CLASSES = {
    "TestFunctionalTracing": " not raised",  # which functions PyTorch's own control flow keeps from being traced
    "TestAutodiffSubgraphSlicing": "",  # where a pass puts the borders of prim::DifferentiableGraph
}
"""Classes of tests of inner matters, with the end of the errors that are about these."""
_OF_WRAPPERS = ("GradTrackingTensor(lvl=", "BatchedTensor(lvl=")  # the print of a tensor inside of a transform


def _is_inner(result: dict | None) -> bool:
    """Whether a test failed at what is no public behaviour.

    That is a name with an underscore, or in a module of `torch._dynamo` or `torch._inductor` that is not documented; generated
    text; what only PyTorch's own build makes; hooks that get PyTorch's guards; and a comparison of counts of operators or of
    counters of the compiler. The number of captured graphs (`frame_count`) is public: it tells graph breaks and recompilations.

    Generated text is that of graphs, and what wrappers inside of transforms, with their levels, print. So are attributes that
    graphs of TorchScript, their parts and their types of tensors lack: these classes are of `torch._C`, and only their print is
    documented. Inner are also tests of the classes in `_INNER_CLASSES`, those that ask inductor for the C++ or Triton that it
    wrote, for operators of its own tests or for its cache of eager kernels, and those of the operators of `torch.ops.prims`.
    """
    if result is None:
        return False
    error = result.get("error", "")
    if _is_inner_name(error) or result.get("generated", False) or _COUNTS.search(result.get("statement", "")):
        return True
    test = result.get("test", "")
    if any(f"{name}::" in test and error.endswith(end) for name, end in _INNER_CLASSES.items()):
        return True
    if _OF_GRAPHS.search(error) or _OF_CODE.search(error):
        return True
    return any(text in error for text in _OF_BUILD + _OF_WRAPPERS + _GUARD_HOOKS)


def _is_inner_name(error: str) -> bool:
    """Whether an error says that an inner name is missing."""
    absent = next(filter(None, (pattern.search(error) for pattern in _ABSENT)), None)
    if absent is None:
        return False
    name = ".".join(filter(None, (absent.groupdict().get("module"), absent["name"])))
    below = _BELOW.search(f"{name}." if "No module named" in error else name)
    if below is not None and below[1] not in _OPEN_MODULES:
        return True
    return any(part.startswith("_") and not part.startswith("__") and part not in _OPEN_PACKAGES for part in name.split("."))


def _report(files: list[str], shown: int) -> int:
    files = files or sorted({path.name.removesuffix(".jsonl").rsplit(".", 1)[0] for path in RESULTS.glob("*.*.jsonl")})
    for name in files:
        theirs, ours = _read(_results_of(name, "torch")), _read(_results_of(name, "rushlight"))
        wanted = [test for test, result in theirs.items() if result["outcome"] == "passed"]
        passed = [test for test in wanted if ours.get(test, {}).get("outcome") == "passed"]
        inner = sum(_is_inner(ours.get(test)) for test in wanted)
        skipped = sum(ours.get(test, {}).get("outcome") == "skipped" for test in wanted)
        public = len(wanted) - inner - skipped
        share = len(passed) / max(public, 1)
        print(f"{name}: {len(passed)} of {public}, {share:.1%} (and {inner} of inner names, {skipped} that skip themselves)")
        done = set(passed)
        groups: dict[str, list[str]] = collections.defaultdict(list)
        for test in wanted:
            if test not in done and not _is_inner(ours.get(test)) and ours.get(test, {}).get("outcome") != "skipped":
                groups[_kind(ours.get(test))].append(test)
        for kind, tests in sorted(groups.items(), key=lambda group: -len(group[1]))[:shown]:
            print(f"  {len(tests):5} {kind}")
            print(f"        {', '.join(test.split('::')[-1] for test in tests[:4])}")
    return 0


def _kind(result: dict | None) -> str:
    if result is None:
        return "not found"
    if result["outcome"] != "failed":
        return result["outcome"]
    return re.sub(r"0x[0-9a-f]+|\b\d+(\.\d+)?(e[-+]?\d+)?\b", "#", " ".join(result["error"].split()))[:150]


if __name__ == "__main__":
    sys.exit(main())
