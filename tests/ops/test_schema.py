"""Schemas: text to FunctionSchema and back, and agreement with ATen's own."""

from __future__ import annotations

import pytest

from rushlight.core.layout import contiguous_format
from rushlight.ops.dispatcher import OpOverload, all_operators
from rushlight.ops.packet import OpOverloadPacket, namespaces
from rushlight.ops.return_types import has_named_results, return_type_of
from rushlight.ops.schema import (
    NO_DEFAULT,
    FunctionSchema,
    Type,
    in_place_declaration,
    parse_schema,
    split_declaration,
)
from tests.ops.samples import is_own

ATEN = [op for op in all_operators() if not is_own(op)]
# ATen has an overload with a generator beside the one without; here one overload takes both.
WITH_GENERATOR = ("randperm", "rand", "randn", "randint")
# ATen does not say that the running statistics are written to.
WRITES_STATISTICS = ("native_batch_norm",)


@pytest.mark.parametrize("op", ATEN, ids=str)
def test_text_survives_the_round_trip(op: OpOverload):
    text = str(op._schema)
    again = parse_schema(text)
    assert str(again) == text and again == op._schema
    assert list(again.positions) == [argument.name for argument in again.arguments]


@pytest.mark.parametrize(
    "text",
    [
        "f() -> ()",
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "f(Tensor(a!) self, int[2] k=3, float p=0., bool[3] m, str? s=None, Tensor?[] i) -> Tensor(a!)",
        'g(Tensor(a) self, int[] d=[], int[1]? e=None, str mode="none") -> (Tensor values, Tensor indices)',
        "h(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
        "k(*, MemoryFormat memory_format=contiguous_format, ScalarType? dtype=None) -> int",
        "m(Tensor(a!)? out, float eps=1e-05, int[3] s=[1, 2, 3], Scalar v=-2) -> float",
    ],
)
def test_forms(text):
    assert str(parse_schema(text)) == text


def test_what_is_parsed():
    schema = parse_schema("ns_op.over(Tensor(a!) self, SymInt[2] size=1, *, str mode='x', Generator? g=None) -> Tensor(a!)")
    assert (schema.name, schema.overload, schema.positional_count) == ("ns_op", "over", 2)
    assert schema.is_mutable and not schema.is_view
    self_, size, mode, generator = schema.arguments
    assert self_.is_write and self_.type.is_tensor and self_.default is NO_DEFAULT and not self_.has_default
    assert size.type == Type("int", is_list=True, length=2) and size.default == (1, 1)
    assert mode.kwarg_only and mode.default == "x"
    assert generator.type.optional and generator.default is None and generator.has_default
    assert parse_schema("v(Tensor(a) self) -> Tensor(a)").is_view
    assert parse_schema("c(*, MemoryFormat f=contiguous_format) -> int").arguments[0].default is contiguous_format


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add", "malformed schema"),
        ("add(Tensor self)", "malformed schema"),
        ("add(Tensor self -> Tensor", "malformed schema"),
        ("add(Tensr self) -> Tensor", "unknown type 'Tensr'"),
        ("add(Tensor self) -> Banana", "unknown type 'Banana'"),
    ],
)
def test_malformed_text_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        parse_schema(text)


@pytest.mark.parametrize("op", ATEN, ids=str)
def test_what_is_cut_out_of_the_text_is_what_the_schema_says(op: OpOverload):
    schema = op._schema
    assert (op._opname, op._overloadname) == (schema.name, schema.overload) == split_declaration(str(schema))[:2]
    assert op._takes_lists == any(argument.type.is_tensor_list for argument in schema.arguments)
    assert op._names_device == ("device" in schema.positions)
    assert not op._names_device or schema.arguments[op._device_position].name == "device"


def test_named_results_are_found_in_the_text():
    packets = [packet for packet in vars(namespaces.aten).values() if isinstance(packet, OpOverloadPacket)]
    assert [has_named_results(packet) for packet in packets] == [return_type_of(packet) is not None for packet in packets]


def test_in_place_declarations():
    text = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert in_place_declaration(text) == "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert in_place_declaration("neg(Tensor self) -> Tensor") == "neg_(Tensor(a!) self) -> Tensor(a!)"
    assert in_place_declaration("f.a(Tensor self) -> Tensor", "b") == "f_.b(Tensor(a!) self) -> Tensor(a!)"
    for text in ("sum(Tensor[] all) -> Tensor", "max(Tensor self, int dim) -> (Tensor, Tensor)"):
        with pytest.raises(ValueError, match="no in-place variant of"):
            in_place_declaration(text)


def _without_generator(schema: FunctionSchema) -> tuple:
    return tuple(argument for argument in schema.arguments if argument.name != "generator")


@pytest.mark.oracle
@pytest.mark.parametrize("op", ATEN, ids=str)
def test_schemas_are_atens(op: OpOverload):
    torch = pytest.importorskip("torch")
    packet = getattr(torch.ops.aten, op._schema.name, None)
    assert packet is not None and op.overload in packet.overloads(), f"ATen has no operator {op}"
    theirs = parse_schema(_readable(str(getattr(packet, op.overload)._schema)))
    if op._schema.name in WITH_GENERATOR:
        defaults = {argument.name: argument.default for argument in theirs.arguments}
        assert [a.name for a in _without_generator(op._schema)] == list(defaults)
    elif op._schema.name in WRITES_STATISTICS:
        assert [a.name for a in op._schema.arguments] == [a.name for a in theirs.arguments]
    else:
        assert op._schema == theirs


def _readable(text: str) -> str:
    return text.removeprefix("aten::").replace("memory_format=0", "memory_format=contiguous_format").replace("dtype=4", "dtype=long")
