"""Archives: those that torch saved load and give torch's results, saved and loaded again they still do. Without torch."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from enum import Enum
from pathlib import Path

import pytest

import rushlight as torch
from tests.jit import test_archives_hostile as hostile
from tests.jit.archives_values import assert_same, decode

ARCHIVES = sorted(Path(__file__).with_name("archives").glob("*.pt"))


def load_with_call(source: object) -> tuple:
    """A loaded archive, the arguments of its call, and the result that torch gave."""
    extra = {"call.json": ""}
    module = torch.jit.load(source, _extra_files=extra)
    call = json.loads(extra["call.json"])
    return module, decode(call["arguments"]), decode(call["result"])


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_loads_and_agrees_with_torch(path):
    module, arguments, result = load_with_call(path)
    assert_same(plain(module(*arguments)), result)


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_saves_what_it_loaded(path):
    module, arguments, result = load_with_call(str(path))
    again = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    assert_same(plain(again(*arguments)), result)
    assert list(again.state_dict()) == list(module.state_dict())


def plain(value: object) -> object:
    """NamedTuples as tuples."""
    if isinstance(value, list | tuple):
        return (tuple if isinstance(value, tuple) else list)(plain(item) for item in value)
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def archive(name: str) -> Path:
    return Path(__file__).with_name("archives") / f"{name}.pt"


def test_a_loaded_module_is_an_nn_module():
    module = torch.jit.load(archive("attributes"))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "dropped"]
    assert not module.training and module.train().training and not module.eval().training
    assert module.original_name == "Attributes"
    assert module.pair == (1, 2.5) and module.text == "a 'b' \"c\" \n ü" and module.maybe is None
    assert module.kind == 5 and module.device == torch.device("cpu") and module.complex == 1 + 2j
    assert module.count(3) == 5 and module.maybe == 3
    assert module.shared is module.weight
    assert isinstance(module.weight, torch.nn.Parameter) and not module.weight.requires_grad
    assert module.double().kept.dtype == torch.int64


def test_submodules_and_methods():
    module = torch.jit.load(archive("interfaces"))
    assert [name for name, _ in module.named_modules()] == ["", "a", "b"]
    assert set(module.state_dict()) == {"b.bias"}
    module.b.load_state_dict({"bias": torch.zeros(3)})
    assert module(torch.ones(1, 3)).tolist() == [[2.0, 2.0, 2.0]]
    assert module.b.forward(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(AttributeError):
        module.missing  # noqa: B018


def test_a_loaded_module_trains():
    module = torch.jit.load(archive("interfaces")).train()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    before = module.b.bias.detach().clone()
    module(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    assert torch.allclose(module.b.bias.detach(), before - 0.2)


def test_named_tuples_enums_and_objects_come_back():
    module, arguments, _ = load_with_call(archive("detection_head"))
    found, _, total = module(*arguments)
    assert found[0]._fields == ("boxes", "scores", "labels") and found[0].labels == found[0][2]
    assert repr(found[0]).startswith("Boxes(boxes=") and isinstance(total, float)
    module = torch.jit.load(archive("enums"))
    assert module.mode.name == "MEAN" and type(module.mode)["SUM"].value == 1


@pytest.mark.parametrize("map_location", ["cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage])
def test_map_location(map_location):
    assert torch.jit.load(archive("attributes"), map_location=map_location).weight.device.type == "cpu"


def test_meta_has_no_data():
    assert torch.jit.load(archive("attributes"), map_location="meta").weight.is_meta


def test_extra_files_and_streams(tmp_path):
    module = torch.jit.load(archive("enums"))
    torch.jit.save(module, tmp_path / "m.pt", _extra_files={"a.txt": "text", "b": b"\0\1"})
    extra = {"a.txt": None, "b": "", "c": "kept"}
    with open(tmp_path / "m.pt", "rb") as stream:
        torch.jit.load(stream, _extra_files=extra)
    assert extra == {"a.txt": b"text", "b": b"\0\1", "c": "kept"}
    module.save(str(tmp_path / "n.pt"))
    assert torch.jit.load(str(tmp_path / "n.pt")).original_name == "WithEnums"


def test_functions():
    def double(x, k: int = 2):
        return x * k

    scripted = torch.jit.script(double)
    again = torch.jit.load(io.BytesIO(scripted.save_to_buffer()))
    assert again(torch.ones(2)).tolist() == [2.0, 2.0] and again(torch.ones(1), k=3).tolist() == [3.0]
    assert again.original_name == "PlaceholderModule"


def test_traced():
    traced = torch.jit.trace(lambda x: (x + 1).relu(), (torch.ones(2),))
    again = torch.jit.load(io.BytesIO(traced.save_to_buffer()))
    assert again(torch.tensor([-3.0, 1.0])).tolist() == [0.0, 2.0]


CODE = """\
def forward(self,
    x: Tensor,
    other: __torch__.zoo_of_torch.Mode=__torch__.zoo_of_torch.Mode.SUM) -> Tuple[Tensor, str, int]:
  _0 = torch.eq(other, __torch__.zoo_of_torch.Mode.SUM)
  if _0:
    result = torch.sum(x)
  else:
    result = torch.mean(x)
  mode = self.mode
  _1 = torch.eq(mode, __torch__.zoo_of_torch.Mode.MEAN)
  if _1:
    mode0 = self.mode
    result0 = torch.add(result, (mode0).value)
  else:
    result0 = result
  mode1 = self.mode
  return (result0, (mode1).name, 3)
