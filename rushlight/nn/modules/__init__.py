"""The module classes, by kind of layer."""

from __future__ import annotations

from rushlight.core.lazy_module import lazy_names

HOMES = {
    "rushlight.nn.modules.utils": (),
    "rushlight.nn.modules.activation": (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
        "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    ),
    "rushlight.nn.modules.adaptive": ("AdaptiveLogSoftmaxWithLoss",),
    "rushlight.nn.modules.attention": ("MultiheadAttention",),
    "rushlight.nn.modules.batchnorm": (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
        "SyncBatchNorm",
    ),
    "rushlight.nn.modules.container": ("ModuleDict", "ModuleList", "Sequential"),
    "rushlight.nn.modules.conv": ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    "rushlight.nn.modules.data_parallel": ("DataParallel",),
    "rushlight.nn.modules.distance": ("CosineSimilarity", "PairwiseDistance"),
    "rushlight.nn.modules.dropout": ("AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"),
    "rushlight.nn.modules.embedding": ("Embedding", "EmbeddingBag"),
    "rushlight.nn.modules.flatten": ("Flatten", "Unflatten"),
    "rushlight.nn.modules.fractional_pooling": ("FractionalMaxPool2d", "FractionalMaxPool3d"),
    "rushlight.nn.modules.lazy_layers": (
        "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
        "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
        "LazyInstanceNorm3d", "LazyLinear",
    ),
    "rushlight.nn.modules.linear": ("Bilinear", "Identity", "Linear"),
    "rushlight.nn.modules.loss": (
        "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
        "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
        "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
        "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    ),
    "rushlight.nn.modules.module": ("Module",),
    "rushlight.nn.modules.normalization": ("CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"),
    "rushlight.nn.modules.padding": (
        "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
        "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
        "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    ),
    "rushlight.nn.modules.parameter_container": ("ParameterDict", "ParameterList"),
    "rushlight.nn.modules.pooling": (
        "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
        "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    ),
    "rushlight.nn.modules.rnn": ("GRU", "LSTM", "RNN", "RNNBase"),
    "rushlight.nn.modules.rnn_cells": ("GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"),
    "rushlight.nn.modules.sequence_loss": ("CTCLoss", "LinearCrossEntropyLoss"),
    "rushlight.nn.modules.transformer": (
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    ),
    "rushlight.nn.modules.vision": (
        "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample", "UpsamplingBilinear2d",
        "UpsamplingNearest2d",
    ),
}  # fmt: skip
"""The names by module, which is imported when one of them is first asked for. Type checkers read `__init__.pyi`."""

__all__ = sorted(name for names in HOMES.values() for name in names)
__getattr__, __dir__ = lazy_names(globals(), HOMES)
