"""Archives of quantized modules, without torch: those that torch saved give its results, damaged ones RuntimeErrors."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.quantized.packed import CLASSES, PackedError
from tests.jit.archives_values import assert_same
from tests.jit.test_archives import load_with_call, plain

ARCHIVES = sorted(Path(__file__).with_name("archives").glob("*.pt"))


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_loads_and_agrees_with_torch(path):
    module, arguments, result = load_with_call(path)
    assert_same(plain(module(*arguments)), result)
    again = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    assert_same(plain(again(*arguments)), result)


def test_what_is_saved_has_torchs_classes_and_no_code_of_theirs():
    module = load_with_call(Path(__file__).with_name("archives") / "dynamic_lstm.pt")[0]
    with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
        names = [name.partition("/")[2] for name in archive.namelist()]
        data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
    assert b"__torch__.torch.classes.rnn\nCellParamsBase" in data and b"quantized_dynamic" in data
    assert not any(name.startswith("code/__torch__/torch/classes") for name in names)


MODULE = """\
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  p : __torch__.torch.classes.quantized.CLASS
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    p = self.p
    return BODY
"""
FLOATS = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQ" \
    b"K\x00(K\x02K\x03t(K\x03K\x01t\x89ccollections\nOrderedDict\n)RtR"  # fmt: skip


def quantized(settings: bytes, storage: bytes = b"QInt8Storage", sizes: bytes = b"(K\x02K\x03t", count: bytes = b"K\x06") -> bytes:
    """The pickle of a quantized tensor over storage 1."""
    return (
        b"ctorch._utils\n_rebuild_qtensor\n((X\x07\x00\x00\x00storagectorch\n" + storage + b"\nX\x01\x00\x00\x001X\x03\x00\x00\x00cpu"
        + count + b"tQK\x00" + sizes + b"(K\x03K\x01t" + settings + b"\x89ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip


ONE_SCALE = b"(ctorch\nper_tensor_affine\nG?\xb9\x99\x99\x99\x99\x99\x9aK\x00t"


def archive(state: bytes, name: str = "LinearPackedParamsBase", body: str = "ops.quantized.linear_dynamic(x, p)") -> io.BytesIO:
    """A module with a packed weight of a state."""
    pickle = (
        b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89X\x01\x00\x00\x00pc__torch__.torch.classes.quantized\n"
        + name.encode() + b"\n)\x81" + state + b"ub."
    )  # fmt: skip
    code = MODULE.replace("CLASS", name).replace("BODY", body)
    records = {"data.pkl": pickle, "constants.pkl": b"\x80\x02).", "version": b"3\n", "code/__torch__.py": code.encode(),
               "data/0": bytes(24), "data/1": bytes(range(6))}  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for record, data in records.items():
            packed.writestr(f"m/{record}", data)
    out.seek(0)
    return out


def test_the_sound_one_runs():
    module = torch.jit.load(archive(quantized(ONE_SCALE) + b"N\x86b"))
    assert module(torch.ones(1, 3)).shape == (1, 2)
    assert module.p.unpack()[0].int_repr().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (b"K\x01b", "holds a int"),
        (b"NN\x86b", "declared as Tensor"),
        (b"", "packed weights of quantized.LinearPackedParamsBase, got NoneType"),
        (FLOATS + FLOATS + b"\x86b", "bias of 2 elements"),
        (quantized(ONE_SCALE) + FLOATS + b"\x86b", "bias of 2 elements"),
        (quantized(ONE_SCALE, sizes=b"(K\x03K\x03t") + b"N\x86b", "needs 9 bytes"),
        (quantized(ONE_SCALE, b"QInt32Storage", count=b"K\x01") + b"N\x86b", "declared with 4 bytes"),
        (quantized(ONE_SCALE, b"FloatStorage", count=b"K\x01") + b"N\x86b", "declared with 4 bytes|without a quantized dtype"),
        (quantized(ONE_SCALE, b"QUInt8Storage") + b"N\x86b", "expected a qint8 weight"),
        (quantized(b"(ctorch\nper_tensor_affine\nK\x01K\x00t") + b"N\x86b", "settings of an unknown form"),
        (quantized(b"(ctorch\nper_tensor_affine\nG?\xb9\x99\x99\x99\x99\x99\x9a\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft") + b"N\x86b",
         "zero point"),
        (quantized(b"(ctorch\nper_channel_affine\nNNK\x00t") + b"N\x86b", "must be tensors of one dimension"),
        (quantized(b"(ctorch\nper_channel_affine\n" + FLOATS + FLOATS + b"K\x00t") + b"N\x86b", "must be tensors of one dimension"),
        (quantized(b")") + b"N\x86b", "has no scheme"),
        (quantized(b"(ctorch\nsystem\nt") + b"N\x86b", "torch.system"),
    ],
)  # fmt: skip
def test_damaged_states_are_refused(state, problem):
    with pytest.raises(RuntimeError, match=problem):
        torch.jit.load(archive(state))(torch.ones(1, 3))


def test_wrong_packed_weights_are_refused_by_operators():
    with pytest.raises(RuntimeError):
        torch.jit.load(archive(b"NN\x86b", "Conv2dPackedParamsBase", "ops.quantized.conv2d_dynamic(x, p)"))(torch.ones(1))
    module = torch.jit.load(archive(quantized(ONE_SCALE) + b"N\x86b"))
    with pytest.raises(RuntimeError, match="must be the last size of the input"):
        module(torch.ones(1, 4))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("state", [None, (), (1, 2), ("2", [], []), (3, [], []), ("9", [], []), (1, [], [], []), ("x", [], [], [], [])])
def test_unknown_states_are_refused(name, state):
    with pytest.raises(PackedError):
        CLASSES[name].of_state(state)


def test_other_extension_classes_are_refused_by_name():
    code = MODULE.replace("CLASS", "OtherParamsBase").replace("BODY", "x")
    source = archive(quantized(ONE_SCALE) + b"N\x86b", "OtherParamsBase", "x")
    assert "OtherParamsBase" in code
    with pytest.raises(RuntimeError, match="only packed weights are known"):
        torch.jit.load(source)


def test_weights_of_convolutions_have_three_forms():
    weight = torch.quantize_per_tensor(torch.randn(4, 3, 3, 3), 0.02, 0, torch.qint8)
    pack = CLASSES["quantized.Conv2dPackedParamsBase"]
    numbers = [2, 1, 2, 0, 1, 1, 1, 0, 0, 1, 0]
    second = pack.of_state(("2", [torch.tensor(numbers, dtype=torch.int16), weight], [None]))
    third = pack.of_state((3, numbers, [None, weight, None]))
    parts = [[torch.tensor([each]) for each in pair] for pair in ((1, 2), (0, 1), (1, 1))]
    first = pack.of_state((weight, None, *parts, torch.tensor([1])))
    for each in (first, second, third):
        assert (each.stride, each.padding, each.dilation, each.groups, each.transpose) == ([1, 2], [0, 1], [1, 1], 1, False)
        assert each.state()[1][0].tolist() == numbers