"""


def test_code():
    module = torch.jit.load(archive("enums"))
    assert module.code == CODE


@pytest.mark.filterwarnings("ignore")
def test_constants_of_code():
    traced = torch.jit.trace(lambda x: x + torch.tensor([1.0, 2.0]), (torch.ones(2),))
    text, constants = traced.code_with_constants
    assert "CONSTANTS.c0" in text and constants.c0.tolist() == [1.0, 2.0]
    assert list(constants.const_mapping) == ["c0"]


@pytest.mark.parametrize("value, text", [(1.0, "1."), (1.5e-8, "1.4999999999999999e-08"), (float("inf"), "inf"),
                                         (float("-inf"), "-inf"), (3 + 2j, "3.+2.j"), ("a'\n\"", '"a\\\'\\n\\""'), (None, "None")])  # fmt: skip
def test_constants_print_and_parse(value, text):
    unit = torch.jit.CompilationUnit(f"def f(x):\n    return x, {value!r}" if value not in (float("inf"), float("-inf"))
                                     else f"def f(x):\n    return x, float('{value}')")  # fmt: skip
    assert text in unit.f.code or "float" in unit.f.code
    assert torch.jit.load(io.BytesIO(unit.f.save_to_buffer()))(torch.ones(1))[1] == value


def test_saving_refuses_what_is_pythons():
    class Ignoring(torch.nn.Module):
        @torch.jit.ignore
        def python(self, x) -> torch.Tensor:
            return x

        def forward(self, x):
            return self.python(x)

    with pytest.raises(RuntimeError, match="export Python operator"):
        torch.jit.script(Ignoring()).save_to_buffer()
    with pytest.raises(TypeError, match="script or trace"):
        torch.jit.save(torch.nn.Linear(1, 1), io.BytesIO())


class Mode(Enum):
    SUM = 1
    MEAN = 2


def test_enums_of_the_users_class_are_arguments():
    Mode.__module__, Mode.__qualname__ = "zoo_of_torch", "Mode"
    module = torch.jit.load(archive("enums"))
    assert module(torch.tensor([1.0, 3.0]), Mode.MEAN)[0].item() == 4.0
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        module(torch.ones(1), 1)


CLASSES = """\
class Box:
  n : int
  def __init__(self: __torch__.Box, n: int) -> NoneType:
    self.n = n
    return None
  def twice(self: __torch__.Box) -> int:
    n = self.n
    return torch.mul(n, 2)
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.M, x: Tensor) -> __torch__.Box:
    b = __torch__.Box.__new__(__torch__.Box)
    _0 = (b).__init__(4, )
    return b
