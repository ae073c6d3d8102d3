"""What `help()` shows of the public functions: signatures, texts with all arguments, and examples that run."""

import doctest
import inspect
import types

import pytest

import rushlight as torch
from rushlight.ops.descriptions import DOCSTRINGS
from rushlight.ops.signatures import OperatorSignature

_INNER = {"mkldnn_rnn_layer"}
NAMESPACES = {"": torch, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special}


def _functions():
    for prefix, module in NAMESPACES.items():
        for name in sorted(dir(module)):
            function = getattr(module, name)
            is_plain = not name.startswith("_") and isinstance(function, types.FunctionType)
            if is_plain and getattr(function, "_asks_modes", False) and str(function.__module__).startswith("rushlight"):
                yield f"{prefix}.{name}".strip("."), function


FUNCTIONS = dict(_functions())


def test_there_are_many():
    assert len(FUNCTIONS) > 550 and len(DOCSTRINGS) > 500


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_signature_and_a_text(name):
    function = FUNCTIONS[name]
    signature = inspect.signature(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if type(signature) is OperatorSignature:
        assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    text = inspect.getdoc(function)
    if name.endswith(("_", "_copy")):
        assert "See the description of" in text or "Args:" in text
        return
    if type(signature) is not OperatorSignature or name in _INNER:
        return
    assert "Args:" in text and ">>> " in text
    for parameter in signature.parameters:
        assert f"\n    {parameter} (" in text, parameter


def test_the_signature_is_an_ordinary_one():
    signature = inspect.signature(torch.add)
    assert str(signature.replace(return_annotation=inspect.Signature.empty)).startswith("(input: 'Tensor', other: 'Tensor'")
    assert list(signature.bind(1, 2, alpha=3).arguments) == ["input", "other", "alpha"]
    assert signature.parameters["alpha"].default == 1
    assert signature == inspect.signature(torch.Tensor.add)
    with pytest.raises(TypeError):
        signature.bind(1)


def _documented():
    found = {name: getattr(functional, name) for name in functional.__all__}
    for name, value in found.items():
        if inspect.isfunction(value):
            yield name, value
    for name in dir(torch.nn):
        value = getattr(torch.nn, name)
        if inspect.isclass(value) and issubclass(value, torch.nn.Module) and value not in _BASES and "Lazy" not in name:
            yield f"nn.{name}", value


functional = torch.nn.functional
_BASES = {torch.nn.Module, torch.nn.RNNBase, torch.nn.RNNCellBase}
NETWORK = dict(_documented())
TEXTS = DOCSTRINGS | {name: inspect.getdoc(value) for name, value in NETWORK.items() if name not in (
    "LinearCrossEntropyOptions", "multi_head_attention_forward", "assert_int_or_pair", "handle_torch_function",
)}  # fmt: skip


@pytest.mark.parametrize("name", NETWORK)
def test_a_function_or_module_of_networks_names_its_arguments(name):
    if name not in TEXTS:
        return
    text = TEXTS[name]
    for parameter in inspect.signature(NETWORK[name]).parameters:
        assert parameter.startswith("_") or parameter in text, parameter


@pytest.mark.parametrize("name", TEXTS)
def test_examples_run(name):
    test = doctest.DocTestParser().get_doctest(TEXTS[name], {"torch": torch, "F": functional}, name, None, 0)
    assert test.examples
    report = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)
