"""Pickles that want to run code, take all memory or time, or reach outside of a storage: all are refused."""

from __future__ import annotations

import gc
import os
import pickle
import struct
import subprocess
import time

import pytest

from rushlight.serialization import UnpicklingError, load
from tests.serialization.archives import (
    EMPTY_HOOKS,
    call,
    checkpoint,
    group,
    integer,
    legacy_bytes,
    load_bytes,
    named,
    storage,
    tensor_program,
    text,
)

pytestmark = pytest.mark.usefixtures("small_heap")
FLOATS = {"0": bytes(16)}


def refuses(program: bytes, message: str, storages: dict | None = None) -> None:
    with pytest.raises(pickle.UnpicklingError, match=message):
        load_bytes(checkpoint(program, storages))


class Attack:
    """Pickles as a call of any function."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (os.system, ("touch {}",), "system"),
        (eval, ("open('{}', 'w')",), "builtins.eval"),
        (exec, ("open('{}', 'w')",), "builtins.exec"),
        (subprocess.check_output, ("touch {}",), "check_output"),
        (getattr, ("os", "system"), "builtins.getattr"),
        (__import__, ("os",), "builtins.__import__"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_calls_are_refused_and_not_made(protocol, function, args, name, tmp_path):
    marker = str(tmp_path / "marker")
    attack = Attack(function, *(arg.format(marker) for arg in args))
    program = pickle.dumps({"weights": [attack]}, protocol)[2:-1]
    refuses(program, name)
    assert not os.path.exists(marker)


def test_the_error_names_file_global_and_what_is_allowed(tmp_path):
    path = tmp_path / "bad.pt"
    path.write_bytes(checkpoint(call("subprocess", "call", text("true"))))
    with pytest.raises(UnpicklingError) as caught:
        load(path)
    message = str(caught.value)
    assert all(part in message for part in ("bad.pt", "GLOBAL subprocess.call", "add_safe_globals", "state_dict()"))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch", "load"), ("torch.hub", "load"), ("collections", "namedtuple"), ("collections", "defaultdict"),
        ("builtins", "frozenset"), ("torch._utils", "__builtins__"), ("torch.nn", "Linear"), ("", ""),
        ("os.path", "os.system"), ("collections.OrderedDict", "__class__"), ("numpy.core.multiarray", "scalar"),
        ("torch.storage", "_load_from_bytes"),
    ],
)  # fmt: skip
def test_globals_outside_the_list(module, name):
    refuses(named(module, name), "was not an allowed global")


def test_unsupported_tensors_are_named():
    refuses(named("torch._utils", "_rebuild_nested_tensor"), "nested tensors")


INSTRUCTIONS = {
    "nothing": b"",
    "INST": b"(ios\nsystem\n",
    "OBJ": b"(cbuiltins\nset\no",
    "NEWOBJ": named("collections", "OrderedDict") + b")\x81",
    "NEWOBJ_EX": named("collections", "OrderedDict") + b")}\x92",
    "EXT1": b"\x82\x01",
    "EXT2": b"\x83\x01\x00",
    "EXT4": b"\x84\x01\x00\x00\x00",
    "PERSID": b"Pname\n",
    "INT": b"I1\n",
    "LONG": b"L" + b"9" * 100_000 + b"L\n",
    "STRING": b"S'a'\n",
    "UNICODE": b"Vabc\n",
    "PUT": b"]p0\n",
    "GET": b"g0\n",
    "DUP": b"]2",
    "BUFFER": b"\x97",
    "unknown": b"\xff",
    "reduce data": b"]" + b")R",
    "reduce text": text("os.system") + group(text("true")) + b"R",
    "reduce a dtype": named("torch", "float32") + b")R",
    "reduce a storage class": named("torch", "FloatStorage") + b")R",
    "reduce Tensor": named("torch", "Tensor") + b")R",
    "reduce without tuple": named("collections", "OrderedDict") + b"]R",
    "build list": b"]}b",
    "build dict": b"}}b",
    "build global": named("torch", "Tensor") + b"}" + text("__class__") + b"Nsb",
    "build with text": EMPTY_HOOKS + text("x") + b"b",
    "hide items": EMPTY_HOOKS + b"}" + text("items") + b"Nsb",
    "hide dunder": EMPTY_HOOKS + b"}" + text("__class__") + b"Nsb",
    "append to dict": b"}K\x01a",
    "append to tuple": b")K\x01a",
    "appends to global": named("torch", "Size") + b"(K\x01e",
    "set item of list": b"]K\x00K\x01s",
    "odd items": b"}(K\x01u",
    "add to list": b"](K\x01\x90",
    "list key": b"}]Ns",
    "list in set": b"\x8f(]\x90",
    "nested tuple key": b"}" + group(group(group(b"K\x01"))) + b"Ns",
    "wide tuple key": b"}" + group(b"K\x01" * 100) + b"Ns",
    "huge key": b"}\x8a\x14" + bytes(19) + b"\x01Ns",
    "complex key": b"}" + call("builtins", "complex", b"G" + bytes(8), b"G" + bytes(8)) + b"Ns",
    "stack underflow": b"\x85",
    "pop of nothing": b"0",
    "memo of nothing": b"q\x00",
    "unknown memo": b"h\x07",
    "no mark": b"t",
    "no persistent id": b"Q",
    "persistent text": text("storage") + b"Q",
    "persistent tuple": group(text("module"), b"N") + b"Q",
    "storage of a global": group(text("storage"), named("torch", "float32"), text("0"), text("cpu"), b"K\x04") + b"Q",
    "stack global of data": b"K\x01K\x02\x93",
    "protocol 0": b"\x80\x00",
    "protocol 9": b"\x80\x09",
    "global without end": b"cos",
    "long global": b"c" + b"a" * 10_000 + b"\nb\n",
    "global not text": b"c\xff\xfe\nb\n",
    "text not text": b"X\x02\x00\x00\x00\xff\xfe",
}


@pytest.mark.parametrize("program", INSTRUCTIONS.values(), ids=INSTRUCTIONS.keys())
def test_instructions_that_are_refused(program):
    refuses(program, "<BytesIO>")


@pytest.mark.parametrize("code", [b"X", b"B", b"\x8b", b"T"])
@pytest.mark.parametrize("length", [1000, 1 << 20, (1 << 31) - 1, (1 << 32) - 1])
def test_declared_lengths_are_not_allocated(code, length):
    refuses(code + struct.pack("<I", length), "ends too early|are left|at most 4096")


@pytest.mark.parametrize("code", [b"\x8d", b"\x8e", b"\x96"])
@pytest.mark.parametrize("length", [1 << 20, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_declared_64_bit_lengths_are_not_allocated(code, length):
    refuses(code + struct.pack("<Q", length), "are left")


ARGUMENTS = {
    "encode to utf-16": call("_codecs", "encode", text("a"), text("utf-16")),
    "encode to rot13": call("_codecs", "encode", text("a"), text("rot13")),
    "encode bytes": call("_codecs", "encode", b"C\x01a", text("latin1")),
    "encode wide text": call("_codecs", "encode", text("\u4e2d"), text("latin1")),
    "bytearray of a number": call("builtins", "bytearray", integer(1 << 40)),
    "bytearray of a list": call("builtins", "bytearray", b"]"),
    "bytes of a number": call("builtins", "bytes", integer(1 << 40)),
    "complex of text": call("builtins", "complex", text("1"), text("2")),
    "set of text": call("builtins", "set", text("ab")),
    "set of lists": call("builtins", "set", b"](]]e"),
    "Size of text": call("torch", "Size", group(text("a"))),
    "device of a number": call("torch", "device", b"K\x01"),
    "device that does not exist": call("torch", "device", text("xyz")),
    "device with a long name": call("torch", "device", text("cpu" * 1000)),
    "layout that does not exist": call("torch.serialization", "_get_layout", text("os.system")),
    "OrderedDict of triples": call("collections", "OrderedDict", b"](K\x01K\x02K\x03te"),
    "OrderedDict of list keys": call("collections", "OrderedDict", b"](]K\x02te"),
    "Counter of a list": call("collections", "Counter", b"]"),
    "tensor without arguments": call("torch._utils", "_rebuild_tensor_v2"),
    "tensor of data": call("torch._utils", "_rebuild_tensor_v2", b"N", b"K\x00", b")", b")", b"\x89", EMPTY_HOOKS),
    "tensor v3 without dtype": call(
        "torch._utils", "_rebuild_tensor_v3", storage(4), b"K\x00", b")", b")", b"\x89", b"N", b"N"
    ),
    "parameter of data": call("torch._utils", "_rebuild_parameter", b"]", b"\x88", EMPTY_HOOKS),
    "type by a function": call(
        "torch._tensor", "_rebuild_from_type_v2", named("_codecs", "encode"), named("torch", "Tensor"), b")", b"}"
    ),
    "type by itself": call(
        "torch._tensor", "_rebuild_from_type_v2", named("torch._tensor", "_rebuild_from_type_v2"),
        named("torch", "Tensor"), b")", b"}",
    ),
    "type of another class": call(
        "torch._tensor", "_rebuild_from_type_v2", named("torch._utils", "_rebuild_tensor_v2"),
        named("torch", "Size"), b")", b"}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_odd_arguments_of_allowed_globals(program):
    refuses(program, "<BytesIO>", FLOATS)


def test_attributes_may_not_hide_methods():
    inner = group(storage(4), b"K\x00", group(b"K\x04"), group(b"K\x01"), b"\x89", EMPTY_HOOKS)
    state = b"}" + text("numpy") + b"Ns"
    kind, builder = named("torch", "Tensor"), named("torch._utils", "_rebuild_tensor_v2")
    refuses(call("torch._tensor", "_rebuild_from_type_v2", builder, kind, inner, state), "hide its methods", FLOATS)


def test_backward_hooks_are_refused():
    hooks = b"}K\x01K\x02s"
    program = call("torch._utils", "_rebuild_tensor_v2", storage(4), b"K\x00", b")", b")", b"\x89", hooks)
    refuses(program, "hooks, which are code", FLOATS)


HUGE = 1 << 62


@pytest.mark.parametrize(
    ("offset", "sizes", "strides"),
    [
        (0, (5,), (1,)), (1, (4,), (1,)), (4, (), ()), (0, (2, 2), (3, 1)), (0, (2,), (4,)), (HUGE, (1,), (1,)),
        (-1, (2,), (1,)), (0, (-2,), (1,)), (0, (2,), (-1,)), (3, (4,), (-1,)), (0, (2, 2), (1,)), (0, (2,), ()),
        (0, (HUGE, 4), (0, 1)), (0, (HUGE, HUGE), (0, 0)), (0, (HUGE, HUGE, 0), (0, 0, 0)), (0, (2, 2), (HUGE, HUGE)),
        (0, (1 << 33, 1 << 33), (1 << 31, 1 << 31)), (0, (1,), (HUGE,)), (0, (1,) * 65, (1,) * 65), (HUGE, (0,), (1,)),
    ],
)  # fmt: skip
def test_geometry_outside_the_storage(offset, sizes, strides):
    refuses(tensor_program(4, offset, sizes, strides), "tensor", FLOATS)


def test_geometry_of_other_types():
    for shape, steps, offset in [(b"]]a", b"](K\x01e", b"K\x00"), (group(b"G" + bytes(8)), group(b"K\x01"), b"K\x00")]:
        parts = (storage(4), offset, shape, steps, b"\x89", EMPTY_HOOKS)
        refuses(call("torch._utils", "_rebuild_tensor_v2", *parts), "integers", FLOATS)
    parts = (storage(4), b"K\x00", group(b"\x88"), group(b"K\x01"))
    refuses(call("torch._utils", "_rebuild_tensor", *parts), "integers", FLOATS)


def test_integer_tensors_cannot_require_grad():
    refuses(tensor_program(4, 0, (4,), (1,), b"\x88", "IntStorage"), "requires grad", FLOATS)


def test_one_storage_with_two_sizes():
    program = b"](" + storage(4) + storage(2, kind="DoubleStorage") + storage(8) + b"e"
    refuses(program, "declared with 16 and 32 bytes", FLOATS)


def test_copying_one_object_over_and_over_is_bounded():
    encode = named("_codecs", "encode") + b"q\x02" + text("a" * 50_000) + b"q\x00" + text("latin1") + b"q\x01"
    refuses(encode + b"h\x02h\x00h\x01\x86R" * 10_000, "copies more")
    numbers = b"](" + b"K\x01" * 50_000 + b"e"
    refuses(numbers + b"\x85q\x00" + named("builtins", "set") + b"q\x01" + b"h\x01h\x00R" * 10_000, "copies more")
    refuses(numbers + b"\x85q\x00" + named("torch", "Size") + b"q\x01" + b"h\x01h\x00R" * 10_000, "copies more")


def test_counts_are_bounded():
    program = b"(" + (named("collections", "OrderedDict") + b"q\x00") + b"h\x00)R" * 1_000_001
    refuses(program, "constructs more than")
    refuses(b"(" + b"}" * 5_000_001, "makes more than")


def test_hashing_stays_cheap():
    # Tuples whose every level holds the one below twice would take 2**60 steps to hash; such keys are refused at once.
    doubled = b"K\x01" + b"".join(b"q" + bytes((n,)) + b"h" + bytes((n,)) + b"\x86" for n in range(60))
    started = time.perf_counter()
    refuses(b"}" + doubled + b"Ns", "nested tuple")
    refuses(b"\x8f(" + doubled + b"\x90", "nested tuple")
    keys = b"".join(group(b"M" + struct.pack("<H", n)) + b"N" for n in range(10_001))
    refuses(b"}(" + keys + b"u", "more than 10000 tuples")
    assert time.perf_counter() - started < 10


DEPTH = 100_000
DEEP = {
    "lists": (b"]" * DEPTH, b"a" * (DEPTH - 1)),
    "tuples": (b")", b"\x85" * DEPTH),
    "dicts": (b"}K\x01" * DEPTH + b"N", b"s" * DEPTH),
    "ordered dicts": (named("collections", "OrderedDict") + b"q\x000" + b"h\x00)RK\x01" * DEPTH + b"N", b"s" * DEPTH),
    "states": (
        named("collections", "OrderedDict") + b"q\x000" + text("x") + b"q\x010" + b"h\x00)R}h\x01" * DEPTH + b"N",
        b"sb" * DEPTH,
    ),
    "attributes": (
        tensor_program(4, 0, (4,), (1,)) + b"0" + named("torch._tensor", "_rebuild_from_type_v2") + b"q\x010"
        + named("torch._utils", "_rebuild_tensor") + b"q\x020" + named("torch", "Tensor") + b"q\x030"
        + group(storage(4), b"K\x00", group(b"K\x04"), group(b"K\x01")) + b"q\x040" + text("x") + b"q\x050"
        + b"h\x01(h\x02h\x03h\x04}h\x05" * DEPTH + b"N",
        b"stR" * DEPTH,
    ),
    "counters": (
        named("collections", "Counter") + b"q\x000" + b"h\x00)RK\x01" * DEPTH + b"N",
        b"s" * DEPTH,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("down", "up"), DEEP.values(), ids=DEEP.keys())
def test_deep_nesting_neither_crashes_nor_hangs(down, up):
    loaded = load_bytes(checkpoint(down + up, FLOATS))
    assert loaded is not None
    del loaded
    gc.collect()
    refuses(down + up + b"\xff", "near its byte", FLOATS)


@pytest.mark.parametrize("part", [b"cos\nsystem\n)R", b"(" + text("storage") + b"tQ", b"]" * 10])
def test_legacy_headers_hold_only_plain_values(part):
    valid = legacy_bytes(1)
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        load_bytes(magic + b"\x80\x02" + part + b".")
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        load_bytes(b"\x80\x02" + part + b"." + valid)
