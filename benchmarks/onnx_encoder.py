"""A BERT encoder's state dict becomes an ONNX model, node by node, so that no exporter is needed."""

from __future__ import annotations

import numpy as np

from benchmarks.workload import Arrays

OPSET = 20  # the first with Gelu


class GraphBuilder:
    """Collects nodes and constants; every method returns the name of a value."""

    def __init__(self, weights: Arrays) -> None:
        self.weights = weights
        self.nodes: list = []
        self.constants: Arrays = {}

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        import onnx

        name = f"value_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: object, dtype: type) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weight(self, name: str, transposed: bool = False) -> str:
        array = self.weights[name]
        self.constants[name] = np.ascontiguousarray(array.T if transposed else array)
        return name

    def linear(self, name: str, value: str) -> str:
        product = self.node("MatMul", value, self.weight(f"{name}.weight", transposed=True))
        return self.node("Add", product, self.weight(f"{name}.bias"))

    def layer_norm(self, name: str, value: str, epsilon: float) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", value, scale, bias, axis=-1, epsilon=epsilon)


def onnx_encoder(weights: Arrays, layers: int, heads: int, tokens: int, epsilon: float) -> bytes:
    """The serialised model: input_ids and attention_mask, (1, tokens) int64, to hidden, (1, tokens, hidden size)."""
    import onnx

    size = weights["embeddings.word_embeddings.weight"].shape[1]
    builder = GraphBuilder(weights)
    hidden = embeddings(builder, tokens, epsilon)
    mask = additive_mask(builder)
    for index in range(layers):
        hidden = layer(builder, f"encoder.layer.{index}", hidden, mask, (tokens, heads, size // heads), epsilon)
    builder.nodes[-1].output[0] = "hidden"
    integers, floats = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        builder.nodes,
        "encoder",
        [onnx.helper.make_tensor_value_info(name, integers, [1, tokens]) for name in ("input_ids", "attention_mask")],
        [onnx.helper.make_tensor_value_info("hidden", floats, [1, tokens, size])],
        [onnx.numpy_helper.from_array(array, name) for name, array in builder.constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9)
    return model.SerializeToString()


def embeddings(builder: GraphBuilder, tokens: int, epsilon: float) -> str:
    """Words, plus first token type and positions from 0, which one constant holds."""
    words = builder.node("Gather", builder.weight("embeddings.word_embeddings.weight"), "input_ids")
    positions = builder.weights["embeddings.position_embeddings.weight"][:tokens]
    fixed = positions + builder.weights["embeddings.token_type_embeddings.weight"][0]
    total = builder.node("Add", words, builder.constant(fixed[None], np.float32))
    return builder.layer_norm("embeddings.LayerNorm", total, epsilon)


def additive_mask(builder: GraphBuilder) -> str:
    """(1, 1, 1, tokens): 0 where the mask is 1, very negative where it is 0."""
    import onnx

    expanded = builder.node("Unsqueeze", "attention_mask", builder.constant([1, 2], np.int64))
    in_float = builder.node("Cast", expanded, to=onnx.TensorProto.FLOAT)
    padding = builder.node("Sub", builder.constant(1.0, np.float32), in_float)
    return builder.node("Mul", padding, builder.constant(-1e9, np.float32))


def attention(builder: GraphBuilder, name: str, hidden: str, mask: str, sizes: tuple[int, int, int]) -> str:
    tokens, heads, head_size = sizes
    split = builder.constant([1, tokens, heads, head_size], np.int64)

    def heads_of(part: str, order: list[int]) -> str:
        projected = builder.linear(f"{name}.self.{part}", hidden)
        return builder.node("Transpose", builder.node("Reshape", projected, split), perm=order)

    query, key, value = heads_of("query", [0, 2, 1, 3]), heads_of("key", [0, 2, 3, 1]), heads_of("value", [0, 2, 1, 3])
    scale = builder.constant(head_size**0.5, np.float32)
    scores = builder.node("Add", builder.node("Div", builder.node("MatMul", query, key), scale), mask)
    context = builder.node("MatMul", builder.node("Softmax", scores, axis=-1), value)
    joined = builder.constant([1, tokens, heads * head_size], np.int64)
    return builder.node("Reshape", builder.node("Transpose", context, perm=[0, 2, 1, 3]), joined)


def layer(
    builder: GraphBuilder, name: str, hidden: str, mask: str, sizes: tuple[int, int, int], epsilon: float
) -> str:
    """One encoder layer."""
    context = attention(builder, f"{name}.attention", hidden, mask, sizes)
    projected = builder.linear(f"{name}.attention.output.dense", context)
    attended = builder.layer_norm(
        f"{name}.attention.output.LayerNorm", builder.node("Add", projected, hidden), epsilon
    )
    wide = builder.node("Gelu", builder.linear(f"{name}.intermediate.dense", attended))
    narrow = builder.linear(f"{name}.output.dense", wide)
    return builder.layer_norm(f"{name}.output.LayerNorm", builder.node("Add", narrow, attended), epsilon)
