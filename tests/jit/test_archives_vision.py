"""Archives of detectors: torchvision's operators in code, operators of other projects, and variables that change their type."""

from __future__ import annotations

import io
import zipfile

import pytest

import rushlight as torch
from tests.jit.test_archives_hostile import zipped

DETECTOR = """\
class Detector(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.Detector,
    image: Tensor,
    boxes: Tensor,
    scores: Tensor) -> Tuple[Tensor, Tensor]:
    kept = ops.torchvision.nms(boxes, scores, 0.5)
    _0 = annotate(List[Optional[Tensor]], [kept])
    boxes0 = torch.index(boxes, _0)
    _1 = torch.full([torch.size(boxes0, 0), 1], 0)
    rois = torch.cat([torch.to(_1, 6), boxes0], 1)
    pooled = ops.torchvision.roi_align(image, rois, 0.5, 2, 2, 2, True)
    return (kept, pooled)
"""
FOREIGN = """\
class Detector(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def folded(self: __torch__.Detector,
    x: Tensor) -> Tensor:
    return ops.elsewhere.fold(x, 2)
"""


def archive_of(code: str) -> io.BytesIO:
    """An archive of a module `Detector` with this code."""
    data = b"\x80\x02c__torch__\nDetector\n)\x81}X\x08\x00\x00\x00training\x89sb."
    records = {"version": b"3\n", "code/__torch__.py": code.encode(), "data.pkl": data, "constants.pkl": b"\x80\x02)."}
    return io.BytesIO(zipped({f"m/{name}": content for name, content in records.items()}))


def test_a_detectors_operators():
    module = torch.jit.load(archive_of(DETECTOR))
    image = torch.arange(64, dtype=torch.float32).reshape(1, 1, 8, 8)
    boxes = torch.tensor([[0.0, 0, 8, 8], [1, 0, 9, 8], [6, 6, 12, 12]])
    for _ in range(3):
        kept, pooled = module(image, boxes, torch.tensor([0.3, 0.9, 0.5]))
        assert kept.tolist() == [1, 2] and pooled.shape == (2, 1, 2, 2)
        torch.testing.assert_close(pooled[0, 0], torch.tensor([[5.0, 7.0], [21.0, 23.0]]))
    again = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    assert again(image, boxes, torch.tensor([0.3, 0.9, 0.5]))[0].tolist() == [1, 2]


def test_operators_of_other_projects_are_named_and_can_be_registered():
    with pytest.raises(RuntimeError, match=r"(?s)Unknown builtin op: elsewhere::fold.*rushlight.jit.register_operator\('elsewhere"):
        torch.jit.load(archive_of(FOREIGN)).folded(torch.ones(2))
    operator = torch.jit.register_operator("elsewhere::fold(Tensor x, int times) -> Tensor", lambda x, times: x.repeat(times))
    try:
        assert torch.jit.load(archive_of(FOREIGN)).folded(torch.ones(2)).shape == (4,)
    finally:
        torch.jit.deregister_operator(operator)
    with pytest.raises(RuntimeError, match="Unknown builtin op"):
        torch.jit.load(archive_of(FOREIGN)).folded(torch.ones(2))


CASES = """\
from __future__ import annotations
from typing import List, Tuple, Union

def first(x: Union[int, List[int], Tuple[int, int]]) -> int:
    if isinstance(x, list):
        return len(x)
    elif isinstance(x, tuple):
        return x[0]
    return x

def number(x: Union[int, List[int], Tuple[int, int]]) -> int:
    if isinstance(x, list):
        raise ValueError("a list")
    elif isinstance(x, tuple):
        raise ValueError("a tuple")
    return x
"""


@pytest.mark.parametrize("name, results", [("first", {3: 3, (7, 8): 7}), ("number", {3: 3, (7, 8): None})])
def test_branches_that_leave_give_nothing_of_another_type(name, results, tmp_path, monkeypatch):
    (tmp_path / f"cases_{name}.py").write_text(CASES.replace("from __future__ import annotations\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    scripted = torch.jit.script(getattr(__import__(f"cases_{name}"), name))
    loaded = torch.jit.load(io.BytesIO(scripted.save_to_buffer()))
    for value, expected in results.items():
        for function in (scripted, loaded):
            if expected is None:
                with pytest.raises(torch.jit.Error, match="a tuple"):
                    function(value)
            else:
                assert function(value) == expected
    code = zipfile.ZipFile(io.BytesIO(scripted.save_to_buffer())).read("archive/code/__torch__.py").decode()
    assert "uninitialized(int)" in code and "uninitialized(List" not in code
