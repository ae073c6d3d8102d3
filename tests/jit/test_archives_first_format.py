"""Archives of TorchScript's first format (torch 1.0 to 1.3), built here from its description: model.json, tensors/, code/."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F

CODE = """op_version_set = 0
def forward(self,
    x: Tensor) -> Tensor:
  _0 = torch.addmm(self.fc.bias, x, torch.t(self.fc.weight), beta=1, alpha=1)
  _1 = torch.add(torch.relu(_0), CONSTANTS.c2, alpha=1)
  return self.scaled(_1, 2)
def scaled(self,
    x: Tensor,
    by: int) -> Tensor:
  return torch.mul(x, by)
"""
TYPES = {"float32": "FLOAT", "int64": "INT64", "float64": "DOUBLE", "float16": "FLOAT16"}


@dataclass
class Described:
    """An archive as it is described: arrays are its tensors, modules their ModuleDef."""

    tensors: list[np.ndarray] = field(default_factory=list)
    records: dict[str, bytes] = field(default_factory=dict)
    main: dict = field(default_factory=dict)

    def module(self, name: str, code: str | None = None, **fields: object) -> dict:
        """A ModuleDef; its code goes into a record."""
        if code is not None:
            self.records[f"code/{name}.py"] = code.encode()
            fields["torchscriptArena"] = {"key": f"code/{name}.py"}
        return {"name": name, "optimize": True, **fields}

    def model(self) -> dict:
        """The ModelDef."""
        tensors = []
        for index, array in enumerate(self.tensors):
            self.records[f"tensors/{index}"] = array.tobytes()
            strides = [str(stride // array.itemsize) for stride in array.strides]
            tensors.append({"dims": [str(size) for size in array.shape], "offset": "0", "strides": strides, "device": "cpu",
                            "requiresGrad": array.dtype == np.float32, "dataType": TYPES[array.dtype.name],
                            "data": {"key": f"tensors/{index}"}})  # fmt: skip
        return {"protoVersion": "2", "producerName": "pytorch", "mainModule": self.main, "tensors": tensors}

    def save(self, model: dict | str | None = None) -> io.BytesIO:
        """The archive's bytes, with another model.json if one is given."""
        model = self.model() if model is None else model
        self.records["model.json"] = (model if isinstance(model, str) else json.dumps(model)).encode()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in {**self.records, "version": b"1\n"}.items():
                archive.writestr(f"model/{name}", data)
        buffer.seek(0)
        return buffer


def perceptron() -> Described:
    numbers = np.random.default_rng(0)
    made = Described([numbers.standard_normal(size).astype(np.float32) for size in ((3, 4), (3,), (3,))])
    parameters = [{"isBuffer": False, "tensorId": "0", "name": "weight"}, {"tensorId": "1", "name": "bias"}]
    fc = made.module("fc", "op_version_set = 0\n", parameters=parameters)
    made.main = made.module("net", CODE, submodules=[fc])
    return made


def test_modules_parameters_and_constants():
    described = perceptron()
    module = torch.jit.load(described.save())
    weight, bias, shift = map(torch.tensor, described.tensors)
    x = torch.randn(2, 4)
    torch.testing.assert_close(module(x), (F.linear(x, weight, bias).relu() + shift) * 2)
    assert [(name, value.requires_grad) for name, value in module.named_parameters()] == [("fc.weight", True), ("fc.bias", True)]
    assert module.training and not module.eval().training
    module(x).sum().backward()
    assert module.fc.weight.grad.shape == (3, 4)
    again = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    torch.testing.assert_close(again(x), module(x))


