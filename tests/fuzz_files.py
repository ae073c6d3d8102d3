"""Hostile files of weights: `python -m tests.fuzz_files --trials 20000` reads damaged GGUF files, and a quarter as many of safetensors.

A trial writes a file some of whose numbers (counts, lengths, types, sizes, offsets, alignment) lie, changes bytes, or cuts it off.
Reading it must give tensors that can be used, or CheckpointError, within a limit of memory and 5 seconds; where only the tensors'
bytes were changed, it must give these bytes. What was read is then made a language model and a vocabulary, as examples do, which may
refuse by RuntimeError, ValueError or IndexError. Trials run in processes, so that a crash is a line of the report. The exit status
is 1 if there was a finding; `--only 17` runs one trial.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable

import numpy as np

import rushlight as torch
from examples import gemma
from examples.gguf_tokens import Tokenizer
from rushlight.quantized import BlockTensor
from rushlight.serialization import CheckpointError
from tests.examples.small_gemma import model

SECONDS, BATCH = 5, 2500
MEMORY = 256 << 20  # bytes of address space for a trial; files have some 100 KB
NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 9, 12, 31, 32, 33, 64, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 59,
    1 << 60, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip

# A valid file, with every type of metadata

SETTINGS = {
    "block_count": 3, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4, "attention.head_count_kv": 2,
    "attention.key_length": 16, "context_length": 40, "attention.sliding_window": 5,
}  # fmt: skip
PIECES = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<0x41>",
    "\u2581",
    *"abcdefghijklmnopqrstuvwxyz",
    *(f"<{each}>" for each in range(18)),
]
STRING, ARRAY = 8, 9
ENTRIES: list[tuple[str, int, object]] = [
    ("general.architecture", STRING, "gemma3"), ("general.alignment", 4, 32), ("a", 0, 7), ("b", 1, -7), ("c", 2, 300), ("d", 3, -300),
    ("e", 7, True), ("f", 10, 1 << 50), ("g", 11, -1), ("h", 12, 0.5), ("nested", ARRAY, (ARRAY, [(4, [1, 2]), (STRING, ["x"]), (5, [])])),
    *((f"gemma3.{name}", 4, value) for name, value in SETTINGS.items()), ("gemma3.rope.freq_base", 6, 1e6),
    ("gemma3.attention.layer_norm_rms_epsilon", 6, 1e-6), ("tokenizer.ggml.model", STRING, "llama"),
    ("tokenizer.ggml.tokens", ARRAY, (STRING, PIECES)), ("tokenizer.ggml.scores", ARRAY, (6, [0.0] * 50)),
    ("tokenizer.ggml.token_type", ARRAY, (5, [3, 3, 3, 2, 6] + [1] * 45)), ("tokenizer.ggml.bos_token_id", 4, 2),
    ("tokenizer.ggml.eos_token_id", 4, 1),
]  # fmt: skip
CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
FORMATS = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1")
NUMBER_OF = {"q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8}


def contents() -> list[tuple[str, tuple[int, ...], int, bytes]]:
    """The tensors: name, sizes, type and bytes."""
    names = {
        gemma.own_name(f"blk.{layer}.{name}.weight"): f"blk.{layer}.{name}.weight" for layer in range(3) for name in gemma.NAMES
    }
    names |= {"tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}
    made = []
    for place, (own, tensor) in enumerate(model().state_dict().items()):
        if own not in names:
            continue
        if tensor.dim() == 2:
            name = FORMATS[place % len(FORMATS)]
            made.append(
                (names[own], tuple(tensor.shape), NUMBER_OF[name], BlockTensor.quantize(tensor, name).blocks.numpy().tobytes())
            )
        else:
            made.append((names[own], tuple(tensor.shape), 0, tensor.numpy().tobytes()))
    return made


class Writer:
    """Writes a file; `lie` may replace any of its numbers."""

    def __init__(self, lie: Callable[[int], int]):
        self.lie, self.parts = lie, []

    def number(self, code: str, value: int) -> None:
        self.parts.append(struct.pack("<" + code, self.lie(value) % (1 << 8 * struct.calcsize(code))))

    def text(self, text: str) -> None:
        self.number("Q", len(text.encode()))
        self.parts.append(text.encode())

    def value(self, kind: int, value: object) -> None:
        if kind == STRING:
            self.text(value)
        elif kind == ARRAY:
            inner, items = value
            self.number("I", inner)
            self.number("Q", len(items))
            for each in items:
                self.value(inner, each)
        elif CODES[kind] in "BHIQ":
            self.number(CODES[kind], value)
        else:
            self.parts.append(struct.pack("<" + CODES[kind], value))

    def file(self, tensors: list, entries: list = ENTRIES) -> bytes:
        """The whole file; the tensors' bytes come last."""
        self.parts.append(b"GGUF")
        self.number("I", 3)
        self.number("Q", len(tensors))
        self.number("Q", len(entries))
        for name, kind, value in entries:
            self.text(name)
            self.number("I", kind)
            self.value(kind, value)
        offset, bodies = 0, []
        for name, sizes, kind, body in tensors:
            self.text(name)
            self.number("I", len(sizes))
            for size in reversed(sizes):
                self.number("Q", size)
            self.number("I", kind)
            self.number("Q", offset)
            bodies.append(body + bytes(-len(body) % 32))
            offset += len(bodies[-1])
        head = b"".join(self.parts)
        return b"".join([head, bytes(-len(head) % 32), *bodies])


