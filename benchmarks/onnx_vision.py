"""State dicts of image classifiers become ONNX models, node by node, so that no exporter is needed."""

from __future__ import annotations

import numpy as np

from benchmarks.onnx_encoder import OPSET, GraphBuilder
from benchmarks.workload import Arrays


def finish(builder: GraphBuilder, image: tuple[int, ...], classes: int) -> bytes:
    """The serialised model whose last node gives the scores."""
    import onnx

    builder.nodes[-1].output[0] = "scores"
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        builder.nodes,
        "classifier",
        [onnx.helper.make_tensor_value_info("image", floats, list(image))],
        [onnx.helper.make_tensor_value_info("scores", floats, [image[0], classes])],
        [onnx.numpy_helper.from_array(array, name) for name, array in builder.constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9)
    return model.SerializeToString()


# ---- ResNet --------------------------------------------------------------------------------------------------------


def conv_norm(builder: GraphBuilder, conv: str, norm: str, x: str, stride: int, padding: int, epsilon: float) -> str:
    weight = builder.weight(f"{conv}.weight")
    size = builder.weights[weight].shape[2]
    x = builder.node(
        "Conv", x, weight, strides=[stride] * 2, pads=[padding] * 4, kernel_shape=[size] * 2, dilations=[1, 1]
    )
    parameters = [builder.weight(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")]
    return builder.node("BatchNormalization", x, *parameters, epsilon=epsilon)


def onnx_resnet(weights: Arrays, image: tuple[int, ...], classes: int, epsilon: float) -> bytes:
    """The serialised model: image to scores, (N, classes)."""
    builder = GraphBuilder(weights)
    x = builder.node("Relu", conv_norm(builder, "conv1", "bn1", "image", 2, 3, epsilon))
    x = builder.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage in range(1, 5):
        for index in range(2):
            block, stride = f"layer{stage}.{index}", 2 if stage > 1 and not index else 1
            identity = x
            if f"{block}.downsample.0.weight" in weights:
                names = f"{block}.downsample.0", f"{block}.downsample.1"
                identity = conv_norm(builder, *names, x, stride, 0, epsilon)
            x = builder.node("Relu", conv_norm(builder, f"{block}.conv1", f"{block}.bn1", x, stride, 1, epsilon))
            x = conv_norm(builder, f"{block}.conv2", f"{block}.bn2", x, 1, 1, epsilon)
            x = builder.node("Relu", builder.node("Add", x, identity))
    builder.linear("fc", builder.node("Flatten", builder.node("GlobalAveragePool", x), axis=1))
    return finish(builder, image, classes)


# ---- vision transformer --------------------------------------------------------------------------------------------


def patches(builder: GraphBuilder, x: str, image: tuple[int, ...], patch: int, hidden: int) -> str:
    """(N, patches, hidden), by a convolution."""
    kernel, bias = builder.weight("patch_embed.weight"), builder.weight("patch_embed.bias")
    x = builder.node("Conv", x, kernel, bias, strides=[patch] * 2, kernel_shape=[patch] * 2)
    count = (image[2] // patch) * (image[3] // patch)
    flat = builder.node("Reshape", x, builder.constant([image[0], hidden, count], np.int64))
    return builder.node("Transpose", flat, perm=[0, 2, 1])


def attention(builder: GraphBuilder, name: str, x: str, sizes: tuple[int, int, int]) -> str:
    tokens, heads, size = sizes
    split = builder.constant([1, tokens, 3, heads, size], np.int64)
    joined = builder.node("Reshape", builder.linear(f"{name}.qkv", x), split)
    parts = builder.node("Transpose", joined, perm=[2, 0, 3, 1, 4])
    query, key, value = (
        builder.node("Gather", parts, builder.constant(index, np.int64), axis=0) for index in range(3)
    )
    scores = builder.node("MatMul", query, builder.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = builder.node("Div", scores, builder.constant(size**0.5, np.float32))
    context = builder.node("MatMul", builder.node("Softmax", scores, axis=-1), value)
    merged = builder.constant([1, tokens, heads * size], np.int64)
    context = builder.node("Reshape", builder.node("Transpose", context, perm=[0, 2, 1, 3]), merged)
    return builder.linear(f"{name}.proj", context)


def onnx_vit(
    weights: Arrays, layers: int, heads: int, image: tuple[int, ...], patch: int, epsilon: float
) -> bytes:
    """The serialised model: image to scores, (1, classes)."""
    builder = GraphBuilder(weights)
    hidden = weights["pos_embed"].shape[2]
    tokens = weights["pos_embed"].shape[1]
    x = patches(builder, "image", image, patch, hidden)
    x = builder.node("Concat", builder.weight("cls_token"), x, axis=1)
    x = builder.node("Add", x, builder.weight("pos_embed"))
    for index in range(layers):
        name = f"blocks.{index}"
        normal = builder.layer_norm(f"{name}.norm1", x, epsilon)
        x = builder.node("Add", x, attention(builder, name, normal, (tokens, heads, hidden // heads)))
        wide = builder.linear(f"{name}.fc1", builder.layer_norm(f"{name}.norm2", x, epsilon))
        x = builder.node("Add", x, builder.linear(f"{name}.fc2", builder.node("Gelu", wide)))
    x = builder.layer_norm("norm", x, epsilon)
    builder.linear("head", builder.node("Gather", x, builder.constant(0, np.int64), axis=1))
    return finish(builder, image, weights["head.weight"].shape[0])