def test_buffers_attributes_and_libraries():
    made = Described([np.arange(3), np.float16([0.5, 1.5])])
    # A pickled list of a list of ints and a tensor, which is given by its number in the table.
    made.records["attributes.pkl"] = b"\x80\x02](](K\x02K\x03ectorch.jit._pickle\nbuild_tensor_from_id\nK\x01\x85Re."
    made.records["libs/__torch__/helpers.py"] = (
        b"op_version_set = 1\nclass Pair(NamedTuple):\n  first : int\n  second : Tensor\n"
        b"def doubled(x: Tensor) -> Tensor:\n  return torch.mul(x, 2)\n"
    )
    code = (
        "op_version_set = 1\nimport __torch__\nimport __torch__.helpers\n"
        "def forward(self,\n    n: int) -> Tuple[Tensor, Tensor, int]:\n"
        "  pair = __torch__.helpers.Pair(n, torch.div(self.count, n))\n"
        "  return (__torch__.helpers.doubled(self.held), pair.second, torch.add((self.sizes)[0], pair.first))\n"
    )
    attributes = [{"type": "List[int]", "name": "sizes"}, {"type": "Tensor", "name": "held", "id": "1"}]
    made.main = made.module("net", code, parameters=[{"isBuffer": True, "tensorId": "0", "name": "count"}], attributes=attributes)
    module = torch.jit.load(made.save())
    assert [name for name, _ in module.named_buffers()] == ["count"] and module.sizes == [2, 3]
    held, halves, number = module(2)
    assert held.dtype is torch.float16 and held.tolist() == [1.0, 3.0] and number == 4
    assert halves.tolist() == [0, 0, 1]  # integers were divided towards zero then
    assert module(2)[1].dtype is torch.int64


def changed(**changes: object) -> io.BytesIO:
    described = perceptron()
    return described.save({**described.model(), **changes})


def with_tensor(**changes: object) -> io.BytesIO:
    model = perceptron().model()
    model["tensors"][0] = {**model["tensors"][0], **changes}
    return changed(tensors=model["tensors"])


def with_main(**changes: object) -> io.BytesIO:
    return changed(mainModule={**perceptron().main, **changes})


@pytest.mark.parametrize("make, message", [
    (lambda: perceptron().save("{"), "model.json is no JSON"),
    (lambda: perceptron().save("[]"), "model.json is no object"),
    (lambda: perceptron().save("[" * 100_000), "nested too deeply"),
    (lambda: changed(mainModule=None), "describes no mainModule"),
    (lambda: changed(tensors=[3]), "'tensors' that is no list of objects"),
    (lambda: with_tensor(dataType="STRING"), "the type 'STRING', which is unknown"),
    (lambda: with_tensor(data={"key": "code/net.py"}), "in the record 'code/net.py', which is not there"),
    (lambda: with_tensor(dims=["3", "400000000000"]), "storage|bytes|elements"),
    (lambda: with_tensor(offset="-1"), "offset|negative|storage"),
    (lambda: with_tensor(dims="3"), "'dims' that is no list"),
    (lambda: with_tensor(offset="9" * 50), "'offset' that is no integer"),
    (lambda: with_main(parameters=[{"name": "w", "tensorId": "9"}]), "refers to tensor 9, and there are 3"),
    (lambda: with_main(parameters=[{"name": "fc", "tensorId": "0"}]), "two attributes 'fc'"),
    (lambda: with_main(parameters=[{"name": "_modules", "tensorId": "0"}]), "a name that modules themselves use"),
    (lambda: with_main(attributes=[{"name": "a", "type": "int", "id": "0"}]), "attributes.pkl"),
    (lambda: with_main(attributes=[{"name": "a", "type": "in t", "id": "0"}]), "is no type"),
    (lambda: with_main(torchscriptArena={"key": "version"}), "only classes and functions may stand here"),
    (lambda: with_main(torchscriptArena={"key": "nowhere"}), "nowhere"),
    (lambda: with_main(getStateAttributeId="0"), "restores itself by __setstate__"),
])  # fmt: skip
def test_what_is_malformed_is_named(make, message):
    with pytest.raises(RuntimeError, match=message):
        torch.jit.load(make())


def test_mutations_never_crash():
    data = perceptron().save().getvalue()
    numbers = np.random.default_rng(0)
    failures = 0
    for _ in range(300):
        damaged = bytearray(data)
        damaged[numbers.integers(len(damaged))] = numbers.integers(256)
        try:
            torch.jit.load(io.BytesIO(bytes(damaged)))(torch.ones(2, 4))
        except RuntimeError:
            failures += 1
    assert failures > 200