"""


def test_objects_of_an_archives_classes():
    box = torch.jit.load(io.BytesIO(hostile.archive(CLASSES)))(torch.ones(1))
    assert box.n == 4 and box.twice() == 8
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        box.missing  # noqa: B018


KEYWORDS = """\
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  async : bool
  __annotations__["a b"] = bool
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    async0 = self.async
    _0 = getattr(self, "a b")
    if torch.__and__(async0, torch.__not__(_0)):
      y = torch.neg(x)
    else:
      y = x
    return y
"""
FLAGS = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89X\x05\x00\x00\x00async\x88X\x03\x00\x00\x00a b\x89ub."


def test_attributes_may_be_keywords_or_no_identifiers():
    module = torch.jit.load(io.BytesIO(hostile.archive(KEYWORDS, FLAGS)))
    again = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    assert module(torch.ones(1)).tolist() == again(torch.ones(1)).tolist() == [-1.0]
    assert getattr(again, "a b") is False and 'getattr(self, "async")' in again.code


HEADER = "op_version_set = 1\nimport __torch__.torch.nn\n"


def test_the_header_of_old_files_is_passed_over():
    module = torch.jit.load(io.BytesIO(hostile.archive(HEADER + hostile.MODULE.replace("BODY", "return torch.neg(x)"))))
    assert module(torch.ones(1)).tolist() == [-1.0]


def failing(x, y):
    z = x + 1  # é
    return z @ y


def test_errors_show_the_users_source_again():
    module = torch.jit.script(failing)
    for _ in range(2):
        module = torch.jit.load(io.BytesIO(module.save_to_buffer()))
        with pytest.raises(RuntimeError) as caught:
            module(torch.ones(2, 3), torch.ones(2, 3))
        assert "return torch.matmul(z, y)" in str(caught.value)
        assert "    return z @ y\n           ~~~~~ <--- HERE" in str(caught.value)
        line = failing.__code__.co_firstlineno + 2
        assert f'{__file__}", line {line}' in str(caught.value)


def test_damaged_debug_sources_are_done_without():
    data = torch.jit.script(failing).save_to_buffer()
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        records = {name: packed.read(name) for name in packed.namelist()}
    name = next(name for name in records if name.endswith("debug_pkl"))
    for damaged in (b"", b"\x80\x02K\x01.", b"\x80\x02cos\nsystem\n.", records[name][:100]):
        module = torch.jit.load(io.BytesIO(hostile.zipped({**records, name: damaged})))
        assert module(torch.ones(2, 2), torch.ones(2, 2)).tolist() == [[4.0, 4.0], [4.0, 4.0]]
        assert "code/__torch__" in str(module.graph)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.names = ["a"]
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        self.names.append("b")
        return self.inner(x) * self.calls, len(self.names)


@pytest.mark.parametrize("loaded", [False, True])
def test_copies_of_modules_are_modules_of_their_own(loaded):
    module, x = torch.jit.script(Counting()), torch.ones(2, 3)
    if loaded:
        file = io.BytesIO()
        torch.jit.save(module, file)
        file.seek(0)
        module = torch.jit.load(file)
    module(x)
    other = copy.deepcopy(module)
    module(x)
    assert (module.calls.item(), other.calls.item(), other.names) == (2, 1, ["a", "b"])
    with torch.no_grad():
        getattr(other.inner, "0").weight.zero_()
    assert module.inner.state_dict()["0.weight"].abs().sum() > 0
    assert other(x)[1] == 3 and module(x)[1] == 4
    torch.jit.save(other, io.BytesIO())


def test_load_of_checkpoints_takes_archives(tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    for file in (path, io.BytesIO(path.read_bytes())):
        with pytest.warns(UserWarning, match="looks like a TorchScript archive dispatching to 'torch.jit.load'"):
            module = torch.load(file, weights_only=False)
        assert isinstance(module, torch.jit.ScriptModule) and module(torch.ones(1, 2)).shape == (1, 2)
    for options in ({}, {"weights_only": True}):
        with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True``"):
            torch.load(path, **options)
