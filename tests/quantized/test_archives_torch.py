"""Archives of modules that torch quantized: here they give torch's results, and what is saved here, torch loads."""

from __future__ import annotations

import io
import logging
from functools import cache

import pytest

import rushlight
from tests.quantized.conversions import adds_in_16_bits, assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
logging.getLogger("torch").setLevel(logging.ERROR)
zoo = pytest.importorskip("tests.quantized.zoo")
QNNPACK = ("static_residual_qnnpack", "static_transposed")
WIDE = ("static_activations", "static_norms")  # with activations of 8 bits
QUANTA = {"static_transposed": 0.008}  # where torch rounds otherwise; the size of a quantum


def use_engine(name: str) -> None:
    """The engine that a module is for."""
    torch.backends.quantized.engine = "qnnpack" if name in QNNPACK else "fbgemm"


@pytest.fixture(autouse=True)
def engine():
    before = torch.backends.quantized.engine
    yield
    torch.backends.quantized.engine = before


@cache
def saved(name: str) -> tuple:
    """The bytes of an archive, the arguments of a call, and torch's result of the archive."""
    use_engine(name)
    torch.manual_seed(0)
    module, arguments = zoo.ZOO[name]()
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return buffer.getvalue(), arguments, torch.jit.load(buffer)(*arguments)


def close(found: object, expected: object, quantum: float) -> None:
    """Compare results; numbers may differ by a quantum."""
    if not quantum:
        assert_same(found, expected)
        return
    assert abs(found.numpy() - expected.numpy()).max() <= quantum


@pytest.mark.parametrize("name", zoo.ZOO)
def test_loads_and_agrees_with_torch_and_back(name):
    if name in WIDE and adds_in_16_bits(torch):
        pytest.skip("torch's sums of products saturate on this processor")
    data, arguments, result = saved(name)
    module = rushlight.jit.load(io.BytesIO(data))
    for _ in range(3):  # the first call profiles, the later ones run a specialised plan
        close(module(*to_rushlight(arguments)), result, QUANTA.get(name, 0))
    use_engine(name)
    back = torch.jit.load(io.BytesIO(module.save_to_buffer()))(*arguments)
    pairs = zip(back, result, strict=True) if isinstance(result, tuple) else [(back, result)]
    for left, right in pairs:
        assert_same(to_rushlight(left), right)


@pytest.mark.parametrize("name", ["dynamic_lstm_deep", "static_residual", "static_mobilenet", "embeddings", "functions"])
def test_frozen_and_compiled_modules_agree(name):
    data, arguments, result = saved(name)
    module, given = rushlight.jit.load(io.BytesIO(data)), to_rushlight(arguments)
    frozen = rushlight.jit.freeze(module.eval())
    assert_same(frozen(*given), result)
    assert_same(rushlight.jit.load(io.BytesIO(frozen.save_to_buffer()))(*given), result)
    assert_same(rushlight.compile(module)(*given), result)


def test_frozen_graphs_hold_packed_weights_as_constants():
    module = rushlight.jit.freeze(rushlight.jit.load(io.BytesIO(saved("static_residual")[0])).eval())
    graph = str(module.graph)
    assert "prim::GetAttr" not in graph
    assert "__torch__.torch.classes.quantized.Conv2dPackedParamsBase = prim::Constant[value=object(0x" in graph


def test_packed_weights_have_their_methods():
    module = rushlight.jit.load(io.BytesIO(saved("static_residual")[0]))
    packed = module.conv1._packed_params
    weight, bias = packed.unpack()
    assert weight.shape == (8, 3, 3, 3) and weight.qscheme() is rushlight.per_channel_affine and bias.shape == (8,)
    assert packed.stride() == [1, 1] and packed.padding() == [1, 1] and packed.groups() == 1
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        packed.nothing()


def test_state_dicts_with_quantized_tensors_are_torchs():
    tensors = {
        "tensor": torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 10, torch.quint8),
        "turned": torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 10, torch.qint32).t(),
        "channels": torch.quantize_per_channel(torch.randn(3, 4), torch.rand(3) + 0.1, torch.arange(3), 0, torch.qint8),
        "rows": torch.quantize_per_channel(torch.randn(4, 3), torch.rand(3) + 0.1, torch.rand(3), 1, torch.quint8),
        "halves": torch.quantize_per_channel(torch.randn(3, 5), torch.rand(3) + 0.1, torch.rand(3), 0, torch.quint4x2),
    }
    file, back = io.BytesIO(), io.BytesIO()
    torch.save(tensors, file)
    file.seek(0)
    loaded = rushlight.load(file)
    assert {key: repr(each) for key, each in loaded.items()} == {key: repr(each) for key, each in tensors.items()}
    rushlight.save(loaded, back)
    back.seek(0)
    assert {key: repr(each) for key, each in torch.load(back).items()} == {key: repr(each) for key, each in tensors.items()}


def test_packed_linear_layers_of_python_work_in_scripts():
    def f(x, weight):
        q = rushlight.quantize_per_tensor(weight, 0.01, 0, rushlight.qint8)
        packed = rushlight.ops.quantized.linear_prepack(q, None)
        return rushlight.ops.quantized.linear_dynamic(x, packed)

    x, weight = torch.randn(3, 4), torch.rand(5, 4) - 0.5  # whose sums of products fit 16 bits
    expected = torch.ops.quantized.linear_dynamic(
        x, torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(weight, 0.01, 0, torch.qint8), None)
    )
    given = to_rushlight((x, weight))
    assert_same(f(*given), expected)
    assert_same(rushlight.jit.script(f)(*given), expected)
