"""Archives that are damaged or made to harm: RuntimeErrors that say what is wrong, quickly and in little memory."""

from __future__ import annotations

import io
import resource
import zipfile
from pathlib import Path

import pytest

import rushlight as torch
from tests.fuzz_archives import run_batches

ENUMS = Path(__file__).with_name("archives") / "enums.pt"
MODULE = """\
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    BODY
"""
DATA = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89ub."


def archive(code: str = MODULE.replace("BODY", "return x"), data: bytes = DATA, **more: bytes) -> bytes:
    """An archive of one file of code and a pickle."""
    records = {"data.pkl": data, "constants.pkl": b"\x80\x02).", "version": b"3\n", "code/__torch__.py": code.encode()}
    return zipped({f"m/{name.replace('__SLASH__', '/')}": part for name, part in {**records, **more}.items()})


def zipped(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as packed:
        for name, part in records.items():
            packed.writestr(name, part)
    return out.getvalue()


def load(data: bytes) -> torch.jit.ScriptModule:
    return torch.jit.load(io.BytesIO(data))


def run(body: str) -> object:
    return load(archive(MODULE.replace("BODY", body)))(torch.ones(2))


def test_the_plain_one_loads():
    assert run("return torch.add(x, 1)").tolist() == [2.0, 2.0]


@pytest.mark.parametrize("data, problem", [
    (b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.", "os.system"),
    (b"\x80\x02c__torch__\nMissing\n)\x81.", "no such class"),
    (b"\x80\x02c__torch__\nM\n)\x81}b.", "without its attribute 'training'"),
    (b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00trainingK\x01ub.", "declared as bool"),
    (b"\x80\x02K\x01.", "holds no module"),
    (b"\x80\x02X\xff\xff\xff\x7fab.", "declares 2147483647 bytes"),
    (b"\x80\x02" + b"]" * 100 + b"e.", "mark"),
    (b"\x80\x02\x8c\x02os\x8c\x06system\x93.", "os.system"),
    (b"\x80\x02i__torch__\nM\n.", "instruction b'i'"),
    (b"\x80\x02c__torch__\nM\n)\x81(X\x01\x00\x00\x00ad.", "instruction b'd'"),
    (b"", "ends too early"),
])  # fmt: skip
def test_hostile_pickles(data, problem):
    with pytest.raises(RuntimeError, match=problem):
        load(archive(data=data))


@pytest.mark.parametrize("body, problem", [
    ("return __import__('os')", "undefined value __import__"),
    ("return eval('1')", "undefined value eval"),
    ("return open('/etc/passwd')", "undefined value open"),
    ("return getattr(self, '__class__')", "no attribute or method '__class__'"),
    ("return self.__class__", "no attribute or method '__class__'"),
    ("return x.__class__", "no attribute or method '__class__'"),
    ("return (lambda: x)()", "lambda"),
    ("import os", "import statements"),
    ("yield x", "yield"),
    ("return torch.load(x)", "Unknown builtin op: aten::load"),
    ("return torch.ops", "cannot be used as a value"),
    ("return ops.os.system('true')", "Unknown builtin op: os::system|Unknown builtin|cannot call"),
    ("return CONSTANTS.c0", "0 constants"),
    ("return CONSTANTS.__init__", "0 constants"),
    ("return __torch__.Nothing(x)", "defines no __torch__.Nothing"),
    ("global x", "global"),
    ("return undefined", "undefined value undefined"),
    ("return " + "-" * 3000 + "1", "nested too deeply|too many nested|no code of TorchScript|recursion"),
    ("return " + "(" * 500 + "x" + ")" * 500, "too many nested"),
    ("return " + "9" * 5000, "no code of TorchScript"),
])  # fmt: skip
def test_hostile_code(body, problem):
    with pytest.raises(RuntimeError, match=problem):
        run(body)


@pytest.mark.parametrize("code, problem", [
    ("print('x')\n", "only classes and functions"),
    ("class M(Module):\n  training : bool\nclass M(Module):\n  training : bool\n", "defines 'M' twice"),
    ("class M(Module):\n  training : bool = __import__('os')\n", "only constants"),
    ("class M(object):\n  training : bool\n", "only inherit"),
    ("@evil\nclass M(Module):\n  training : bool\n", "only classes and functions"),
    ("class M(Module):\n  training : __torch__.Nothing\n", "Unknown type name"),
    ("class M(Module):\n  _modules : bool\n", "modules themselves use"),
    ("class M(Module):\n  for x in y: pass\n", "can't stand in a class"),
    ("class M(Module):\n  training : List[" * 1 + "List[" * 3000 + "int" + "]" * 3001 + "\n", "nested|no code"),
    ("class M(Module:\n", "no code of TorchScript"),
    ("class M(Module):\n  training : bool\n  def f() -> int:\n    return 1\n", "takes an object first"),
    ("class M(Module):\n  training : __torch__.torch.classes.dist_rpc.WorkerInfo\n", "torch's extensions"),
    ("class M(Module):\n  __forward_hooks__ = ['f', ]\n  training : bool\n", "no method 'f'"),
])  # fmt: skip
def test_hostile_classes(code, problem):
    with pytest.raises(RuntimeError, match=problem):
        load(archive(code))


def test_containers_that_contradict_themselves():
    whole = ENUMS.read_bytes()
    for data, problem in (
        (whole[:-100], "no zip directory"),
        (whole[:2000] + whole[2100:], "zip64|zip directory"),
        (b"", "does not begin as a zip archive"),
        (b"PK\x03\x04" + b"\0" * 100, "no zip directory"),
        (zipped({"m/version": b"3\n"}), "has 0 records"),
        (zipped({"m/data.pkl": b"", "n/data.pkl": b"", "m/code/x.py": b"", "m/constants.pkl": b""}), "has 2 records"),
        (archive(version=b"99\n"), "format version '99'"),
        (archive(version=b"x"), "format version 'x'"),
        (archive(byteorder=b"middle"), "byte order 'middle'"),
        (zipped({"m/model.json": b"{}", "m/version": b"1\n"}), "describes no mainModule"),
        (archive(**{"constants.pkl": b"\x80\x02K\x01."}), "constants.pkl holds a int"),
    ):
        with pytest.raises(RuntimeError, match=problem):
            load(data)


def test_overlapping_and_repeated_records():
    with pytest.warns(UserWarning, match="Duplicate name"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as packed:
            for name, data in (("m/data.pkl", DATA), ("m/data.pkl", DATA), ("m/code/__torch__.py", b"")):
                packed.writestr(name, data)
    with pytest.raises(RuntimeError, match="two records called 'm/data.pkl'"):
        load(out.getvalue())


def test_bombs_are_bounded():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    records = {"m/data.pkl": DATA, "m/constants.pkl": b"\x80\x02).", "m/version": b"3\n", "m/code/__torch__.py": b"#" * (300 << 20)}
    with pytest.raises(RuntimeError, match="unpacks to more than"):
        load(zipped(records, zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match="compressed"):
        load(zipped({**records, "m/code/__torch__.py": MODULE.replace("BODY", "return x").encode(), "m/data/0": b"\0" * 100,
                     "m/data.pkl": storage_pickle(25)}, zipfile.ZIP_DEFLATED))  # fmt: skip
    with pytest.raises(RuntimeError, match="declared with 4000000000000 bytes"):
        load(archive(data=storage_pickle(10**12), data__SLASH__0=b"\0" * 100))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (900 << 10)


def storage_pickle(count: int) -> bytes:
    """A pickle that refers to a storage of floats."""
    number = b"\x8a\x08" + count.to_bytes(8, "little")
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
            b"X\x03\x00\x00\x00cpu" + number + b"tQK\x00" + number + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR.")  # fmt: skip


def test_endless_data_is_refused_by_its_types():
    inner = b"]" + b"(" + b"h\x00" * 1 + b"e"
    data = b"\x80\x02]q\x00h\x00a0ctorch.jit._pickle\nrestore_type_tag\n(h\x00X\x0f\x00\x00\x00List[List[int]]]tR" + inner + b"."
    with pytest.raises(RuntimeError):
        load(archive(data=data))


def test_random_damage():
    assert run_batches(range(300)) == 0
