"""The names of torch.onnx that libraries use when they are imported."""

import sys

import pytest

import rushlight
from rushlight import onnx
from rushlight.onnx import OnnxExporterError, operators, symbolic_opset11
from rushlight.onnx.symbolic_helper import parse_args


def test_export_says_which_package_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnx"):
        onnx.export(rushlight.nn.Linear(2, 2), (rushlight.ones(1, 2),), "model.onnx")


def test_export_says_which_arguments_have_no_effect():
    with pytest.raises(TypeError, match="'opset'"):
        onnx.export(rushlight.nn.Linear(2, 2), (rushlight.ones(1, 2),), opset=18)
    pytest.importorskip("onnx")
    with pytest.warns(UserWarning, match="no effect: verify, do_constant_folding"), pytest.raises(OnnxExporterError, match="opset"):
        onnx.export(rushlight.nn.Linear(2, 2), (rushlight.ones(1, 2),), opset_version=1, verify=True, do_constant_folding=False)


def test_older_translations_are_not_here():
    with pytest.raises(NotImplementedError, match="torch.onnx.symbolic_opset11.select"):
        symbolic_opset11.select(None, None, 0, 0)
    assert not onnx.is_in_onnx_export()


def test_translations_can_be_registered_by_full_names_only():
    onnx.register_custom_op_symbolic("mine::double", lambda g, x: x, 11)
    onnx.unregister_custom_op_symbolic("mine::double", 11)
    onnx.unregister_custom_op_symbolic("mine::double", 11)
    with pytest.raises(onnx.OnnxExporterError, match="domain::name"):
        onnx.register_custom_op_symbolic("double", lambda g, x: x, 11)


def test_parse_args_keeps_the_function_and_notes_the_kinds():
    @parse_args("v", "i")
    def symbolic(g, x, axis):
        return g, x, axis

    assert symbolic("g", "x", axis=1) == ("g", "x", 1)
    assert symbolic._arg_descriptors == ("v", "i")


def test_shapes_as_tensors():
    x = rushlight.arange(6).reshape(2, 3)
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, rushlight.tensor([3, 2])).shape == (3, 2)