class Lies:
    """Replaces a few of the numbers of a file."""

    def __init__(self, choose: random.Random, numbers: int):
        self.choose, self.count = choose, 0
        self.places = {choose.randrange(numbers) for _ in range(choose.choice((1, 1, 2, 4)))}

    def __call__(self, value: int) -> int:
        self.count += 1
        if self.count - 1 not in self.places:
            return value
        return self.choose.choice(
            (self.choose.choice(NUMBERS), value + 1, value - 1, value * 2, value ^ 1 << self.choose.randrange(64))
        )


def damage_entries(choose: random.Random) -> list:
    """Leave out, repeat or replace entries of metadata."""
    entries = list(ENTRIES)
    for _ in range(choose.choice((1, 1, 2))):
        place = choose.randrange(len(entries))
        name, kind, value = entries[place]
        match choose.randrange(5):
            case 0:
                del entries[place]
            case 1:
                entries[place] = (name, STRING, choose.choice(("", "llama", "x" * 1000)))
            case 2 if kind == ARRAY:
                entries[place] = (name, ARRAY, (value[0], value[1] * choose.choice((0, 2))))
            case 3:
                entries[place] = (name, ARRAY, choose.choice(((4, [1, 2]), (STRING, ["a", "b"]), (6, [0.5] * 50), (5, []))))
            case _:
                entries[place] = (name, choose.choice((4, 10, 11, 12)), choose.choice((*NUMBERS[:24],)))
    return entries


def damage_bytes(content: bytes, choose: random.Random) -> bytes:
    """Change, insert, remove or repeat bytes, mostly in front, or cut the end off."""
    changed = bytearray(content)
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        reach = len(changed) if choose.random() < 0.2 else min(len(changed), 6000)
        place, length = choose.randrange(reach + 1), choose.choice((1, 1, 2, 4, 8, 30))
        match choose.randrange(6):
            case 0 | 1:
                changed[place : place + 1] = bytes((choose.randrange(256),))
            case 2:
                changed[place:place] = choose.randbytes(length)
            case 3:
                del changed[place : place + length]
            case 4:
                changed[place:place] = changed[place : place + length] * choose.choice((1, 2, 50))
            case _:
                if choose.random() < 0.3:
                    del changed[place:]
    return bytes(changed)


# What must hold


class Trials:
    """Damages files and reads them."""

    def __init__(self, folder: str):
        self.path, self.tensors = os.path.join(folder, "file"), contents()
        self.counter = Lies(random.Random(0), 1)
        self.counter.places = set()
        self.valid = Writer(self.counter).file(self.tensors)
        self.numbers, self.begin = (
            self.counter.count,
            len(self.valid) - sum(len(each[3]) + -len(each[3]) % 32 for each in self.tensors),
        )
        with open(self.path, "wb") as file:
            file.write(self.valid)
        step(self.path)  # the undamaged file must work
        assert Tokenizer(torch.load_gguf(self.path).metadata).encode("a bc<eos>")
        self.safe = self._safetensors()

    def _safetensors(self) -> tuple[dict, bytes]:
        header, content = {}, b""
        for name, kind, sizes in (
            ("a", "F32", (3, 4)),
            ("b", "BF16", (5,)),
            ("c", "I64", ()),
            ("d", "U8", (0, 3)),
            ("e", "BOOL", (2, 2)),
        ):
            count = int(np.prod(sizes)) * {"F32": 4, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1}[kind]
            header[name] = {"dtype": kind, "shape": list(sizes), "data_offsets": [len(content), len(content) + count]}
            content += bytes(index % 2 for index in range(count))
        return header, content

    def gguf(self, choose: random.Random) -> None:
        """Reads a damaged GGUF file; raises if something is wrong."""
        kind = choose.choice(("lies", "lies", "bytes", "both", "cut", "tensors", "entries", "empty"))
        content = self.valid
        if kind == "tensors":
            return self._changed_tensors(choose)
        if kind in ("lies", "both"):
            content = Writer(Lies(choose, self.numbers)).file(self.tensors)
        if kind == "empty":
            sizes = [0, *(choose.choice(NUMBERS) for _ in range(choose.randrange(4)))]
            tensor = ("empty", tuple(choose.sample(sizes, len(sizes))), choose.choice((0, 1, 2, 8, 12, 14, 24, 28, 30)), b"")
            content = Writer(self.counter).file([*self.tensors, tensor])
        if kind == "entries":
            content = Writer(self.counter).file(self.tensors, damage_entries(choose))
        if kind in ("bytes", "both"):
            content = damage_bytes(content, choose)
        if kind == "cut":
            content = content[: choose.randrange(len(content))]
        with open(self.path, "wb") as file:
            file.write(content)
        try:
            found = torch.load_gguf(self.path)
        except CheckpointError as error:
            assert str(error).startswith(self.path), error
            return
        for tensor in found.values():
            use(tensor)
        for make in (lambda: Tokenizer(found.metadata).encode("a bc<eos>"), lambda: step(self.path)):
            try:
                make()
            except (RuntimeError, ValueError, IndexError):
                pass

    def _changed_tensors(self, choose: random.Random) -> None:
        content = bytearray(self.valid)
        for _ in range(20):
            content[choose.randrange(self.begin, len(content))] = choose.randrange(256)
        with open(self.path, "wb") as file:
            file.write(content)
        found, place = torch.load_gguf(self.path), self.begin
        for name, sizes, _, body in self.tensors:
            tensor = found[name]
            held = (tensor.blocks if isinstance(tensor, BlockTensor) else tensor).numpy().tobytes()
            assert tuple(tensor.shape) == sizes and held == content[place : place + len(body)], name
            place += len(body) + -len(body) % 32
            use(tensor)

    def safetensors(self, choose: random.Random) -> None:
        """Reads a damaged safetensors file; raises if something is wrong."""
        header, content = self.safe
        header = json.loads(json.dumps(header))
        for _ in range(choose.choice((0, 1, 1, 2))):
            entry = header[choose.choice(sorted(header))]
            match choose.randrange(3):
                case 0:
                    entry["dtype"] = choose.choice(("F64", "F16", "BOOL", "I8", "F8_E4M3", "x", None, 3))
                case 1:
                    entry["shape"] = [choose.choice((*NUMBERS, -1, 1.5, None, "2")) for _ in range(choose.randrange(5))]
                case _:
                    entry["data_offsets"] = [
                        choose.choice((*NUMBERS, -1, 48, 58, None)) for _ in range(choose.choice((1, 2, 2, 2, 3)))
                    ]
        text = json.dumps(header).encode()
        length = len(text) if choose.random() < 0.8 else choose.choice(NUMBERS)
        made = struct.pack("<Q", length) + text + content
        if choose.random() < 0.4:
            made = damage_bytes(made, choose)
        with open(self.path, "wb") as file:
            file.write(made)
        try:
            found = torch.load_safetensors(self.path if choose.random() < 0.5 else io.BytesIO(made))
        except CheckpointError as error:
            assert str(error).startswith((self.path, "the given stream")), error
            return
        for tensor in found.values():
            use(tensor)


def use(tensor: torch.Tensor) -> None:
    """Reads all elements, so that wrong sizes show."""
    with np.errstate(all="ignore"):  # scales and numbers are infinite or NaN
        repr(tensor)
        if isinstance(tensor, BlockTensor):
            tensor.dequantize().sum()
        elif tensor.numel():
            tensor.to(torch.float64).sum()
            tensor.reshape(-1)[-1].item()


def step(path: str) -> None:
    """Runs one step of the model in a file."""
    made, _ = gemma.load(path)
    caches = [[torch.zeros(1, 8, *made.cache_sizes) for _ in made.windows] for _ in range(2)]
    with np.errstate(all="ignore"):
        made(torch.tensor([[1, 2]]), torch.arange(2), None, torch.tensor([0]), *caches)


# Trials


def _alarm(number: int, frame: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} seconds")


def run(kind: str, trials: range) -> int:
    """Run trials in this process, announcing each; the number of findings."""
    findings = 0
    torch.set_grad_enabled(False)
    signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        read = getattr(Trials(folder), kind)
        limit = resource.getpagesize() * int(open("/proc/self/statm").read().split()[0]) + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for trial in trials:
            print(f"trial {trial}", flush=True)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                read(random.Random(f"{kind} {trial}"))
            except BaseException:
                findings += 1
                print(f"FOUND {kind} trial {trial}:\n{traceback.format_exc(limit=-6)}", flush=True)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    print("end", flush=True)
    return findings


def run_batches(kind: str, trials: range) -> int:
    """Run trials in processes, one after the other; the number of findings."""
    findings, start = 0, trials.start
    while start < trials.stop:
        stop = min(start + BATCH, trials.stop)
        command = [
            sys.executable,
            "-m",
            "tests.fuzz_files",
            "--kind",
            kind,
            "--start",
            str(start),
            "--trials",
            str(stop - start),
        ]
        done = subprocess.run([*command, "--inside"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines = done.stdout.splitlines()
        shown = [line for line in lines if not line.startswith("trial ") and line != "end"]
        if shown:
            print("\n".join(shown))
        findings += sum(line.startswith("FOUND") for line in shown)
        if "end" in lines:
            start = stop
            continue
        last = next((line for line in reversed(lines) if line.startswith("trial ")), f"trial {start}")
        findings += 1
        print(f"FOUND {kind} {last}: the process ended with status {done.returncode}")
        start = int(last.split()[1]) + 1
    return findings


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--kind", choices=("gguf", "safetensors"), help="by default both, a quarter as many of safetensors")
    parser.add_argument("--only", type=int)
    parser.add_argument("--inside", action="store_true", help="run in this process")
    options = parser.parse_args()
    if options.only is not None:
        return int(run(options.kind or "gguf", range(options.only, options.only + 1)) > 0)
    trials = range(options.start, options.start + options.trials)
    if options.inside:
        return int(run(options.kind or "gguf", trials) > 0)
    kinds = [options.kind] if options.kind else ["gguf", "safetensors"]
    counts = [trials if options.kind or kind == "gguf" else range(0, len(trials) // 4) for kind in kinds]
    findings = sum(run_batches(kind, count) for kind, count in zip(kinds, counts, strict=True))
    print(f"{' and '.join(f'{len(count)} of {kind}' for kind, count in zip(kinds, counts, strict=True))}: {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
